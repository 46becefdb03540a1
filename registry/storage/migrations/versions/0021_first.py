"""All tables of 0.1.0, with the index, its triggers and those that notify listeners."""

from __future__ import annotations

from pathlib import Path

from alembic import op

revision = "0021"
down_revision = None


def upgrade() -> None:
    """Run the statements for this database."""
    connection = op.get_bind()
    file = Path(__file__).with_name(f"first.{connection.dialect.name}.sql")
    for statement in file.read_text(encoding="utf-8").split(";\n\n"):
        connection.exec_driver_sql(statement)
