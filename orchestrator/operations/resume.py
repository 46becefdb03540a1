"""resume: write a conversation as a session of another client, and return the command that opens it."""

import asyncio
import os
import re
import shutil
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import Field

from orchestrator.answer.delivery import MessageDict, message_dict
from orchestrator.answer.digests.transfer import select_for_transfer
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import GeneralState, Operation, Run, Steps, local_files_of
from registry.access import Level
from registry.domain import Role, digest_of, new_id, preview_of
from registry.errors import InvalidRequest, NotFound, StorageError
from registry.storage.client_stores import keys_of_channel
from registry.storage.conversations.channels import ChannelRow
from registry.storage.conversations.messages import messages_of
from registry.storage.conversations.references import add_alias, drop_alias, resolve_session
from registry.storage.database import ReadTransaction, WriteTransaction
from registry.storage.records.extract_results import RESUMED, drop_result, imported_files, latest_result
from sources.clients import CLIENTS
from sources.purging import count_missing_files
from sources.writers import WRITERS
from sources.writing import Transfer, Writer


class ResumeQuery(QueryShape):
    """The session, the client that continues it, and how much of it is written."""

    session_id: str = Field(min_length=1, max_length=300)
    client: str = Field(alias="in", description="claude-code, codex, gemini-cli, opencode, copilot-cli or qwen-code")
    last: int | None = Field(None, ge=1, description="only the last N questions with their answers")
    max_tokens: int = Field(
        100_000, ge=1, description="older messages that do not fit are left out, and a note says so"
    )
    folder: str | None = Field(None, description="where the client is started; default: the session's own folder")
    dry_run: bool = False
    undo: bool = False


class ResumeRequest(Request):
    operation = "resume"
    query: ResumeQuery


_VERSION = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Resumable:
    """A conversation, and the session that was written for the client before."""

    row: ChannelRow
    messages: list[MessageDict]
    written: dict[str, Any] | None
    own_keys: list[str]  # keys of the session in the client's own store


def find_conversation(tx: ReadTransaction, run: Run, request: ResumeRequest) -> Resumable:
    """Find the conversation. Raises InvalidRequest for an unsupported client."""
    query = request.query
    _writer_for(query.client)
    row = resolve_session(tx, query.session_id)
    run.recorder.channel = row.name
    written = latest_result(tx, row.name, RESUMED, query.client)
    messages = [] if query.undo else [message_dict(message) for message in messages_of(tx, row.number)]
    run.recorder.explain(channel=row.name, candidates=len(messages))
    beginning = (row.session_id or row.name)[:8]  # the file names of all clients have this many characters of the id
    own_keys = [key for key in keys_of_channel(tx, row.number, query.client) if beginning in key]
    return Resumable(row, messages, written, own_keys)


async def make_session(run: Run, request: ResumeRequest, data: Resumable) -> dict[str, Any]:
    """Return the new session's files, not yet written; only the command if the client has the session already."""
    query, row = request.query, data.row
    writer = _writer_for(query.client)
    about = {"channel": row.name, "client": query.client, "title": row.title}
    if query.undo:
        if data.written is None:
            raise NotFound("Nothing to undo.", f"{row.name!r} was not written for {query.client}")
        return {**about, **{name: data.written[name] for name in ("id", "session_id", "files")}}
    local_files = local_files_of(run)
    folder = _folder(query, row)
    is_deleted = 0 < len(data.own_keys) == await asyncio.to_thread(count_missing_files, data.own_keys)
    # Some clients find a session only from its own folder, which may be deleted.
    is_elsewhere = bool(row.project_path) and Path(folder) != Path(row.project_path or "")
    if row.source == query.client and row.session_id and not (is_deleted or is_elsewhere):
        run.recorder.explain(by="the client's own session")
        return {**about, "session_id": row.session_id, "folder": folder, "command": writer.command_for(row.session_id)}
    version = await asyncio.to_thread(_version, writer)
    name = next((client.name for client in CLIENTS if client.source == row.source), row.source)
    origin = f'This conversation ("{row.title or row.name}") began in {name}.'
    messages, left_out = select_for_transfer(data.messages, query.last, query.max_tokens, origin)
    if not messages:
        raise NotFound("The conversation has nothing to continue.", f"{row.name!r} has no question of the user")
    title = row.title or preview_of(messages[-1].text, 60)
    made = writer.make(Transfer(messages, title, folder), version, local_files.paths, local_files.drafts)
    run.recorder.explain(kept=len(messages), dropped=left_out, reason="last and max_tokens")
    return {
        **about,
        "session_id": made.session_id,
        "path": str(made.path),
        "folder": folder,
        **({"before": imports} if (imports := writer.import_command(made.path)) else {}),
        "command": writer.command_for(made.session_id),
        "message_count": len(messages),
        "left_out": left_out,
        "questions": [digest_of(one.role, one.text).hex() for one in messages if one.role is Role.USER],
        "dry_run": query.dry_run,
        "files": {str(path): text for path, text in made.files.items()},
    }


def write_session(tx: WriteTransaction, run: Run, request: ResumeRequest, state: GeneralState) -> dict[str, Any]:
    """Store the new session id, then write the files; if that fails, nothing is stored."""
    result = dict(state["result"])
    files, questions = result.pop("files", {}), result.pop("questions", [])
    if request.query.undo:
        return _undo(tx, state["data"], result, files)
    if request.query.dry_run or not files:
        return result
    add_alias(tx, result["session_id"], state["data"].row.number)
    digests = {path: sha256(text.encode()).hexdigest() for path, text in files.items()}
    about = {
        "client": request.query.client,
        "session_id": result["session_id"],
        "files": digests,
        "is_imported": "before" in result,
        "questions": questions,
    }
    run.recorder.record_delivery(tx, new_id("ext"), RESUMED, about, channel=result["channel"], items=[])
    with ExitStack() as unfinished:
        for path, text in files.items():
            _write_session_file(Path(path), text, unfinished)
        unfinished.pop_all()
    return result


def _undo(tx: WriteTransaction, data: Resumable, result: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    client, session_id = result["client"], result["session_id"]
    if data.written and data.written.get("is_imported") and session_id in keys_of_channel(tx, data.row.number, client):
        raise InvalidRequest("The client has imported the session, so it stays there.", f"{client}: {session_id}")
    digests = {path: sha256(Path(path).read_bytes()).hexdigest() for path in files if os.path.exists(path)}
    grown = [path for path, digest in digests.items() if digest != files[path]]
    if grown:
        raise InvalidRequest(
            "The conversation was continued there, so its file stays.",
            f"changed since it was written: {', '.join(grown)}",
        )
    for path in files:
        Path(path).unlink(missing_ok=True)
    drop_alias(tx, result["session_id"])
    drop_result(tx, result.pop("id"))
    return {**result, "removed": list(files)}


def remove_imported(tx: ReadTransaction, drafts: Path) -> None:
    """Remove drafts that a client has imported into its own store."""
    if drafts.is_dir() and any(drafts.iterdir()):
        for path in map(Path, imported_files(tx)):
            if path.parent == drafts:
                path.unlink(missing_ok=True)


def _writer_for(client: str) -> Writer:
    if client not in WRITERS:
        raise InvalidRequest(
            "A conversation can't be opened in that client.", f"in: given {client!r}; allowed: {', '.join(WRITERS)}"
        )
    return WRITERS[client]


def _folder(query: ResumeQuery, row: ChannelRow) -> str:
    existing = next(filter(os.path.isdir, filter(None, (query.folder, row.project_path))), None)
    return os.path.abspath(existing or Path.home())


def _version(writer: Writer) -> str:
    """Return the installed client's version; the tested version if the command times out.

    Raises InvalidRequest if the client is not installed, or has another major version than the tested one.
    """
    program = shutil.which(writer.program)
    if program is None:
        raise InvalidRequest(
            "That client isn't installed here.", f"{writer.client.name}: no program {writer.program!r} on the PATH"
        )
    try:
        command = [program, "--version"]
        output = subprocess.run(  # noqa: S603, the client the user named
            command, capture_output=True, text=True, timeout=10, check=False, stdin=subprocess.DEVNULL
        ).stdout
    except subprocess.TimeoutExpired:  # a busy machine
        return writer.tested
    except OSError as exc:
        raise InvalidRequest("That client's version could not be read.", f"{writer.client.name}: {exc}") from exc
    found = _VERSION.search(output)
    if found is None or found[0].split(".")[0] != writer.tested.split(".")[0]:
        raise InvalidRequest(
            "This version of the client has an unknown session format.",
            f"{writer.client.name}: found {output.strip()[:80]!r}; tested: {writer.tested}. Nothing was written",
        )
    return found[0]


def _write_session_file(path: Path, text: str, unfinished: ExitStack) -> None:
    """Write a new file that only this user can read; `unfinished` removes it. Raises StorageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        unfinished.callback(path.unlink, missing_ok=True)
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as exc:
        raise StorageError("The session could not be written.", f"{path}: {exc.strerror}") from exc


OPERATION = Operation(
    request=ResumeRequest,
    level=Level.ADMIN,
    instead="it writes a client's session on the server; run ctxr resume on the machine of the client",
    steps=Steps[ResumeRequest, Resumable](query=find_conversation, answer=make_session, write=write_session),
    labels={"in": ("continue in", "이어 갈 곳"), "last": ("last", "마지막")},
)
