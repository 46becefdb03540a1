"""Statistics of a million executions: a duration rounded to be counted by, and indexes that answer alone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

ROUNDED = {
    "sqlite": "CAST(printf('%.1e', duration_ms) AS REAL)",
    "postgresql": "CAST(to_char(duration_ms, '9.9EEEE') AS double precision)",
}
INDEXES = {
    "started_at": ["started_at", "number", "operation", "source", "status", "error_code", "duration_ms", "channel"],
    "operation": ["operation", "started_at", "number", "source", "status", "channel"],
    "channel": ["channel", "started_at", "number", "operation", "source", "status", "error_code", "duration_ms"],
    "figures": ["operation", "source", "error_code", "duration_rounded", "started_at"],
}


def upgrade() -> None:
    for name in ("started_at", "operation", "channel"):
        op.drop_index(f"ix_execution_{name}", "execution")
    op.add_column("execution", sa.Column("duration_rounded", sa.Float, nullable=False, server_default="0"))
    op.execute(f"UPDATE execution SET duration_rounded = {ROUNDED[op.get_bind().dialect.name]}")  # noqa: S608
    for name, columns in INDEXES.items():
        op.create_index(f"ix_execution_{name}", "execution", columns)
