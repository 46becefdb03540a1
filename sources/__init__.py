"""Readers of the clients' own local histories. They read and never write; storing is the `conversation_log` operation."""
