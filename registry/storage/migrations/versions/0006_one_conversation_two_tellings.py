"""A conversation told twice is one channel: its other names, its messages' other ids, and what may be the same."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "channel_alias", sa.Column("name", sa.Text, primary_key=True), _points_to("channel_number", "channel")
    )
    op.create_index("ix_channel_alias_channel_number", "channel_alias", ["channel_number"])
    op.create_table("channel_link", _points_to("told", "channel", True), _points_to("session", "channel", True))
    op.create_index("ix_channel_link_session", "channel_link", ["session"])
    op.create_table(
        "message_alias", sa.Column("id", sa.String(40), primary_key=True), _points_to("number", "conversation")
    )
    op.create_index("ix_message_alias_number", "message_alias", ["number"])


def _points_to(name: str, table: str, primary_key: bool = False) -> sa.Column[int]:
    target = sa.ForeignKey(f"{table}.number", ondelete="CASCADE")
    return sa.Column(name, NUMBER, target, primary_key=primary_key, nullable=False)
