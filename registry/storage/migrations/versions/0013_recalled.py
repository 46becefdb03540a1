"""When a session was last recalled, and how often; when each scheduled job was last begun."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("channel", sa.Column("last_accessed", sa.DateTime(timezone=True)))
    op.add_column("channel", sa.Column("access_count", sa.Integer, nullable=False, server_default="0"))
    op.add_column("channel", sa.Column("tokens_delivered", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "schedule",
        sa.Column("job", sa.String(64), primary_key=True),
        sa.Column("due", sa.DateTime(timezone=True), nullable=False),
    )
