"""Find the conversations and messages that match a request, and the confidence in them."""
