"""The door for operators: the HTTP API under /bo."""
