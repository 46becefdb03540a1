"""A registry elsewhere: how far it was read, and which message is which there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "remote",
        sa.Column("url", sa.Text, primary_key=True),
        sa.Column("place", NUMBER, nullable=False),
        sa.Column("sent", NUMBER, nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "remote_message",
        sa.Column("url", sa.Text, primary_key=True),
        sa.Column("number", NUMBER, sa.ForeignKey("conversation.number", ondelete="CASCADE"), primary_key=True),
        sa.Column("id", sa.String(40)),
    )
    op.create_index("ix_remote_message", "remote_message", ["url", "id"])
    op.create_index("ix_remote_message_number", "remote_message", ["number"])
