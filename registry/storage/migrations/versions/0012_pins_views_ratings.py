"""What the pages keep: pinned conversations, saved views, and whether an extract was of use."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "pin",
        sa.Column("channel_number", NUMBER, sa.ForeignKey("channel.number", ondelete="CASCADE"), primary_key=True),
        sa.Column("pinned_at", TIME, nullable=False),
    )
    op.create_table(
        "saved_view",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("id", sa.String(40), nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "rating",
        sa.Column("execution_id", sa.String(40), primary_key=True),
        sa.Column("operation", sa.String(32), nullable=False),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("useful", sa.Boolean, nullable=False),
        sa.Column("rated_at", TIME, nullable=False),
        sa.Column("token", sa.Text),
    )
    op.create_index("ix_rating_rated_at", "rating", ["rated_at"])
