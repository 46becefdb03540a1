"""Numbered changes to the tables. They only grow: a shipped one is never edited."""

HEAD = "0021"
"""The newest revision; known without importing Alembic, which only a migration needs."""
