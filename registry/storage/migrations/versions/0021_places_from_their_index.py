"""The places of a channel's messages from their index alone: every extraction counts them.

The old index goes last: who reads waits for a moment then, and not while the new one is built.
"""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"

COLUMNS = ["channel_number", "timestamp", "number", "seq", "role", "deleted"]


def upgrade() -> None:
    op.create_index("ix_conversation_places", "conversation", COLUMNS)
    op.drop_index("ix_conversation_order", "conversation")
