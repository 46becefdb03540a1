"""OpenTelemetry's own way out: spans in batches to the collector that its standard variables name (OTEL_…)."""

from __future__ import annotations

import atexit
from importlib.metadata import version

from registry.errors import InvalidRequest
from registry.extras import install_command
from registry.tracing import NAME, is_tracing, trace_with


def start_tracing() -> None:
    """From now on this process makes spans and sends them; what waits is sent when it ends. InvalidRequest."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import set_tracer_provider
    except ImportError as exc:
        raise InvalidRequest("Traces need the extra `otel`.", f"CTXR_TRACES is on: {install_command('otel')}") from exc
    if is_tracing():
        return
    described = Resource.create({"service.name": NAME, "service.version": version(NAME)})
    provider = TracerProvider(resource=described, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    set_tracer_provider(provider)  # the MCP SDK and FastAPI make theirs with it, too
    trace_with(provider)
    atexit.register(provider.shutdown)
