"""Time limits for HTTP requests: a client that sends byte by byte does not keep its connection for ever."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# seconds to send the headers, counted from the connection or the last request; then the window in which a body must
# make progress
WAIT_S = 15.0
LEAST_BYTES = 64 << 10  # minimum bytes of a body in that window: 4 kB/s, a very bad phone

TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with time limits for a request's headers and body."""

    _awaited: Any = None
    _received = 0  # bytes since the timer was started
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_on()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._received += len(data)
        self._wait_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _wait_on(self) -> None:
        """Restart the timer when the request enters its next state."""
        state = self.conn.their_state
        if state is self._awaited:
            return
        self._stop()
        if state in (h11.IDLE, h11.SEND_BODY):
            self._awaited, self._received = state, 0
            self._timer = self.loop.call_later(WAIT_S, self._give_up)

    def _stop(self) -> None:
        self._awaited = None
        if self._timer:
            self._timer.cancel()

    def _give_up(self) -> None:
        is_our_turn = self.flow.read_paused  # the server has not yet taken what the client sent
        is_going_on = self._awaited is h11.SEND_BODY and (is_our_turn or self._received >= LEAST_BYTES)
        self._stop()
        if is_going_on:
            self._wait_on()
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(TOO_SLOW)
        self.transport.close()
