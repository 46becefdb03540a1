"""What a question should have found: the cases by which a registry judges its own searches."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0009"
down_revision = "0008"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "expectation",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("id", sa.String(40), nullable=False, unique=True),
        sa.Column("request", JSON, nullable=False),
        sa.Column("message_number", NUMBER, sa.ForeignKey("conversation.number", ondelete="CASCADE"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_expectation_message_number", "expectation", ["message_number"])
