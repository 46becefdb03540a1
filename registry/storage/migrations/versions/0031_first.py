"""Create all tables of 0.1.0, the message index, and the triggers that refuse writes of older programs.

A program says its revision in each connection (SQLite: the function `ctxr_writer`, PostgreSQL: the setting
`ctxr.writer`). A later revision that the release before it must not write beside replaces the triggers with its own
number.
"""

from pathlib import Path

from alembic import op

revision = "0031"  # continues the numbers of the development before 0.1.0
down_revision = None

_WORDS = {
    "sqlite": {
        "serial": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
        "small_serial": "INTEGER",
        "number": "INTEGER",
        "json": "JSON",
        "time": "DATETIME",
        "bytes": "BLOB",
        "false": "0",
    },
    "postgresql": {
        "serial": "BIGSERIAL PRIMARY KEY",
        "small_serial": "SERIAL",
        "number": "BIGINT",
        "json": "JSONB",
        "time": "TIMESTAMP WITH TIME ZONE",
        "bytes": "BYTEA",
        "false": "false",
    },
}
"""The words in braces in `first.sql`."""

_INDEX = {
    "sqlite": (
        "CREATE VIRTUAL TABLE message_index USING"
        " fts5(t, content='', detail=none, tokenize='unicode61 remove_diacritics 0')",
        "CREATE VIRTUAL TABLE message_term USING fts5vocab(message_index, 'row')",
    ),
    "postgresql": (
        "CREATE TABLE message_index (number BIGINT PRIMARY KEY, tokens TSVECTOR NOT NULL)"
        " WITH (toast_tuple_target = 128)",
        "CREATE INDEX ix_message_index_tokens ON message_index USING gin (tokens)",
    ),
}

_GUARDED = {
    "conversation": ("INSERT", "UPDATE OF text"),
    "channel": ("INSERT",),
    "execution": ("INSERT",),
    "extract_result": ("INSERT",),
}
"""The statements that triggers refuse, by table."""
_WHY = "The registry was upgraded by a newer version of Context Registry: end this program and update it"


def upgrade() -> None:
    """Run the statements for this database."""
    connection = op.get_bind()
    dialect = connection.dialect.name
    tables = Path(__file__).with_name("first.sql").read_text(encoding="utf-8").format(**_WORDS[dialect])
    for statement in (*tables.split(";\n\n"), *_INDEX[dialect]):
        connection.exec_driver_sql(statement)
    if dialect == "postgresql":
        op.execute(
            "CREATE FUNCTION refuse_older_writers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF coalesce(nullif(current_setting('ctxr.writer', true), ''), '0')::int < {int(revision)} THEN"
            f" RAISE EXCEPTION '{_WHY}'; END IF; RETURN NULL; END $$"
        )
        then = "FOR EACH STATEMENT EXECUTE FUNCTION refuse_older_writers()"
    else:
        then = f"WHEN ctxr_writer() < {int(revision)} BEGIN SELECT RAISE(ABORT, '{_WHY}'); END"
    for table, events in _GUARDED.items():
        for event in events:
            name = f"refuse_older_{table}_{event.split()[0].lower()}"
            op.execute(f"CREATE TRIGGER {name} BEFORE {event} ON {table} {then}")
