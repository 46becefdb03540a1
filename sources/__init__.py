"""Readers of the clients' own local histories: they only read; the `conversation_log` operation stores."""
