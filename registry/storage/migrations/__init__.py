"""Numbered changes to the tables. They only grow: one that was released is never edited."""

FIRST = "0023"  # the revision that makes all tables
HEAD = "0029"  # the newest revision; known without importing Alembic, which only a migration needs
