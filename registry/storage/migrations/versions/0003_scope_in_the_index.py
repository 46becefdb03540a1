"""From here on the index knows of every message who said it and when; an empty one is marked as knowing it of all.

A registry with messages is marked by `ctxr db reindex`; until then its filters are asked of the messages themselves.
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"

MARK = {
    "sqlite": "INSERT INTO message_index (rowid, t) SELECT 0, 'zzscoped'",
    "postgresql": "INSERT INTO message_index (number, tokens) SELECT 0, CAST('zzscoped' AS tsvector)",
}


def upgrade() -> None:
    op.execute(f"{MARK[op.get_bind().dialect.name]} WHERE NOT EXISTS (SELECT 1 FROM conversation)")  # noqa: S608
