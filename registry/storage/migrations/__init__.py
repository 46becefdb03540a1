"""Numbered revisions of the tables. A released revision is never edited."""

FIRST = "0031"  # the revision that creates all tables
HEAD = "0032"  # the newest revision, available without importing Alembic
