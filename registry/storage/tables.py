"""The tables for queries on both databases. Migrations create them."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.schema import SchemaItem

from registry.domain import Role
from registry.storage.column_types import Json, Number, UtcTime

metadata = MetaData()


def _table(name: str, *parts: SchemaItem, **options: Any) -> Table:
    return Table(name, metadata, *parts, **options)


def _numbered(name: str, *parts: SchemaItem) -> Table:
    """Define a table whose rows have an ascending number, which is never reused."""
    return _table(name, Column("number", Number, primary_key=True), *parts, sqlite_autoincrement=True)


channel = _numbered(
    "channel",
    Column("name", Text, nullable=False, unique=True),
    Column("source", String(64), nullable=False),
    Column("session_id", Text),
    Column("title", Text),
    Column("nickname", Text, unique=True),
    Column("project_path", Text),
    Column("project_name", Text),
    Column("repository", Text),  # digest that identifies a moved or cloned folder; NULL: unknown
    Column("summary", Text),  # the client's own
    Column("made_summary", Text),
    Column("made_summary_by", String(64)),
    Column("made_summary_of", String(64)),  # `content_state` it was made from; outdated if the channel's differs
    Column("first_message_preview", Text),
    Column("meta", Json, nullable=False),
    Column("message_count", Integer, nullable=False),
    Column("seq_count", Integer, nullable=False),  # the next message's seq: counts deleted ones too
    Column("token_count", BigInteger, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    Column("last_accessed", UtcTime),  # time of the last delivery to a caller
    Column("access_count", Integer, nullable=False, server_default="0"),
    Column("tokens_delivered", BigInteger, nullable=False, server_default="0"),
    Column("deleted", Boolean, nullable=False),
    Column("owner", Text),  # the person whose token created it; NULL: this machine's user, or unknown
    Column("shared_with", String(16)),  # "project" or "team"; NULL: only its owner sees it
    Column("shared_until", UtcTime),
    Index("ix_channel_updated_at", "updated_at", "number"),
    Index(  # a covering index for lists, counts and sums of channels
        "ix_channel_project",
        "project_path",
        "deleted",
        "source",
        "updated_at",
        "project_name",
        "message_count",
        "token_count",
        "repository",
    ),
    Index("ix_channel_session_id", "session_id"),
)

channel_alias = _table(  # other names of a channel: those that tools used before it was recognised
    "channel_alias",
    Column("name", Text, primary_key=True),
    Column("channel_number", Number, ForeignKey("channel.number", ondelete="CASCADE"), nullable=False),
    Index("ix_channel_alias_channel_number", "channel_number"),
)

channel_link = _table(  # two channels that may be one conversation: one named by a tool, and a session
    "channel_link",
    # The column keeps its first name.
    Column("told", Number, ForeignKey("channel.number", ondelete="CASCADE"), primary_key=True, key="named"),
    Column("session", Number, ForeignKey("channel.number", ondelete="CASCADE"), primary_key=True),
    Index("ix_channel_link_session", "session"),
)

tag = _table(
    "tag",
    Column("channel_number", Number, ForeignKey("channel.number", ondelete="CASCADE"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Index("ix_tag_name", "name"),
)

conversation = _numbered(
    "conversation",
    Column("id", String(40), nullable=False, unique=True),
    Column("record_type", String(32), nullable=False),
    Column("source", String(64), nullable=False),
    Column("channel", Text, nullable=False),
    Column("payload", Json, nullable=False),
    Column("timestamp", UtcTime, nullable=False),
    Column("actor", String(64), nullable=False),
    Column("deleted", Boolean, nullable=False),
    Column("channel_number", Number, ForeignKey("channel.number", ondelete="CASCADE"), nullable=False),
    Column("seq", Integer, nullable=False),
    Column("turn", Integer, nullable=False),
    Column("place", Float, nullable=False),
    Column("role", String(16), nullable=False),
    Column("text", Text, nullable=False),
    Column("digest", LargeBinary(16), nullable=False),
    Column("received_at", UtcTime, nullable=False),
    Column("native_id", Text),
    Column("length", Integer, nullable=False),
    Column("analyzer_version", Integer, nullable=False),
    Column("with_channel", Boolean, nullable=False, server_default=false()),  # deleted together with its channel
    Column(
        "forgotten", Boolean, nullable=False, server_default=false()
    ),  # its text is removed, and a resend is refused
    # came from another person's chat in another registry: never sent to one as this person's words
    Column("of_other_person", Boolean, nullable=False, server_default=false()),
    UniqueConstraint("channel_number", "seq"),
    # Orders messages; also a covering index for extractions, which count a channel's messages of some roles.
    Index("ix_conversation_places", "channel_number", "timestamp", "number", "seq", "role", "deleted"),
    Index("ix_conversation_turn", "channel_number", "turn"),
    Index("ix_conversation_place", "channel_number", "place"),
    Index("ix_conversation_digest", "channel_number", "digest"),
    Index("ix_conversation_native_id", "channel_number", "native_id"),
    Index("ix_conversation_time", "timestamp", "number", "deleted"),
)

message_alias = _table(  # ids of duplicates that were merged into another message
    "message_alias",
    Column("id", String(40), primary_key=True),
    Column("number", Number, ForeignKey("conversation.number", ondelete="CASCADE"), nullable=False),
    Index("ix_message_alias_number", "number"),
)

edit = _numbered(  # the latest edit of each field of a channel or message, and its time
    "edit",
    Column("channel_number", Number, ForeignKey("channel.number", ondelete="CASCADE")),
    Column("message_number", Number, ForeignKey("conversation.number", ondelete="CASCADE")),
    Column("field", String(80), nullable=False),  # title, nickname, tag:NAME, deleted, forgotten
    Column("value", Json, nullable=False),
    Column("done_at", UtcTime, nullable=False),  # by the clock of the machine that made the edit
    Column("of_other_person", Boolean, nullable=False, server_default=false()),  # as of a message
    Index("ix_edit_channel_number", "channel_number", "field"),
    Index("ix_edit_message_number", "message_number"),
)

remote_edit = _table(  # edits sent to another registry; `why`: the reason of a refusal
    "remote_edit",
    Column("url", Text, primary_key=True),
    Column("number", Number, ForeignKey("edit.number", ondelete="CASCADE"), primary_key=True),
    Column("why", Text),
    Index("ix_remote_edit_number", "number"),
)

edit_token = _table(  # restricted tokens that get an edit about forgotten messages: those that could see them
    "edit_token",
    Column("number", Number, ForeignKey("edit.number", ondelete="CASCADE"), primary_key=True),
    Column("token", Text, primary_key=True),
)

registry_key = _table(  # 1: key of marks and of forgotten digests; 2: random bytes of the feed positions' state
    "registry_key", Column("number", Integer, primary_key=True), Column("key", LargeBinary, nullable=False)
)

forgotten = _table(  # keyed digests of forgotten names, sessions, messages and records
    "forgotten",
    Column("digest", LargeBinary(16), primary_key=True),
    Column("what", String(16), nullable=False),
    Column("receipt", String(40), nullable=False),
    Column("forgotten_at", UtcTime, nullable=False),
    Index("ix_forgotten_receipt", "receipt"),
)

expectation = _numbered(  # test cases: a question and the expected message
    "expectation",
    Column("id", String(40), nullable=False, unique=True),
    Column("request", Json, nullable=False),
    Column("message_number", Number, ForeignKey("conversation.number", ondelete="CASCADE"), nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Index("ix_expectation_message_number", "message_number"),
)

pin = _table(  # pinned conversations
    "pin",
    Column("channel_number", Number, ForeignKey("channel.number", ondelete="CASCADE"), primary_key=True),
    Column("pinned_at", UtcTime, nullable=False),
)

saved_view = _numbered(  # filters of a list, with a name
    "saved_view",
    Column("id", String(40), nullable=False, unique=True),
    Column("name", Text, nullable=False, unique=True),
    Column("address", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
)

rating = _table(  # ratings of executions; kept when the execution is deleted
    "rating",
    Column("execution_id", String(40), primary_key=True),
    Column("operation", String(32), nullable=False),
    Column("source", String(64), nullable=False),
    Column("useful", Boolean, nullable=False),
    Column("rated_at", UtcTime, nullable=False),
    Column("token", Text),
    Index("ix_rating_rated_at", "rated_at"),
)

store = _table(
    "store",
    Column("source", String(64), primary_key=True),
    Column("path", Text, primary_key=True),
    Column("synced_at", UtcTime, nullable=False),
    Column("stamp", Text, nullable=False),
    Column("seen", Integer, nullable=False),
    Column("parsed", Integer, nullable=False),
    Column("skipped", Json, nullable=False),
)

store_session = _table(
    "store_session",
    Column("source", String(64), primary_key=True),
    Column("path", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("channel_number", Number, ForeignKey("channel.number", ondelete="SET NULL")),
)

extract_result = _numbered(
    "extract_result",
    Column("id", String(40), nullable=False, unique=True),
    Column("record_type", String(32), nullable=False),
    Column("channel", Text, nullable=False),
    Column("result_type", String(16), nullable=False),
    Column("items", Json, nullable=False),
    Column("metadata", Json),
    Column("timestamp", UtcTime, nullable=False),
    Column("deleted", Boolean, nullable=False),
    Column("token", Text),
    Index("ix_extract_result_channel", "channel", "timestamp"),
    Index("ix_extract_result_timestamp", "timestamp"),
)

_OUTCOME = ("operation", "source", "status", "error_code", "duration_ms")
_HAS_TOKEN = text("token IS NOT NULL")

execution = _numbered(
    "execution",
    Column("id", String(40), nullable=False, unique=True),
    Column("operation", String(32), nullable=False),
    Column("source", String(64), nullable=False),
    Column("client", Text),
    Column("channel", Text),
    Column("status", String(16), nullable=False),
    Column("error_code", String(32)),
    Column("error", Json),
    Column("started_at", UtcTime, nullable=False),
    Column("finished_at", UtcTime, nullable=False),
    Column("duration_ms", Float, nullable=False),
    Column("duration_rounded", Float, nullable=False, server_default="0"),  # two significant digits
    Column("request", Json, nullable=False),
    Column("result", Json),
    Column("steps", Json, nullable=False),
    Column("token", Text),  # the name of the caller's token; NULL: none was needed
    Column("asked", String(200), nullable=False, server_default=""),  # the beginning of the question
    # Covering indexes for lists and statistics.
    Index("ix_execution_started_at", "started_at", "number", *_OUTCOME, "channel", "asked", "client"),
    Index("ix_execution_operation", "operation", "started_at", "number", "source", "status", "channel"),
    Index("ix_execution_channel", "channel", "started_at", "number", *_OUTCOME),
    Index("ix_execution_token", "token", "started_at", sqlite_where=_HAS_TOKEN, postgresql_where=_HAS_TOKEN),
)

token = _numbered(  # access tokens; the secrets are not stored
    "token",
    Column("id", String(40), nullable=False, unique=True),
    Column("name", Text, nullable=False, unique=True),
    Column("digest", LargeBinary(32), nullable=False, unique=True),
    Column("scope", String(16), nullable=False),
    Column("channels", Json, nullable=False),
    Column("projects", Json, nullable=False),
    Column("owner", Text),  # the person; NULL: a person with the token's name
    Column("per_minute", Integer),  # limit of requests; 0: no limit, NULL: the setting
    Column("created_at", UtcTime, nullable=False),
    Column("expires_at", UtcTime),
    Column("revoked_at", UtcTime),
    Column("used_at", UtcTime),
)

page_session = _table(  # signed-in browsers, by a token or at the OAuth issuer
    "page_session",
    Column("digest", LargeBinary(32), primary_key=True),
    Column("token_number", Number),  # NULL: signed in at the OAuth issuer, with `access`
    Column("person", Text),
    Column("access", Json),
    Column("until", UtcTime, nullable=False),
)

remote = _table(  # addresses of other registries, and the progress of the exchange
    "remote",
    Column("url", Text, primary_key=True),
    Column("place", Number, nullable=False),
    Column("sent", Number, nullable=False),  # all messages up to this number were sent or refused
    Column("answered_at", UtcTime, nullable=False),
    Column("edit_place", Number, nullable=False, server_default="0"),  # position in the other registry's edits
    Column("registry", Text),  # id of the registry to which the records of this url belong; NULL: unknown
    Column("known_as", Text),  # url under which that registry's records are stored; NULL: this one
)

remote_message = _table(  # ids of messages in the other registry; NULL: refused there
    "remote_message",
    Column("url", Text, primary_key=True),
    Column("number", Number, ForeignKey("conversation.number", ondelete="CASCADE"), primary_key=True),
    Column("id", String(40)),
    Index("ix_remote_message", "url", "id"),
    Index("ix_remote_message_number", "number"),
)

message_image = _table(  # the images of messages, by their place in the payload's `attachments`
    "message_image",
    Column("number", Number, ForeignKey("conversation.number", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("digest", LargeBinary(32), nullable=False),
    Index("ix_message_image_digest", "digest"),
)

image = _table(
    "image",
    Column("digest", LargeBinary(32), primary_key=True),  # SHA-256 of the content
    Column("content", LargeBinary, nullable=False),
)

embedding_model = _numbered(
    "embedding_model",
    Column("name", Text, nullable=False, unique=True),
    Column("dimensions", Integer, nullable=False),
    Column("calibration", Integer, nullable=False),
    Column("background", Float, nullable=False),
    Column("spread", Float, nullable=False),
    Column("holder", String(40)),
    Column("held_until", UtcTime),
)

message_vector = _numbered(  # rows added since a process last read have larger numbers
    "message_vector",
    Column("message_number", Number, ForeignKey("conversation.number", ondelete="CASCADE"), nullable=False),
    Column("model_number", Number, ForeignKey("embedding_model.number", ondelete="CASCADE"), nullable=False),
    Column("digest", LargeBinary(16), nullable=False),  # of the text it was made from
    Column("vector", LargeBinary, nullable=False),  # int8, of any length; empty: the text cannot be embedded
    UniqueConstraint("message_number", "model_number"),
)

# messages that get vectors; tool output is long and expensive to embed
EMBEDDABLE = (
    conversation.c.deleted.is_(False),
    conversation.c.role.in_([Role.USER.value, Role.ASSISTANT.value]),
    conversation.c.length > 0,
)
