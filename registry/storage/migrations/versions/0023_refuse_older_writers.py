"""Refuse writes of programs older than this revision that still run after the upgrade.

A program says its revision in each connection (SQLite: the function `ctxr_writer`, PostgreSQL: the setting
`ctxr.writer`). One from before does not, and is refused as well. A later revision that the release before it must not
write beside replaces these triggers with its own number.
"""

from __future__ import annotations

from alembic import op

revision = "0023"
down_revision = "0022"

_EVENTS = {
    "conversation": ("INSERT", "UPDATE OF text"),
    "channel": ("INSERT",),
    "execution": ("INSERT",),
    "extract_result": ("INSERT",),
}
_WHY = "The registry was upgraded by a newer version of Context Registry: end this program and update it"


def upgrade() -> None:
    """Make the triggers."""
    is_server = op.get_bind().dialect.name == "postgresql"
    if is_server:
        op.execute(
            "CREATE OR REPLACE FUNCTION refuse_older_writers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF coalesce(nullif(current_setting('ctxr.writer', true), ''), '0')::int < {int(revision)} THEN"
            f" RAISE EXCEPTION '{_WHY}'; END IF; RETURN NULL; END $$"
        )
    for table, events in _EVENTS.items():
        for event in events:
            name = f"refuse_older_{table}_{event.split()[0].lower()}"
            if is_server:
                drop, how = f"{name} ON {table}", "FOR EACH STATEMENT EXECUTE FUNCTION refuse_older_writers()"
            else:
                drop, how = name, f"WHEN ctxr_writer() < {int(revision)} BEGIN SELECT RAISE(ABORT, '{_WHY}'); END"
            op.execute(f"DROP TRIGGER IF EXISTS {drop}")
            op.execute(f"CREATE TRIGGER {name} BEFORE {event} ON {table} {how}")
