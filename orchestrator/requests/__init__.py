"""Define and check the requests of every door."""
