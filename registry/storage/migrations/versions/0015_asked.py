"""What was asked, beside the record of a run: found without reading a million records."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0015"
down_revision = "0014"

RUNS = sa.table(
    "execution",
    sa.column("request", sa.JSON().with_variant(JSONB(), "postgresql")),
    sa.column("asked", sa.String),
)


def upgrade() -> None:
    op.execute(
        "UPDATE execution SET client = substr(client, 1, 200) WHERE length(client) > 200"
    )  # an index has no room
    op.add_column("execution", sa.Column("asked", sa.String(200), nullable=False, server_default=""))
    said = RUNS.c.request["query"]["text"].as_string()
    op.execute(sa.update(RUNS).where(said.is_not(None)).values(asked=sa.func.substr(said, 1, 200)))
    op.create_index("ix_execution_asked", "execution", ["started_at", "number", "asked", "client"])
