"""Numbered changes to the tables. They only grow: one that was released is never edited."""

FIRST = "0021"  # the revision that makes all tables; it continues the numbers of the development before 0.1.0.
HEAD = "0023"  # the newest revision; known without importing Alembic, which only a migration needs
