"""Log to stderr only, because stdout belongs to the protocol, and without message texts, which are private."""

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


RUNS = "runs"  # the logger of executions; `run` of a log record holds the figures of one


class Outage:
    """Logs one line when a service becomes unavailable and one when it is back, for any number of callers."""

    def __init__(self, logger: logging.Logger, *, begun: str, over: str) -> None:
        self._logger, self._begun, self._over = logger, begun, over
        self._is_active = False
        self._ended_at = float("-inf")
        self._lock = threading.Lock()

    def begin(self, why: str, started_at: float) -> None:
        """Log the outage, unless it is logged already or the service has answered since `started_at` (monotonic)."""
        with self._lock:
            if not self._is_active and started_at >= self._ended_at:
                self._is_active = True
                self._logger.warning("%s: %s", self._begun, why)

    def end(self) -> None:
        """Log the end of the outage, if there was one."""
        if self._is_active:  # checked first without the lock, because an outage is rare
            with self._lock:
                if self._is_active:
                    self._is_active, self._ended_at = False, time.monotonic()
                    self._logger.warning("%s", self._over)


class NoMessageFormatter(logging.Formatter):
    """Formats exceptions as types and code positions only: their messages may quote stored text."""

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # drop the text that another handler's formatter has cached
        return super().format(record)

    def formatException(self, ei: object) -> str:
        exc = ei[1] if isinstance(ei, tuple) else None
        return "\n".join(_traceback_lines(exc, {id(exc)})) if isinstance(exc, BaseException) else ""


class JsonFormatter(NoMessageFormatter):
    """A record as one line of JSON: `time`, `level`, `logger`, `message`, and where there are any `execution`,
    `exception` and the figures of a run."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "execution": EXECUTION.get(),
            "exception": self.formatException(record.exc_info) if record.exc_info else None,
            **getattr(record, "run", {}),
        }
        return json.dumps({name: value for name, value in fields.items() if value is not None}, ensure_ascii=False)


FORMATS: dict[LogFormat, logging.Formatter] = {
    "text": NoMessageFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"),
    "json": JsonFormatter(),
}


def _traceback_lines(exc: BaseException, seen: set[int]) -> Iterator[str]:
    cause = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)
    for other in (cause, *(exc.exceptions if isinstance(exc, BaseExceptionGroup) else ())):
        if other and id(other) not in seen:  # a group may be the context of its own member
            seen.add(id(other))
            yield from _traceback_lines(other, seen)
    for frame in traceback.extract_tb(exc.__traceback__):
        yield f"  {frame.filename}:{frame.lineno} in {frame.name}"
    yield f"{type(exc).__module__}.{type(exc).__qualname__}"
