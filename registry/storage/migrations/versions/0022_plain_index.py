"""Drop packed posting lists, channel columns and triggers of registries made before 0021 was edited."""

from __future__ import annotations

from alembic import op
from sqlalchemy import inspect

revision = "0022"
down_revision = "0021"

_TABLES = ("message_alias", "message_vector", "remote_message")


def upgrade() -> None:
    """Drop what is there of it."""
    connection = op.get_bind()
    held = inspect(connection)
    old = [name for name in _TABLES if "channel_number" in {column["name"] for column in held.get_columns(name)}]
    is_server = connection.dialect.name == "postgresql"
    if old and is_server:
        for name in ("note_message_index", "follow_message", "follow_alias", "tell_arrival"):
            op.execute(f"DROP FUNCTION IF EXISTS {name} CASCADE")
        for name in ("block", "token", "noted", "state"):
            op.execute(f"DROP TABLE IF EXISTS message_index_{name}")
        op.execute("DELETE FROM message_index WHERE number = 0")
        op.execute("ALTER TABLE message_index DROP COLUMN IF EXISTS channel_number")
    elif old:
        op.execute("DROP TRIGGER IF EXISTS follow_message")
        op.execute("DROP TRIGGER IF EXISTS follow_alias")
        op.execute(
            "INSERT INTO message_index (message_index, rowid, t)"
            " SELECT 'delete', 0, 'zzscoped' FROM message_index_docsize WHERE id = 0"
        )
    for name in old:
        op.execute(f"ALTER TABLE {name} DROP COLUMN channel_number")
