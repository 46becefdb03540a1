"""Mark messages and edits that came from another person's chat in another registry."""

from alembic import op
from sqlalchemy import Boolean, Column, false

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Add columns with a default: what came before is sent as its machine's own, as before."""
    for table in ("conversation", "edit"):
        op.add_column(table, Column("of_other_person", Boolean, nullable=False, server_default=false()))
