"""Run one chat window (`ctxr mcp`): pass lines between the client and the local process.

It remembers requests until they are answered, so that a process which dies, hangs or is replaced costs no answer. The
handshake and the lists of tools, prompts and resources it answers itself, from a file that the process writes: some
clients do not wait for a process that is still starting.

A client starts one for every window and waits for it, so it imports next to nothing.
"""

from __future__ import annotations

import os
import sys
import time
from _socket import SHUT_RDWR
from _thread import allocate_lock, start_new_thread

from cli.shared.place import PATIENCE_S, START_S, ProcessPlace, current_folder, this_place
from orchestrator.sync.spool import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterator
    from typing import Any

CHUNK = 1 << 16
LEAVE = b'{"ctxr":"leave"}\n'
"""Sent by a process that is being replaced: a window goes to the next one as soon as it waits for nothing."""
LISTEN = "subscriptions/listen"
META = "io.modelcontextprotocol/"
SUBSCRIBE = "resources/subscribe"  # a connection of the older revisions remembers it
NOT_REPEATED = frozenset({"export_session", "create_backup", "restore_backup", "migrate_session", "migrate_workspace"})
"""Tools that may have done their work before the process died, and would do it a second time."""


def run_window(words: list[str]) -> None:
    """Serve the client on stdin and stdout until it leaves, and end the program; not without a shared process."""
    place = this_place()
    if place is None or os.isatty(0):
        return
    try:
        ChatWindow(place, words).run()
    except KeyboardInterrupt:
        os._exit(130)
    os._exit(0)  # the thread that reads the process does not end by itself


class PendingRequest:
    """A request of the client that is not answered yet."""

    def __init__(self, line: bytes, message: dict[str, Any]) -> None:
        self.line, self.id, self.tries = line, message["id"], 0
        self.is_listening = message["method"] == LISTEN  # answered when it ends
        self.is_acknowledged = False
        is_call = message["method"] == "tools/call"
        self.may_repeat = not (is_call and _params(message).get("name") in NOT_REPEATED)

    def may_be_sent(self) -> bool:
        """Return whether a new process may get it. What two processes did not live to answer no third one gets."""
        return self.is_listening or self.tries == 0 or (self.may_repeat and self.tries < 2)

    def failure(self) -> bytes:
        """Return the answer where there will be no other."""
        hint = "Asking again is safe." if self.may_repeat else "It may have been done: look before you ask again."
        message = f"The local process of Context Registry ended before it answered. {hint}"
        return _line(id=self.id, error={"code": -32603, "message": message})


