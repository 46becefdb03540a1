"""Which restricted tokens are told of what was forgotten."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from registry.storage.tables import Number

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_table(
        "edit_token",
        sa.Column("number", Number, sa.ForeignKey("edit.number", ondelete="CASCADE"), primary_key=True),
        sa.Column("token", sa.Text, primary_key=True),
    )
