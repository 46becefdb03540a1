"""Column types that mean the same on both databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, Integer, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect


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
        return value and value.astimezone(UTC)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """Parse SQLite's text at once: an answer reads hundreds of times."""
        if dialect.name == "postgresql":
            return super().result_processor(dialect, coltype)
        return lambda text: None if text is None else datetime.fromisoformat(f"{text}+00:00")


Json = JSON().with_variant(JSONB(), "postgresql")
Number = BigInteger().with_variant(Integer(), "sqlite")  # a running number in order of arrival
