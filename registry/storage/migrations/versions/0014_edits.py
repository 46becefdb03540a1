"""What was named, tagged, deleted and forgotten, and when: registries elsewhere are told of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0014"
down_revision = "0013"

TIME = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(JSONB(), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

NICKNAMES = """
INSERT INTO edit (channel_number, field, value, done_at)
SELECT number, 'nickname', {nickname}, updated_at FROM channel
WHERE nickname IS NOT NULL AND NOT deleted
"""
TAGS = """
INSERT INTO edit (channel_number, field, value, done_at)
SELECT channel.number, 'tag:' || tag.name, {true}, updated_at
FROM tag JOIN channel ON channel.number = tag.channel_number WHERE NOT deleted
"""
AS_JSON = {
    "sqlite": {"nickname": "json_quote(nickname)", "true": "'true'"},
    "postgresql": {"nickname": "to_jsonb(nickname)", "true": "'true'::jsonb"},
}


def upgrade() -> None:
    op.create_table(
        "edit",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("channel_number", NUMBER, sa.ForeignKey("channel.number", ondelete="CASCADE")),
        sa.Column("message_number", NUMBER, sa.ForeignKey("conversation.number", ondelete="CASCADE")),
        sa.Column("field", sa.String(80), nullable=False),
        sa.Column("value", JSON, nullable=False),
        sa.Column("done_at", TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_edit_channel_number", "edit", ["channel_number", "field"])
    op.create_index("ix_edit_message_number", "edit", ["message_number"])
    op.create_table(
        "remote_edit",
        sa.Column("url", sa.Text, primary_key=True),
        sa.Column("number", NUMBER, sa.ForeignKey("edit.number", ondelete="CASCADE"), primary_key=True),
        sa.Column("why", sa.Text),
    )
    op.create_index("ix_remote_edit_number", "remote_edit", ["number"])
    op.add_column("remote", sa.Column("edit_place", NUMBER, nullable=False, server_default="0"))
    for statement in (NICKNAMES, TAGS):
        op.execute(statement.format(**AS_JSON[op.get_bind().dialect.name]))
