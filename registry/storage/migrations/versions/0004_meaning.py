"""Vectors of what messages mean, by embedding model: derived, and only there for who asked for it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "embedding_model",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("dimensions", sa.Integer, nullable=False),
        sa.Column("calibration", sa.Integer, nullable=False),
        sa.Column("background", sa.Float, nullable=False),
        sa.Column("spread", sa.Float, nullable=False),
        sa.Column("holder", sa.String(40)),
        sa.Column("held_until", sa.DateTime(timezone=True)),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "message_vector",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("message_number", NUMBER, sa.ForeignKey("conversation.number", ondelete="CASCADE"), nullable=False),
        sa.Column("model_number", NUMBER, sa.ForeignKey("embedding_model.number", ondelete="CASCADE"), nullable=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("message_number", "model_number"),
        sqlite_autoincrement=True,
    )
