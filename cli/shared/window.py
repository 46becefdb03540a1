"""One chat window: what `ctxr mcp` runs. It passes bytes between the client and the local process, and remembers what
is not answered yet, so that a process which dies, hangs or is replaced costs nobody an answer.

A client starts one for every window and waits for it, so it imports next to nothing.
"""

from __future__ import annotations

import os
import select

from cli.shared.place import PATIENCE_S, Place, current_folder, this_place
from orchestrator.sync.spool import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterator
    from typing import Any

CHUNK = 1 << 16
PIPE = getattr(select, "PIPE_BUF", 512)
"""So much a pipe that is ready takes without making us wait."""
LEAVE = b'{"ctxr":"leave"}\n'
"""What a process says that is to be replaced: each window goes to the next one when it waits for nothing."""

LISTEN = "subscriptions/listen"
"""A request that is answered when it ends: nobody waits for that."""
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
UPDATED = "notifications/resources/updated"
LASTING = {"resources/subscribe": "uri", "logging/setLevel": ""}
"""What a connection of the older revisions remembers, and the argument by which two such requests differ."""
NOT_REPEATED = frozenset({"export_session", "create_backup", "restore_backup", "migrate_session", "migrate_workspace"})
"""Tools that may have done their work before the process died, and would do it a second time."""
RENEWAL_S = 120.0
"""Who is in the middle of its work has only this road: a process that starts slowly on a busy machine is waited for."""
TRIES = 2
"""A request that two processes did not live to answer is not given to a third."""

INTERRUPTED = 130
DIED = "The local process of Context Registry ended before it answered. "
AGAIN = "Asking again is safe."
PERHAPS = "Whether it was done is not known: look before you ask again."


def run_window(words: list[str]) -> bool:
    """Serve the client on stdin and stdout until it leaves; False, and nothing was read, if that is not possible."""
    place = this_place()
    if place is None or os.isatty(0):
        return False
    hello = hello_of(words)
    try:
        process = place.reach(hello)
        if process is None:
            return False
        with Streams(place.is_loopback) as streams:
            Window(place, hello, process, streams).run()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    return True


def hello_of(words: list[str]) -> dict[str, Any]:
    """Return a window's first line to the process."""
    return {"want": "window", "words": words, "folder": current_folder()}


class Asked:
    """A request on its way."""

    def __init__(self, line: bytes, message: dict[str, Any]) -> None:
        self.line, self.id, self.tries = line, message["id"], 1
        self.is_listening = message["method"] == LISTEN
        self.is_acknowledged = False
        is_call = message["method"] == "tools/call"
        self.may_repeat = not (is_call and _params(message).get("name") in NOT_REPEATED)

    def may_be_tried(self) -> bool:
        """Return whether a new process may be asked the same."""
        return self.is_listening or (self.may_repeat and self.tries < TRIES)

    def lost(self) -> bytes:
        """The answer where there will be no other."""
        error = {"code": -32603, "message": DIED + (AGAIN if self.may_repeat else PERHAPS)}
        return dumps({"jsonrpc": "2.0", "id": self.id, "error": error}).encode() + b"\n"


class Streams:
    """The client's end: stdin and stdout, as what `select` can wait for. On Windows it can only for sockets."""

    def __init__(self, are_sockets: bool) -> None:
        self._pumps: list[Any] = []
        self.input: Any = 0
        self.output: Any = 1
        if are_sockets:
            self._pump()

    def _pump(self) -> None:
        from socket import socketpair
        from threading import Thread

        self.input, stdin = socketpair()
        self.output, stdout = socketpair()
        self._pumps = [
            Thread(target=_pump, args=(lambda: os.read(0, CHUNK), stdin.sendall, stdin.close), daemon=True),
            Thread(target=_pump, args=(lambda: stdout.recv(CHUNK), _write_all, stdout.close), daemon=True),
        ]
        for pump in self._pumps:
            pump.start()

    def read(self) -> bytes:
        """Read the client's next bytes; empty when it has left."""
        try:
            return self.input.recv(CHUNK) if self._pumps else os.read(0, CHUNK)
        except OSError:
            return b""

    def write(self, content: bytearray) -> int:
        """Send the client the beginning of something, and say how much; OSError if it does not listen any more."""
        return self.output.send(content[:CHUNK]) if self._pumps else os.write(1, content[:PIPE])

    def __enter__(self) -> Streams:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pumps:
            self.output.close()
            self._pumps[1].join()


