"""Compose the answer: the relevant part of a conversation within a size, and the amount that is left out."""
