"""PostgreSQL samples more of the index, so that it knows of the five thousand commonest words how many hold them."""

from __future__ import annotations

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE message_index ALTER COLUMN tokens SET STATISTICS 500")
