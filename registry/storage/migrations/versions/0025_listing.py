"""Let the indexes of projects, times and questions hold all that lists, counts and word searches read."""

from alembic import op

revision = "0025"
down_revision = "0024"

PROJECT = ("project_path", "deleted", "source", "updated_at", "project_name", "message_count", "token_count")
WORDS = ("started_at", "number", "asked", "client", "source", "operation")


def upgrade() -> None:
    """Build the new ones before the old ones go; those over messages and runs take about a second for a million."""
    op.create_index("ix_channel_project", "channel", PROJECT)
    op.create_index("ix_conversation_time", "conversation", ["timestamp", "number", "deleted"])
    op.create_index("ix_execution_words", "execution", WORDS)
    op.drop_index("ix_channel_project_path", "channel")
    op.drop_index("ix_conversation_timestamp", "conversation")
    op.drop_index("ix_execution_asked", "execution")
