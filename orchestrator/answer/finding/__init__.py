"""Which conversations and messages a request means, and how sure that is."""
