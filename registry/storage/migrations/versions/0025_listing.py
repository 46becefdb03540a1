"""Let the indexes of projects and of times hold what lists of channels and counts by day read."""

from __future__ import annotations

from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Build the new ones before the old ones go; that over messages takes about a second for a million."""
    op.create_index(
        "ix_channel_project", "channel", ["project_path", "deleted", "source", "updated_at", "project_name"]
    )
    op.create_index("ix_conversation_time", "conversation", ["timestamp", "number", "deleted"])
    op.drop_index("ix_channel_project_path", "channel")
    op.drop_index("ix_conversation_timestamp", "conversation")
