"""Tokens: who may do what, and who read what."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0009"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON().with_variant(JSONB(), "postgresql")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "token",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("id", sa.String(40), nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("digest", sa.LargeBinary(32), nullable=False, unique=True),
        sa.Column("scope", sa.String(16), nullable=False),
        sa.Column("channels", JSON, nullable=False),
        sa.Column("projects", JSON, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("expires_at", TIME),
        sa.Column("revoked_at", TIME),
        sa.Column("used_at", TIME),
        sqlite_autoincrement=True,
    )
    op.add_column("execution", sa.Column("token", sa.Text))
    op.create_index("ix_execution_token", "execution", ["token", "started_at"])
    op.add_column("extract_result", sa.Column("token", sa.Text))
