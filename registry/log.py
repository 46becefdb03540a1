"""Logging: to stderr only, because stdout belongs to the protocol; and never message texts, which are private."""

import json
import logging
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["text", "json"]

EXECUTION: ContextVar[str | None] = ContextVar("EXECUTION", default=None)  # id of the current run


def set_up_logging(log_format: LogFormat = "text") -> None:
    """Log warnings and errors to stderr, as text or JSON; as JSON also each execution."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FORMATS[log_format])
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(RUNS).setLevel(logging.INFO if log_format == "json" else logging.WARNING)


RUNS = "runs"  # the logger of executions; a record's `run` has the figures of one


class Outage:
    """Logs once when something becomes unavailable, and once when it is back, however many callers notice."""

    def __init__(self, logger: logging.Logger, *, begun: str, over: str) -> None:
        self._logger, self._begun, self._over = logger, begun, over
        self._is_on = False
        self._over_at = float("-inf")
        self._turn = threading.Lock()

    def begins(self, why: str, asked_at: float) -> None:
        """Log that it did not answer, unless that was logged, or it has answered since `asked_at` (monotonic)."""
        with self._turn:
            if not self._is_on and asked_at >= self._over_at:
                self._is_on = True
                self._logger.warning("%s: %s", self._begun, why)

    def is_over(self) -> None:
        """Log that it answers again, if it did not before."""
        if self._is_on:  # usually not: no lock is taken for that
            with self._turn:
                if self._is_on:
                    self._is_on, self._over_at = False, time.monotonic()
                    self._logger.warning("%s", self._over)


class WithoutTexts(logging.Formatter):
    """Formats an exception by its kind and places only: its message may quote stored text."""

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # where another handler leaves what it made of the exception
        return super().format(record)

    def formatException(self, ei: object) -> str:
        exc = ei[1] if isinstance(ei, tuple) else None
        return "\n".join(_lines(exc)) if isinstance(exc, BaseException) else ""


class JsonLines(WithoutTexts):
    """A record as one line of JSON: `time`, `level`, `logger`, `message`, and where there are any `execution`,
    `exception` and the figures of a run."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "execution": EXECUTION.get(),
            "exception": self.formatException(record.exc_info) if record.exc_info else None,
            **getattr(record, "run", {}),
        }
        return json.dumps({name: value for name, value in said.items() if value is not None}, ensure_ascii=False)


FORMATS: dict[LogFormat, logging.Formatter] = {
    "text": WithoutTexts("%(asctime)s %(levelname)s %(name)s: %(message)s"),
    "json": JsonLines(),
}


def _lines(exc: BaseException) -> Iterator[str]:
    before = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)
    if before:
        yield from _lines(before)
    for inner in exc.exceptions if isinstance(exc, BaseExceptionGroup) else ():
        yield from _lines(inner)
    for frame in traceback.extract_tb(exc.__traceback__):
        yield f"  {frame.filename}:{frame.lineno} in {frame.name}"
    yield f"{type(exc).__module__}.{type(exc).__qualname__}"
