"""A channel keeps the summary that was made of it, by whom, and of which state of its messages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("channel", sa.Column("made_summary", sa.Text))
    op.add_column("channel", sa.Column("made_summary_by", sa.String(64)))
    op.add_column("channel", sa.Column("made_summary_of", sa.String(64)))
