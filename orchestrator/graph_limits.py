"""How often the graph tries what is outside."""

OUTSIDE_ATTEMPTS = 3
"""A system that is away for a moment is tried so many times in one run."""
