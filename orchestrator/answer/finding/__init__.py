"""Find the conversations and messages that a request means, and how sure that is."""
