"""What marks of secrets are made with, and what was forgotten: by digests, never by its words."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "registry_key",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("key", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "forgotten",
        sa.Column("digest", sa.LargeBinary(16), primary_key=True),
        sa.Column("what", sa.String(16), nullable=False),
        sa.Column("receipt", sa.String(40), nullable=False),
        sa.Column("forgotten_at", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_forgotten_receipt", "forgotten", ["receipt"])
    op.add_column("conversation", sa.Column("forgotten", sa.Boolean, nullable=False, server_default=sa.false()))
