"""Time limits for HTTP requests: a client that sends byte by byte cannot keep its connection open."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# seconds to send the headers, counted from the connection or the last request; then the window in which a body must
# make progress
PROGRESS_TIMEOUT_S = 15.0
MIN_BYTES = 64 << 10  # minimum bytes of a body in that window: 4 kB/s, a very bad phone


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with time limits for a request's headers and body."""

    _timed_state: Any = None
    _received = 0  # bytes since the timer was started
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._restart_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._received += len(data)
        self._restart_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)

    def _restart_timer(self) -> None:
        """Restart the timer when the request enters its next state."""
        state = self.conn.their_state
        if state is self._timed_state:
            return
        self._cancel_timer()
        if state in (h11.IDLE, h11.SEND_BODY):
            self._timed_state, self._received = state, 0
            self._timer = self.loop.call_later(PROGRESS_TIMEOUT_S, self._check_progress)

    def _cancel_timer(self) -> None:
        self._timed_state = None
        if self._timer:
            self._timer.cancel()

    def _check_progress(self) -> None:
        is_server_busy = self.flow.read_paused  # the server has not yet taken what the client sent
        is_in_time = self._timed_state is h11.SEND_BODY and (is_server_busy or self._received >= MIN_BYTES)
        self._cancel_timer()
        if is_in_time:
            self._restart_timer()
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        self.transport.close()
