"""The channel in the four tables that only named a message, so that a registry can be shared out by it.

Rows that are there, and those that the release before writes, have none until `ctxr db reindex` fills it in. Where a
message goes to another channel, or an id to another message, the database keeps it right, whichever program did it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from registry.storage.tables import Number

revision = "0020"
down_revision = "0019"

TABLES = ("message_alias", "remote_message", "message_vector")

SQLITE = (
    """
    CREATE TRIGGER follow_message AFTER UPDATE OF channel_number ON conversation
    WHEN OLD.channel_number <> NEW.channel_number BEGIN
        UPDATE message_alias SET channel_number = NEW.channel_number WHERE number = NEW.number;
        UPDATE remote_message SET channel_number = NEW.channel_number WHERE number = NEW.number;
        UPDATE message_vector SET channel_number = NEW.channel_number WHERE message_number = NEW.number;
    END
    """,
    """
    CREATE TRIGGER follow_alias AFTER UPDATE OF number ON message_alias BEGIN
        UPDATE message_alias SET channel_number = (SELECT channel_number FROM conversation WHERE number = NEW.number)
        WHERE id = NEW.id;
    END
    """,
)
POSTGRESQL = (
    "ALTER TABLE message_index ADD COLUMN channel_number bigint",
    """
    CREATE FUNCTION follow_message() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        UPDATE message_alias SET channel_number = NEW.channel_number WHERE number = NEW.number;
        UPDATE remote_message SET channel_number = NEW.channel_number WHERE number = NEW.number;
        UPDATE message_vector SET channel_number = NEW.channel_number WHERE message_number = NEW.number;
        RETURN NULL;
    END $$
    """,
    """
    CREATE FUNCTION follow_alias() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        NEW.channel_number := (SELECT channel_number FROM conversation WHERE number = NEW.number);
        RETURN NEW;
    END $$
    """,
    "CREATE TRIGGER follow_alias BEFORE UPDATE OF number ON message_alias FOR EACH ROW EXECUTE FUNCTION follow_alias()",
    "CREATE TRIGGER follow_message AFTER UPDATE OF channel_number ON conversation FOR EACH ROW"
    " WHEN (OLD.channel_number <> NEW.channel_number) EXECUTE FUNCTION follow_message()",
)


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("channel_number", Number))
    for statement in {"sqlite": SQLITE, "postgresql": POSTGRESQL}[op.get_bind().dialect.name]:
        op.execute(statement)
