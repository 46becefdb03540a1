"""Compose the answer: the relevant part of a conversation within a size, and what is left out of it. Pure."""
