"""A conversation told shorter: summaries, where it stands, and what is taken along elsewhere."""
