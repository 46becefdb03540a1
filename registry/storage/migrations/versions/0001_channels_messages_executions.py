"""Channels with their tags, messages with their index, clients' stores, extract results, executions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None

TIME = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(JSONB(), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

INDEX = {
    "sqlite": (
        "CREATE VIRTUAL TABLE message_index USING"
        " fts5(t, content='', detail=none, tokenize='unicode61 remove_diacritics 0')",
        "CREATE VIRTUAL TABLE message_term USING fts5vocab(message_index, 'row')",
    ),
    "postgresql": (
        "CREATE TABLE message_index (number bigint PRIMARY KEY, tokens tsvector NOT NULL)"
        " WITH (toast_tuple_target = 128)",
        "CREATE INDEX ix_message_index_tokens ON message_index USING gin (tokens)",
    ),
}


def upgrade() -> None:
    op.create_table(
        "channel",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("session_id", sa.Text),
        sa.Column("title", sa.Text),
        sa.Column("nickname", sa.Text, unique=True),
        sa.Column("project_path", sa.Text),
        sa.Column("project_name", sa.Text),
        sa.Column("summary", sa.Text),
        sa.Column("first_message_preview", sa.Text),
        sa.Column("meta", JSON, nullable=False),
        sa.Column("message_count", sa.Integer, nullable=False),
        sa.Column("seq_count", sa.Integer, nullable=False),
        sa.Column("token_count", sa.BigInteger, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("deleted", sa.Boolean, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_channel_updated_at", "channel", ["updated_at", "number"])
    op.create_index("ix_channel_project_path", "channel", ["project_path"])
    op.create_index("ix_channel_session_id", "channel", ["session_id"])
    op.create_table(
        "tag",
        sa.Column("channel_number", NUMBER, sa.ForeignKey("channel.number", ondelete="CASCADE"), primary_key=True),
        sa.Column("name", sa.String(64), primary_key=True),
    )
    op.create_index("ix_tag_name", "tag", ["name"])
    op.create_table(
        "conversation",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("id", sa.String(40), nullable=False, unique=True),
        sa.Column("record_type", sa.String(32), nullable=False),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("timestamp", TIME, nullable=False),
        sa.Column("actor", sa.String(64), nullable=False),
        sa.Column("deleted", sa.Boolean, nullable=False),
        sa.Column("channel_number", NUMBER, sa.ForeignKey("channel.number", ondelete="CASCADE"), nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("place", sa.Float, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("digest", sa.LargeBinary(16), nullable=False),
        sa.Column("received_at", TIME, nullable=False),
        sa.Column("native_id", sa.Text),
        sa.Column("length", sa.Integer, nullable=False),
        sa.Column("analyzer_version", sa.Integer, nullable=False),
        sa.UniqueConstraint("channel_number", "seq"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_conversation_order", "conversation", ["channel_number", "timestamp", "number"])
    op.create_index("ix_conversation_turn", "conversation", ["channel_number", "turn"])
    op.create_index("ix_conversation_place", "conversation", ["channel_number", "place"])
    op.create_index("ix_conversation_digest", "conversation", ["channel_number", "digest"])
    op.create_index("ix_conversation_native_id", "conversation", ["channel_number", "native_id"])
    op.create_index("ix_conversation_timestamp", "conversation", ["timestamp", "number"])
    op.create_table(
        "store",
        sa.Column("source", sa.String(64), primary_key=True),
        sa.Column("path", sa.Text, primary_key=True),
        sa.Column("synced_at", TIME, nullable=False),
        sa.Column("stamp", sa.Text, nullable=False),
        sa.Column("seen", sa.Integer, nullable=False),
        sa.Column("parsed", sa.Integer, nullable=False),
        sa.Column("skipped", JSON, nullable=False),
    )
    op.create_table(
        "store_session",
        sa.Column("source", sa.String(64), primary_key=True),
        sa.Column("path", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("channel_number", NUMBER, sa.ForeignKey("channel.number", ondelete="SET NULL")),
    )
    op.create_table(
        "extract_result",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("id", sa.String(40), nullable=False, unique=True),
        sa.Column("record_type", sa.String(32), nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("result_type", sa.String(16), nullable=False),
        sa.Column("items", JSON, nullable=False),
        sa.Column("metadata", JSON),
        sa.Column("timestamp", TIME, nullable=False),
        sa.Column("deleted", sa.Boolean, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_extract_result_channel", "extract_result", ["channel", "timestamp"])
    op.create_index("ix_extract_result_timestamp", "extract_result", ["timestamp"])
    op.create_table(
        "execution",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("id", sa.String(40), nullable=False, unique=True),
        sa.Column("operation", sa.String(32), nullable=False),
        sa.Column("source", sa.String(64), nullable=False),
        sa.Column("client", sa.Text),
        sa.Column("channel", sa.Text),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("error_code", sa.String(32)),
        sa.Column("error", JSON),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("finished_at", TIME, nullable=False),
        sa.Column("duration_ms", sa.Float, nullable=False),
        sa.Column("request", JSON, nullable=False),
        sa.Column("result", JSON),
        sa.Column("steps", JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_execution_started_at", "execution", ["started_at", "number"])
    op.create_index("ix_execution_operation", "execution", ["operation", "started_at", "duration_ms"])
    op.create_index("ix_execution_channel", "execution", ["channel", "started_at"])
    for statement in INDEX[op.get_bind().dialect.name]:
        op.execute(statement)
