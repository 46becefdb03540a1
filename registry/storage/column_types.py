"""Column types with the same meaning on both databases."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, Integer, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect

from registry.domain import format_time


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC datetime on both databases; SQLite keeps it as text without an offset."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(DateTime(timezone=dialect.name == "postgresql"))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None or dialect.name == "postgresql":
            return value
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


def shown(row: Any, *names: str) -> dict[str, Any]:
    """Return some columns of a row as JSON values: times are ISO 8601."""
    values = ((name, getattr(row, name)) for name in names)
    return {name: format_time(value) if isinstance(value, datetime) else value for name, value in values}


Json = JSON().with_variant(JSONB(), "postgresql")
Number = BigInteger().with_variant(Integer(), "sqlite")  # a running number in order of arrival
