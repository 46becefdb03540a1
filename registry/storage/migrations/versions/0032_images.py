"""Add the images of messages."""

from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Create the tables `image` and `message_image`."""
    number, content = ("INTEGER", "BLOB") if op.get_bind().dialect.name == "sqlite" else ("BIGINT", "BYTEA")
    op.execute(f"CREATE TABLE image (digest {content} NOT NULL PRIMARY KEY, content {content} NOT NULL)")
    op.execute(
        f"CREATE TABLE message_image (number {number} NOT NULL, position INTEGER NOT NULL, digest {content} NOT NULL,"
        " PRIMARY KEY (number, position), FOREIGN KEY(number) REFERENCES conversation (number) ON DELETE CASCADE)"
    )
    op.execute("CREATE INDEX ix_message_image_digest ON message_image (digest)")
