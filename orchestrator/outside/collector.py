"""Send OpenTelemetry spans to the collector that its standard variables name (OTEL_…)."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from importlib.metadata import version

from registry.errors import InvalidRequest
from registry.extras import install_command
from registry.tracing import NAME, is_tracing, trace_with

try:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.trace import Status, set_tracer_provider
except ImportError as exc:
    raise InvalidRequest("Traces need the extra `otel`.", f"CTXR_TRACES is on: {install_command('otel')}") from exc

# attributes of the framework's spans that contain queries and names of conversations
TEXT_ATTRIBUTES = frozenset({"url.path", "url.query", "url.full", "http.target", "http.url"})


def start_tracing() -> None:
    """Make and send spans in this process; those that wait are sent when it ends."""
    if is_tracing():
        return
    provider = TracerProvider(
        resource=Resource.create({"service.name": NAME, "service.version": version(NAME)}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(TextlessExporter(OTLPSpanExporter())))
    set_tracer_provider(provider)  # the MCP SDK and FastAPI make theirs with it, too
    trace_with(provider)
    atexit.register(provider.shutdown)


class TextlessExporter(SpanExporter):
    """Exports spans without what may quote a text: addresses, and messages of exceptions."""

    def __init__(self, out: SpanExporter) -> None:
        self._out = out

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._out.export([_bare(span) for span in spans])

    def shutdown(self) -> None:
        self._out.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._out.force_flush(timeout_millis)


def _bare(span: ReadableSpan) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes={name: value for name, value in (span.attributes or {}).items() if name not in TEXT_ATTRIBUTES},
        links=span.links,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )
