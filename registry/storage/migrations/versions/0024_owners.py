"""Add the owner of a channel and whom it is shared with, and the person who holds a token."""

from alembic import op
from sqlalchemy import Column, String, Text

from registry.storage.column_types import UtcTime

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Add nullable columns: what was stored before has no owner, and stays visible as it was."""
    for column in (Column("owner", Text), Column("shared_with", String(16)), Column("shared_until", UtcTime)):
        op.add_column("channel", column)
    op.add_column("token", Column("owner", Text))
