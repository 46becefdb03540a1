"""Drop the index of runs by outcome: statistics count a period, for which the index by time is enough."""

from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """Drop it."""
    op.drop_index("ix_execution_figures", "execution")
