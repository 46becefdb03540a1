"""Run one chat window (`ctxr mcp`): pass bytes between the client and the local process.

It keeps requests until they are answered, so that no answer is lost if the process dies, hangs or is replaced. It
answers the handshake and the lists of tools, prompts and resources from a file that the process writes: some clients do
not wait for a process that is still starting.

A client starts one for every window and waits for it, so it imports almost nothing.
"""

from __future__ import annotations

import os
import select
from _thread import start_new_thread

from cli.shared.process_handle import ANSWER_TIMEOUT_S, START_TIMEOUT_S, ProcessHandle, current_folder, current_handle
from cli.shared.recorded_lists import read_lists
from cli.shared.streams import CHUNK, Streams
from orchestrator.sync.spool import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterator
    from typing import Any

LEAVE = b'{"ctxr":"leave"}\n'
"""Sent by a process that is being replaced: a window connects to the next one when no request is open."""
META = "io.modelcontextprotocol/"
NOT_REPEATED = frozenset({"export_session", "create_backup", "restore_backup", "migrate_session", "migrate_workspace"})
"""Tools that must not run twice: they may have finished before the process died."""


def run_window(words: list[str]) -> bool:
    """Serve the client on stdin and stdout until it leaves; False if no shared process may be used."""
    handle = current_handle()
    if handle is None or os.isatty(0):
        return False
    try:
        with Streams(handle.is_loopback) as streams:
            ChatWindow(handle, words, streams).run()
    except KeyboardInterrupt:
        os._exit(130)
    return True


class PendingRequest:
    """A request of the client that is not answered yet."""

    def __init__(self, line: bytes, message: dict[str, Any]) -> None:
        self.line, self.id, self.tries = line, message["id"], 0
        self.is_listening = message["method"] == "subscriptions/listen"  # answered when it ends
        self.is_acknowledged = False
        is_call = message["method"] == "tools/call"
        self.may_repeat = not (is_call and str(_params(message).get("name")) in NOT_REPEATED)

    def may_be_sent(self) -> bool:
        """Return whether a new process may get it. A request gets two tries at most, unless it only listens."""
        return self.is_listening or self.tries == 0 or (self.may_repeat and self.tries < 2)

    def failure_answer(self) -> bytes:
        """Return the error for a request that no process will answer."""
        hint = "Trying again is safe." if self.may_repeat else "It may have been done: check before you try again."
        message = f"The local process of Context Registry ended before it answered. {hint}"
        return _line(id=self.id, error={"code": -32603, "message": message})