class ChatWindow:
    """The lines of one client, and the requests that it waits for.

    The main thread reads the client, and another one the process. They share dictionaries, of which they only take and
    change single items.
    """

    def __init__(self, place: ProcessPlace, words: list[str]) -> None:
        self._place, self._words = place, words
        self._hello = {"want": "window", "words": words, "folder": current_folder()}
        self._lists = place.read_lists(words)
        self._version = ""
        self._process: socket | None = None  # which gets the client's lines
        self._sending, self._telling = allocate_lock(), allocate_lock()  # while the process or the client is written to
        self._requests: dict[str | int, PendingRequest] = {}
        self._handshake: dict[str, bytes] = {}
        self._subscribed: dict[str, bytes] = {}
        self._muted: dict[str | int, str] = {}
        """Repeated requests whose answers the client has already; of a subscription with its resource."""
        self._has_reached = self._is_moving = False

    def run(self) -> None:
        if sys.platform != "win32":
            for file in (0, 1):
                os.set_blocking(file, True)  # some clients hand over pipes that are not
        lines = (line.removesuffix(b"\n") + b"\n" for line in sys.stdin.buffer)
        self._take(next(lines, b""))
        start_new_thread(self._follow, ())
        for line in lines:
            self._take(line)
        # Without recorded lists the words may be wrong, which only a server says.
        while self._is_awaited() or not (self._lists or self._has_reached):
            time.sleep(0.005)

    def _is_awaited(self) -> bool:
        return any(not request.is_listening for request in list(self._requests.values()))

    # The client's side

    def _take(self, line: bytes) -> None:
        """Answer a message, or keep and forward it."""
        message = _parsed(line)
        method = message.get("method")
        is_request = isinstance(method, str) and isinstance(message.get("id"), str | int)
        answer = self._recorded_answer(str(method), _params(message)) if is_request else None
        if answer:
            self._tell(b'{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (dumps(message["id"]).encode(), answer.encode()))
            if method != "initialize":  # which the process has to know, too
                return
        with self._sending:
            self._remember(method, _params(message), line)
            request = PendingRequest(line, message) if is_request and not answer else None
            if request:
                self._requests[request.id] = request
            if self._process and not (request and self._is_moving):
                if request:
                    request.tries = 1
                elif answer:
                    self._muted[message["id"]] = ""
                _send(self._process, line)

    def _remember(self, method: object, params: dict[str, Any], line: bytes) -> None:
        """Keep what the next process has to know, and forget what it need not know any more."""
        if method in ("initialize", "notifications/initialized"):
            self._handshake[str(method)] = line
        elif method == "notifications/cancelled":
            self._requests.pop(params.get("requestId", ""), None)
        elif method == SUBSCRIBE:
            self._subscribed[str(params.get("uri"))] = line
        elif method == "resources/unsubscribe":
            self._subscribed.pop(str(params.get("uri")), None)

    def _recorded_answer(self, method: str, params: dict[str, Any]) -> str | None:
        """Return the recorded result of a request, for the revision of the protocol that the client speaks."""
        meta = params.get("_meta")
        version = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
        if method == "initialize":
            self._version = version = str(params.get("protocolVersion"))
        if "cursor" in params:
            return None
        return self._lists.get(f"{version or self._version} {method}")

    def _tell(self, lines: bytes) -> None:
        with self._telling:
            try:
                while lines:
                    lines = lines[os.write(1, lines) :]
            except OSError:
                os._exit(0)  # the client does not read any more

    # The process's side

    def _follow(self) -> None:
        """Reach a process and pass on what it sends; when it has ended, go to the next one."""
        within_s = START_S
        while True:
            process = self._place.reach(self._hello, within_s) or _own_server(self._words)
            self._has_reached, within_s = True, 120.0  # in the middle of work there is no other way than to wait
            process.settimeout(PATIENCE_S)
            try:
                self._attach(process)
                self._read(process)
            except OSError:
                pass  # it has ended
            with self._sending:
                self._process, self._is_moving = None, False
            process.close()

    def _attach(self, process: socket) -> None:
        """Introduce the client to a new process, and give that the requests that are not answered."""
        with self._sending:
            self._muted.clear()
            waiting = list(self._requests.values())
            for request in waiting:
                if not request.may_be_sent():
                    self._tell(self._requests.pop(request.id).failure())
                request.tries += 1
            lines = b""
            for uri, line in [("", self._handshake.get("initialize", b"")), *self._subscribed.items()]:
                request_id = _parsed(line).get("id")
                if request_id is not None and request_id not in self._requests:  # it is answered already
                    self._muted[request_id] = uri
                    lines += line + (b"" if uri else self._handshake.get("notifications/initialized", b""))
            process.sendall(lines + b"".join(request.line for request in self._requests.values()))
            self._process = process

    def _read(self, process: socket) -> None:
        """Pass on what a process sends, until it ends, hangs, or has no more to answer before it is replaced."""
        rest = bytearray()
        while True:
            try:
                content = process.recv(CHUNK)
            except TimeoutError:
                if self._is_awaited() and not self._place.answers():
                    self._place.end_hung()
                    return
            else:
                for line in _lines(rest, content):
                    self._pass_on(line)
                if not content:
                    return
            is_asked = any(one.tries and not one.is_listening for one in list(self._requests.values()))
            if self._is_moving and not is_asked:
                return

    def _pass_on(self, line: bytes) -> None:
        if line == LEAVE:
            self._is_moving = True
            return
        message = _parsed(line)
        answered = None if "method" in message else message.get("id")
        if answered in self._muted:
            if uri := self._muted.pop(answered):
                self._tell(_line(method="notifications/resources/updated", params={"uri": uri}))
            return
        if message.get("method") == "notifications/subscriptions/acknowledged":
            params = _params(message)
            request = self._requests.get(params.get("_meta", {}).get(META + "subscriptionId"))
            if request and request.is_acknowledged:
                # The client listened before: it may have missed something meanwhile.
                for uri in params.get("notifications", {}).get("resourceSubscriptions") or ():
                    about = {"uri": uri, "_meta": {META + "subscriptionId": request.id}}
                    self._tell(_line(method="notifications/resources/updated", params=about))
                return
            if request:
                request.is_acknowledged = True
        self._tell(line)
        if answered is not None:
            self._requests.pop(answered, None)


def _own_server(words: list[str]) -> socket:
    """Run the server in a thread of this process, and return a connection to it."""
    from socket import socketpair
    from threading import Thread

    ours, theirs = socketpair()

    def serve() -> None:
        from cli.main import cli

        try:
            cli(["mcp", *words], prog_name="ctxr", obj=theirs)
        except SystemExit as end:
            if end.code:  # wrong words, for example
                os._exit(int(end.code))

    Thread(target=serve, daemon=True).start()
    ours.recv(1)  # sent when the words are valid
    return ours


def _send(process: socket, line: bytes) -> None:
    try:
        process.sendall(line)
    except OSError:  # a part of the line may be sent
        try:
            process.shutdown(SHUT_RDWR)  # so that the thread that reads it goes to the next one
        except OSError:
            return  # it has ended already


def _lines(rest: bytearray, content: bytes) -> Iterator[bytes]:
    """Yield the lines that are complete now; the beginning of the last one stays in `rest`."""
    *complete, last = content.split(b"\n")
    for line in complete:
        yield bytes(rest) + line + b"\n"
        rest.clear()
    rest += last


def _line(**message: Any) -> bytes:
    return dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def _parsed(line: bytes) -> dict[str, Any]:
    """Parse a line; {} where it is no JSON object."""
    try:
        message = loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _params(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}
