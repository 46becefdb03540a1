"""Packed lists of the commonest words beside the index of PostgreSQL, and a note of every message that is indexed anew.

The notes are taken by the database itself, so that programs that know nothing of the lists need not know of them.
"""

from __future__ import annotations

from alembic import op

revision = "0018"
down_revision = "0017"

POSTGRESQL = (
    "CREATE TABLE message_index_state (index_oid oid NOT NULL, newest bigint NOT NULL, next_block integer,"
    " version uuid NOT NULL DEFAULT gen_random_uuid())",
    'CREATE TABLE message_index_token (token text COLLATE "C" PRIMARY KEY, usable boolean NOT NULL)',
    "CREATE TABLE message_index_block ("
    ' token text COLLATE "C", block integer, numbers bytea NOT NULL, PRIMARY KEY (token, block))',
    "ALTER TABLE message_index_block ALTER COLUMN numbers SET STORAGE PLAIN",
    "CREATE INDEX ix_message_index_block_block ON message_index_block (block)",
    "CREATE TABLE message_index_noted (number bigint NOT NULL)",
    """
    CREATE FUNCTION note_message_index() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        IF TG_OP = 'TRUNCATE' THEN
            DELETE FROM message_index_state;
        ELSE
            INSERT INTO message_index_noted SELECT number FROM changed WHERE number > 0;
        END IF;
        RETURN NULL;
    END $$
    """,
    "CREATE TRIGGER note_insert AFTER INSERT ON message_index REFERENCING NEW TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION note_message_index()",
    "CREATE TRIGGER note_delete AFTER DELETE ON message_index REFERENCING OLD TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION note_message_index()",
    "CREATE TRIGGER note_update AFTER UPDATE ON message_index REFERENCING NEW TABLE AS changed"
    " FOR EACH STATEMENT EXECUTE FUNCTION note_message_index()",
    "CREATE TRIGGER note_truncate AFTER TRUNCATE ON message_index"
    " FOR EACH STATEMENT EXECUTE FUNCTION note_message_index()",
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for statement in POSTGRESQL:
            op.execute(statement)
