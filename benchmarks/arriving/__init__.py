"""What a chat is told without asking."""
