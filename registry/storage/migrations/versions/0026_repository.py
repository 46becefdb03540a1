"""Add the repository of a channel's folder, which the next sync finds out."""

from alembic import op
from sqlalchemy import Column, Text

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Add it to the index, too, so that lists and counts of a project go on reading nothing else."""
    op.add_column("channel", Column("repository", Text))
    op.drop_index("ix_channel_project", "channel")
    facts = ("source", "updated_at", "project_name", "message_count", "token_count", "repository")
    op.create_index("ix_channel_project", "channel", ["project_path", "deleted", *facts])
