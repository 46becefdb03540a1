"""Let one index of runs by time hold their words, too, and index by token only the runs with one."""

from alembic import op
from sqlalchemy import text

revision = "0027"
down_revision = "0026"

TIME = ("started_at", "number", "operation", "source", "status", "error_code", "duration_ms", "channel")
HAS_TOKEN = text("token IS NOT NULL")


def upgrade() -> None:
    """Build them again; some development registries at 0026 have the new ones already, so each may be missing."""
    for name in ("ix_execution_started_at", "ix_execution_token", "ix_execution_words"):
        op.drop_index(name, "execution", if_exists=True)
    op.create_index("ix_execution_started_at", "execution", [*TIME, "asked", "client"])
    columns = ["token", "started_at"]
    op.create_index("ix_execution_token", "execution", columns, sqlite_where=HAS_TOKEN, postgresql_where=HAS_TOKEN)
