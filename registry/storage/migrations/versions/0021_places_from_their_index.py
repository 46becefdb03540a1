"""The places of a channel's messages from their index alone: every extraction counts them.

The old index goes first: what has to wait for somebody is tried anew as a whole, and nothing is built in vain.
"""

from __future__ import annotations

from alembic import op

revision = "0021"
down_revision = "0020"

COLUMNS = ["channel_number", "timestamp", "number", "seq", "role", "deleted"]


def upgrade() -> None:
    op.drop_index("ix_conversation_order", "conversation")
    op.create_index("ix_conversation_places", "conversation", COLUMNS)
