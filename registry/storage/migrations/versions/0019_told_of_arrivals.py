"""PostgreSQL tells who listens that messages or executions were stored, whichever program stored them.

At the end of a transaction, once for all of it. Commits that notify wait for each other, so at any moment at most one
does: who stores something just then says nothing, and the listeners, who were called, find it when they look again.
"""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"

POSTGRESQL = (
    """
    CREATE FUNCTION tell_arrival() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF pg_try_advisory_xact_lock(1668577395) THEN
            PERFORM pg_notify('ctxr', '');
        END IF;
        RETURN NULL;
    END $$
    """,
    # A channel counts its messages: one row for any number of them.
    "CREATE CONSTRAINT TRIGGER tell_messages AFTER UPDATE OF seq_count ON channel DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW EXECUTE FUNCTION tell_arrival()",
    "CREATE CONSTRAINT TRIGGER tell_execution AFTER INSERT ON execution DEFERRABLE INITIALLY DEFERRED"
    " FOR EACH ROW EXECUTE FUNCTION tell_arrival()",
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for statement in POSTGRESQL:
            op.execute(statement)
