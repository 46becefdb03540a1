"""Shorten a conversation: summaries, its state, notes and hints, and the part transferred to another client."""
