"""Store the sessions of signed-in browsers."""

from alembic import op
from sqlalchemy import Column, LargeBinary, Text

from registry.storage.column_types import Json, Number, UtcTime

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    op.create_table(
        "page_session",
        Column("digest", LargeBinary(32), primary_key=True),
        Column("token_number", Number),
        Column("person", Text),
        Column("access", Json),
        Column("until", UtcTime, nullable=False),
    )
