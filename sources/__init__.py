"""Readers of the clients' own local histories: they only read; storing is the `conversation_log` operation."""
