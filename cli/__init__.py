"""The door for the terminal: the ctxr command."""
