"""Trace executions as OpenTelemetry spans if that is turned on; otherwise OpenTelemetry is not imported.

The MCP SDK and FastAPI make the spans of their requests themselves; ours hang below them: the run, its nodes, its SQL.
No span holds what was said, nor what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from registry.errors import NotFound, RegistryError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

NAME = "context-registry"
_tracer: Tracer | None = None


def span(name: str, *, calls_out: bool = False, **attributes: str) -> AbstractContextManager[Callable[[str], None]]:
    """Trace the block as one span; `__` in an attribute's name stands for its dot.

    Yields a function that notes a failure by its code. `calls_out`: the block waits for another program.
    """
    if _tracer is None:
        return nullcontext(_nothing)
    return _spanned(_tracer, name, calls_out, {key.replace("__", "."): value for key, value in attributes.items()})


def trace_id() -> str | None:
    """Return the id of the current trace in hexadecimal digits; None outside of traces."""
    if _tracer is None:
        return None
    from opentelemetry.trace import format_trace_id, get_current_span

    here = get_current_span().get_span_context()
    return format_trace_id(here.trace_id) if here.is_valid else None


def is_tracing() -> bool:
    """Return whether spans are made."""
    return _tracer is not None


def trace_with(provider: TracerProvider | None) -> None:
    """Make spans with this provider from now on; None turns them off."""
    global _tracer
    _tracer = provider.get_tracer(NAME) if provider else None


def _nothing(_code: str) -> None:
    """Ignore a failure: there is no span."""


@contextmanager
def _spanned(tracer: Tracer, name: str, calls_out: bool, attributes: dict[str, Any]) -> Iterator[Callable[[str], None]]:
    from opentelemetry.trace import SpanKind, StatusCode

    kind = SpanKind.CLIENT if calls_out else SpanKind.INTERNAL
    # What an exception says may quote what was stored: only its kind goes out.
    with tracer.start_as_current_span(
        name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as made:

        def failed(code: str) -> None:
            made.set_attribute("error.type", code)
            made.set_status(StatusCode.ERROR)

        try:
            yield failed
        except NotFound:  # an outcome, not a failure
            raise
        except BaseException as exc:
            failed(exc.code if isinstance(exc, RegistryError) else type(exc).__qualname__)
            raise