class ChatWindow:
    """The connection between one client and the local process, and the client's open requests."""

    def __init__(self, handle: ProcessHandle, words: list[str], client: Streams) -> None:
        self._handle, self._words, self._client = handle, words, client
        self._hello = {"want": "window", "words": words, "folder": current_folder()}
        self._lists = read_lists(handle, words)
        self._version = ""
        self._process: socket | None = None
        self._connecting: list[tuple[socket | None, bytes]] | None = None
        """A list while a thread connects, which appends its outcome: the process, and the handshake it has sent."""
        self._from_client, self._from_process = bytearray(), bytearray()
        self._to_client, self._to_process = bytearray(), bytearray()
        self._requests: dict[str | int, PendingRequest] = {}
        self._handshake: dict[str, bytes] = {}
        self._subscribed: dict[str, bytes] = {}
        self._repeated_subscriptions: dict[str | int, str] = {}
        """The resource of each subscription that was sent again to a new process; the client has had its answer."""
        self._client_left = self._is_leaving = False

    def run(self) -> None:
        self._connect(START_TIMEOUT_S)
        try:
            while not self._is_done():
                self._wait_for_bytes()
        except BrokenPipeError:
            return  # the client does not read any more

    def _is_done(self) -> bool:
        if not self._client_left or self._to_client or self._has_open_requests():
            return False
        # Without recorded lists the arguments may be wrong, and only a server reports that.
        return not (self._process and self._to_process) and (self._connecting is None or bool(self._lists))

    def _wait_for_bytes(self) -> None:
        process, client = self._process, self._client
        reads = [process] if process else []
        writes = [process] if process and self._to_process else []
        if not (self._client_left or self._is_leaving):
            reads.append(client.input)
        if self._to_client:
            writes.append(client.output)
        if self._connecting is not None:
            timeout_s: float | None = 0.002
        else:
            timeout_s = ANSWER_TIMEOUT_S if self._has_open_requests() else None
        readable, writable, _ = select.select(reads, writes, [], timeout_s)
        if self._connecting:
            self._attach(*self._connecting[0])
        elif self._connecting is None and not (readable or writable) and not self._handle.is_answering():
            self._handle.end_hung()
            self._reconnect()
        if client.output in writable:
            del self._to_client[: client.write(self._to_client)]
        if client.input in readable:
            content = client.read()
            self._client_left = not content
            for line in _lines(self._from_client, content):
                self._handle_client_line(line)
        if process in writable and process is self._process:
            self._write_to_process()
        if process in readable and process is self._process:
            self._read_process()

    def _has_open_requests(self) -> bool:
        return any(not request.is_listening for request in self._requests.values())

    # The client's side

    def _handle_client_line(self, line: bytes) -> None:
        """Answer a message, or keep and forward it."""
        message = _parse(line)
        method, request_id = message.get("method"), message.get("id")
        is_request = isinstance(method, str) and isinstance(request_id, str | int)  # else the server refuses it
        if method == "notifications/initialized" or (is_request and method == "initialize"):
            self._handshake[method] = line
        elif method == "notifications/cancelled":
            cancelled = _params(message).get("requestId")
            self._requests.pop(cancelled if isinstance(cancelled, str | int) else "", None)
        elif is_request and method == "resources/subscribe":  # of older revisions, belongs to the connection
            self._subscribed[str(_params(message).get("uri"))] = line
        elif method == "resources/unsubscribe":
            self._subscribed.pop(str(_params(message).get("uri")), None)
        if isinstance(method, str) and isinstance(request_id, str | int):
            if answer := self._recorded_answer(method, _params(message)):
                self._to_client += b'{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (dumps(request_id).encode(), answer)
                if method == "initialize" and self._process:  # it was reached before the client's handshake
                    self._process.setblocking(True)
                    self._connect(connection=self._process)
                    self._process = None
                return
            self._requests[request_id] = PendingRequest(line, message)
        if self._process:
            self._to_process += line
            if isinstance(request_id, str | int) and request_id in self._requests:
                self._requests[request_id].tries = 1
        elif self._connecting is None:
            self._connect()

    def _recorded_answer(self, method: str, params: dict[str, Any]) -> bytes | None:
        """Return the recorded result of a request, for the revision of the protocol that the client speaks."""
        meta = params.get("_meta")
        version = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
        if method == "initialize":
            self._version = version = str(params.get("protocolVersion"))
        if "cursor" in params:
            return None
        return self._lists.get(f"{version or self._version} {method}")

    # The process's side

    def _connect(self, timeout_s: float = 120.0, connection: socket | None = None) -> None:
        """Connect to the process in a thread. Within a chat there is no alternative, so wait for a slow start."""
        outcome: list[tuple[socket | None, bytes]] = []
        self._connecting = outcome
        initialize = self._handshake.get("initialize", b"")
        if initialize and _parse(initialize).get("id") in self._requests:
            initialize = b""  # still open: it is sent with the other open requests

        def connect() -> None:
            process = connection or self._handle.reach(self._hello, timeout_s) or _start_own_server(self._words)
            try:
                if initialize:
                    process.sendall(initialize)
                    _wait_for_answer(process)
                outcome.append((process, initialize))
            except OSError:
                process.close()
                outcome.append((None, b""))

        start_new_thread(connect, ())

    def _attach(self, process: socket | None, handshake: bytes) -> None:
        """Send the open requests and the subscriptions to a new process; fail requests that cannot be sent to one."""
        self._connecting = None
        initialize = self._handshake.get("initialize", b"")
        if process and initialize != handshake and _parse(initialize).get("id") not in self._requests:
            self._connect(connection=process)  # the client's handshake came meanwhile
            return
        for request in list(self._requests.values()):
            if process is None or not request.may_be_sent():
                self._to_client += self._requests.pop(request.id).failure_answer()
        if process is None:
            return
        process.setblocking(False)
        self._process = process
        if handshake:
            self._to_process += self._handshake.get("notifications/initialized", b"")
            for uri, line in self._subscribed.items():
                if (request_id := _parse(line)["id"]) not in self._requests:
                    self._repeated_subscriptions[request_id] = uri
                    self._to_process += line
        for request in self._requests.values():
            request.tries += 1
            self._to_process += request.line

    def _reconnect(self) -> None:
        """Close the connection, and connect to the next process if the client still needs one."""
        if self._process:
            self._process.close()
        self._process, self._is_leaving = None, False
        for buffer in (self._from_process, self._to_process, self._repeated_subscriptions):
            buffer.clear()
        if self._requests or self._subscribed or not self._client_left:
            self._connect()

    def _write_to_process(self) -> None:
        assert self._process  # noqa: S101, the caller has selected it
        try:
            del self._to_process[: self._process.send(self._to_process)]
        except BlockingIOError:
            return
        except OSError:
            self._reconnect()

    def _read_process(self) -> None:
        assert self._process  # noqa: S101, the caller has selected it
        try:
            content = self._process.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            content = b""
        for line in _lines(self._from_process, content):
            self._handle_process_line(line)
        if not content or (self._is_leaving and not self._has_open_requests()):
            self._reconnect()

    def _handle_process_line(self, line: bytes) -> None:
        if line == LEAVE:
            self._is_leaving = True
            return
        answered_id = _answered_id(line)
        if answered_id in self._repeated_subscriptions:
            uri = self._repeated_subscriptions.pop(answered_id)
            self._to_client += _line(method="notifications/resources/updated", params={"uri": uri})
            return
        if line.startswith(b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"'):
            params = _params(_parse(line))
            request = self._requests.get(params.get("_meta", {}).get(META + "subscriptionId"))
            if request and request.is_acknowledged:
                # The client listened before: it may have missed something meanwhile.
                for uri in params.get("notifications", {}).get("resourceSubscriptions") or ():
                    about = {"uri": uri, "_meta": {META + "subscriptionId": request.id}}
                    self._to_client += _line(method="notifications/resources/updated", params=about)
                return
            if request:
                request.is_acknowledged = True
        if answered_id is not None:
            self._requests.pop(answered_id, None)
        self._to_client += line


def _start_own_server(words: list[str]) -> socket:
    """Run the server in a thread of this process, and return a connection to it."""
    from socket import socketpair
    from threading import Thread

    ours, theirs = socketpair()

    def serve() -> None:
        from cli.main import cli

        try:
            cli(["mcp", *words], prog_name="ctxr", obj=theirs)
        except SystemExit as end:
            if end.code:  # wrong arguments, for example
                os._exit(int(end.code))

    Thread(target=serve, daemon=True).start()
    ours.recv(1)  # sent when the arguments are valid
    return ours


def _wait_for_answer(process: socket) -> None:
    answer = bytearray()
    while chunk := process.recv(CHUNK):
        answer += chunk
        if answer.endswith(b"\n"):
            return
    raise ConnectionResetError


def _lines(rest: bytearray, content: bytes) -> Iterator[bytes]:
    """Yield the lines that are complete now; the beginning of the last one stays in `rest`."""
    *complete, last = content.split(b"\n")
    for line in complete:
        yield bytes(rest) + line + b"\n"
        rest.clear()
    rest += last


def _line(**message: Any) -> bytes:
    return dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def _parse(line: bytes) -> dict[str, Any]:
    """Parse a line; {} if it is not a JSON object."""
    try:
        message = loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _params(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _answered_id(line: bytes) -> str | int | None:
    """Return the id of the request that a line answers, without parsing megabytes; None if it is not an answer."""
    start = b'{"jsonrpc":"2.0","id":'
    if not line.startswith(start):
        return None
    head = line[: len(start) + 300]
    for kind in (b',"result":', b',"error":'):
        before, found, _ = head.partition(kind)
        if found:
            try:
                value = loads(before[len(start) :].decode())
            except ValueError:
                return None
            return value if isinstance(value, str | int) else None
    return None
