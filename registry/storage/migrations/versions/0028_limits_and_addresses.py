"""Add a token's own limit of requests, and the id of the registry that answers at an address."""

from alembic import op
from sqlalchemy import Column, Integer, Text

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Add nullable columns: a token has the limit of the settings, an address is the only one of its registry."""
    op.add_column("token", Column("per_minute", Integer))
    op.add_column("remote", Column("registry", Text))
    op.add_column("remote", Column("known_as", Text))
