"""Context that a chat gets without asking."""
