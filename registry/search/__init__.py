"""Search: translate a request to weighted terms, read candidates from the index and the database, and rank them."""