class Window:
    """The bytes of one client, and what it waits for."""

    def __init__(self, place: Place, hello: dict[str, Any], process: socket, client: Streams) -> None:
        self._place, self._hello, self._client = place, hello, client
        self._process: socket | None = None
        self._from_client, self._from_process = bytearray(), bytearray()
        self._to_client, self._to_process = bytearray(), bytearray()
        self._asked: dict[str | int, Asked] = {}
        self._handshake: dict[str, bytes] = {}
        self._lasting: dict[tuple[str, str], bytes] = {}
        self._unheard: dict[str | int, str] = {}
        self._client_left = self._is_moving = False
        self._use(process)

    def run(self) -> None:
        """Until the client leaves and has got what there was for it."""
        try:
            while self._process or self._to_client or not self._client_left:
                self._wait_for_bytes()
        except BrokenPipeError:
            return  # the client does not listen any more

    def _wait_for_bytes(self) -> None:
        process, client = self._process, self._client
        reads = [process] if process else []
        writes = [process] if process and self._to_process else []
        if not (self._client_left or self._is_moving):
            reads.append(client.input)
        if self._to_client:
            writes.append(client.output)
        patience = PATIENCE_S if self._is_awaited() else None
        readable, writable, _ = select.select(reads, writes, [], patience)
        if not (readable or writable):
            self._see_to_silence()
        if client.output in writable:
            del self._to_client[: client.write(self._to_client)]
        if client.input in readable:
            self._read_client()
        if process in writable and process is self._process:
            self._write_to_process()
        if process in readable and process is self._process:
            self._read_process()

    def _is_awaited(self) -> bool:
        return any(not asked.is_listening for asked in self._asked.values())

    # The client's side

    def _read_client(self) -> None:
        given = self._client.read()
        if not given:
            self._client_left = True
            self._half_close()
            return
        lines = list(_lines(self._from_client, given))
        for line in lines:
            self._note(line)
        if self._process is None:
            self._renew()
        else:
            self._to_process += b"".join(lines)

    def _note(self, line: bytes) -> None:
        """Remember a request until it is answered, and what a new process has to be told again."""
        message = _parsed(line)
        method, asked = message.get("method"), message.get("id")
        if not isinstance(method, str):
            return
        if method in ("initialize", "notifications/initialized"):
            self._handshake[method] = line
        elif method == "notifications/cancelled":
            self._asked.pop(_params(message).get("requestId", ""), None)
        elif method in LASTING:
            self._lasting[method, str(_params(message).get(LASTING[method]))] = line
        elif method == "resources/unsubscribe":
            self._lasting.pop(("resources/subscribe", str(_params(message).get("uri"))), None)
        if isinstance(asked, str | int):
            self._asked[asked] = Asked(line, message)

    # The process's side

    def _use(self, process: socket) -> None:
        process.setblocking(False)
        self._process = process

    def _write_to_process(self) -> None:
        assert self._process  # noqa: S101, who calls has selected it
        try:
            del self._to_process[: self._process.send(self._to_process)]
        except BlockingIOError:
            return
        except OSError:
            self._renew()
            return
        self._half_close()

    def _half_close(self) -> None:
        """Tell the process that the client has left, when it has been told everything else."""
        if self._process and self._client_left and not self._to_process:
            try:
                self._process.shutdown(1)
            except OSError:
                return  # it has left as well

    def _read_process(self) -> None:
        assert self._process  # noqa: S101, who calls has selected it
        try:
            given = self._process.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            given = b""
        for line in _lines(self._from_process, given):
            self._pass_on(line)
        if not given and self._client_left and not self._is_awaited():
            self._leave_process()
        elif not given or (self._is_moving and not self._is_awaited()):
            self._renew()

    def _pass_on(self, line: bytes) -> None:
        if line == LEAVE:
            self._is_moving = True
            return
        answered = _answered(line)
        if answered in self._unheard:
            uri = self._unheard.pop(answered)
            self._to_client += _news([uri] if uri else [], {})
            return
        if line.startswith(_ACKNOWLEDGED) and self._is_renewed(line):
            return
        if answered is not None:
            self._asked.pop(answered, None)
        self._to_client += line

    def _is_renewed(self, acknowledged: bytes) -> bool:
        """Return whether the client listened before: it may have missed something meanwhile."""
        params = _params(_parsed(acknowledged))
        asked = self._asked.get(params.get("_meta", {}).get(SUBSCRIPTION_ID))
        if asked is None or not asked.is_acknowledged:
            if asked:
                asked.is_acknowledged = True
            return False
        uris = params.get("notifications", {}).get("resourceSubscriptions") or []
        self._to_client += _news(uris, {"_meta": {SUBSCRIPTION_ID: asked.id}})
        return True

    def _see_to_silence(self) -> None:
        if not self._place.answers():
            self._place.end_hung()
            self._renew()

    def _leave_process(self) -> None:
        if self._process:
            self._process.close()
        self._process, self._is_moving = None, False
        self._from_process.clear()
        self._to_process.clear()
        self._unheard.clear()

    def _renew(self) -> None:
        """Go to the next process and give it what is not answered; where there is none, say so to who waits."""
        self._leave_process()
        process = self._place.reach(self._hello, RENEWAL_S)
        if process and not self._introduce(process):
            process = None
        for asked in list(self._asked.values()):
            if process is None or not asked.may_be_tried():
                self._to_client += self._asked.pop(asked.id).lost()
        if process is None:
            return
        self._use(process)
        for asked in self._asked.values():
            asked.tries += 1
            self._to_process += asked.line
        self._half_close()

    def _introduce(self, process: socket) -> bool:
        """Tell a new process what the old one knew of the client; its answers to that the client has already."""
        hello = self._handshake.get("initialize")
        if hello is None or _parsed(hello)["id"] in self._asked:
            return True
        known = [self._handshake.get("notifications/initialized", b"")]
        for (method, argument), line in self._lasting.items():
            if (asked := _parsed(line)["id"]) not in self._asked:
                self._unheard[asked] = argument if method == "resources/subscribe" else ""
                known.append(line)
        try:
            process.sendall(hello)
            _wait_for_answer(process)
            process.sendall(b"".join(known))
        except OSError:
            process.close()
            return False
        return True


