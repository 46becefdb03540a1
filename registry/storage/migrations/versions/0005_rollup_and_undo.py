"""Old executions as figures per hour; and which messages were deleted only because their channel was."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

TIME = sa.DateTime(timezone=True)
KEY = ["hour", "operation", "source", "error_code", "duration_ms"]


def upgrade() -> None:
    op.create_table(
        "execution_rollup",
        sa.Column("hour", TIME, nullable=False),
        sa.Column("operation", sa.String(32), nullable=False),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("error_code", sa.String(32), nullable=False),
        sa.Column("duration_ms", sa.Float, nullable=False),
        sa.Column("runs", sa.Integer, nullable=False),
        sa.Column("total_ms", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint(*KEY),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_execution_rollup_figures", "execution_rollup", [*KEY[1:], "hour", "runs"])
    op.add_column("conversation", sa.Column("with_channel", sa.Boolean, nullable=False, server_default=sa.false()))
    # Which of them were taken out before their channel is not known any more.
    op.execute(
        "UPDATE conversation SET with_channel = true WHERE deleted"
        " AND channel_number IN (SELECT number FROM channel WHERE deleted)"
    )
