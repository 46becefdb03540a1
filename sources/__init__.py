"""Readers of the histories that clients keep on this machine. They only read; `conversation_log` stores."""