def _pump(read: Any, write: Any, close: Any) -> None:
    try:
        while chunk := read():
            write(chunk)
    except OSError:
        return
    finally:
        close()


def _write_all(content: bytes) -> None:
    while content:
        content = content[os.write(1, content) :]


def _wait_for_answer(process: socket) -> None:
    said = bytearray()
    while chunk := process.recv(CHUNK):
        said += chunk
        if said.endswith(b"\n"):
            return
    raise ConnectionResetError


def _lines(rest: bytearray, more: bytes) -> Iterator[bytes]:
    """The lines that are whole now; what is left of the last one stays in `rest`."""
    *whole, last = more.split(b"\n")
    for line in whole:
        yield bytes(rest) + line + b"\n"
        rest.clear()
    rest += last


def _parsed(line: bytes) -> dict[str, Any]:
    """The message of a line; nothing where it is none."""
    try:
        message = loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _params(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _news(uris: list[str], more: dict[str, Any]) -> bytes:
    told = [{"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": uri, **more}} for uri in uris]
    return b"".join(dumps(one).encode() + b"\n" for one in told)


_ACKNOWLEDGED = b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged"'
_ANSWER = b'{"jsonrpc":"2.0","id":'


def _answered(line: bytes) -> str | int | None:
    """The id of the request that a line answers, without reading an answer of megabytes; None if it is no answer."""
    if not line.startswith(_ANSWER):
        return None
    head = line[: len(_ANSWER) + 300]
    for kind in (b',"result":', b',"error":'):
        named, found, _ = head.partition(kind)
        if found:
            value = _value(named[len(_ANSWER) :])
            return value if isinstance(value, str | int) else None
    return None


def _value(text: bytes) -> Any:
    try:
        return loads(text.decode())
    except ValueError:
        return None
