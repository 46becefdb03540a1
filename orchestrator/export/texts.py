"""Write a session as a document: Markdown, JSON, HTML or PDF."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from html import escape
from pathlib import Path
from typing import Any, Literal

from orchestrator.export.code_fences import closed, fence_for
from orchestrator.export.html import FOLDED, as_html, time_of, title_of
from registry.domain import preview_of
from registry.errors import InvalidRequest, StorageError

ExportFormat = Literal["markdown", "json", "html", "pdf"]
ENDINGS: Mapping[ExportFormat, str] = {"markdown": ".md", "json": ".json", "html": ".html", "pdf": ".pdf"}

Item = Mapping[str, Any]
_UNSAFE = re.compile(r"[^\w.-]+")

_OF_THE_REGISTRY = ("last_accessed",)

HEAD = (
    "session_id",
    "channel",
    "source",
    "title",
    "nickname",
    "tags",
    "project_path",
    "message_count",
    "created_at",
    "updated_at",
    "time",
)


def export(to: ExportFormat, session: Item, messages: Sequence[Item]) -> bytes:
    """Return the document. `session` and `messages` are a fetch's answer, oldest message first.

    Raises InvalidRequest if the extra that a PDF needs is not installed.
    """
    if to == "pdf":
        from orchestrator.export.pdf import as_pdf  # an extra, which only who asks for a PDF needs

        return as_pdf(session, messages)
    return _DOCUMENTS[to](session, messages).encode()


def document_name(session: Item, to: ExportFormat) -> str:
    """Return a file name that is valid on every system: first day, name, digest of the channel."""
    words = session["nickname"] or session["title"] or session["first_message_preview"] or ""
    name = _UNSAFE.sub("-", words).strip("-.")[:60].rstrip("-.")
    digest = blake2b(session["channel"].encode(), digest_size=3).hexdigest()
    return "_".join(filter(None, (session["created_at"][:10], name, digest))) + ENDINGS[to]


def document_path(given: str, to: ExportFormat, folder: str | None) -> Path:
    """Return the file that is meant. Raises InvalidRequest if it is no document, or relative to no known folder.

    Only a document's name may be written to: what is in a session must not become a program or a setting.
    """
    path = Path(given).expanduser()
    allowed = {ENDINGS[to], *{"markdown": [".markdown"], "html": [".htm"]}.get(to, [])}
    if path.suffix.lower() not in allowed:
        raise InvalidRequest(
            "That is no name of a document.", f"path: given {given!r}; allowed: {ENDINGS[to]} at its end"
        )
    if not path.is_absolute() and folder is None:
        raise InvalidRequest("The path is not complete.", f"path: given {given!r}; allowed: an absolute path")
    return Path(folder or "/") / path


def write_new_file(path: Path, content: bytes) -> Path:
    """Write a new file and return its path; InvalidRequest if it exists, or its folder does not."""
    if not path.parent.is_dir():
        raise InvalidRequest(
            "There is no such folder.", f"path: given {str(path)!r}; allowed: a file in a folder that exists"
        )
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError as exc:
        raise InvalidRequest("The file exists already.", f"path: given {str(path)!r}; allowed: a new name") from exc
    except OSError as exc:
        raise StorageError("The file could not be written.", f"{path}: {exc.strerror}") from exc
    return path.absolute()


def as_json(session: Item, messages: Sequence[Item]) -> str:
    """Return session and messages as JSON, without the time of the last access."""
    session = {name: value for name, value in session.items() if name not in _OF_THE_REGISTRY}
    return json.dumps({"session": session, "messages": messages}, ensure_ascii=False, indent=2) + "\n"


def as_markdown(session: Item, messages: Sequence[Item]) -> str:
    """Return a head in YAML and a section for each turn: texts word for word, tools and thinking folded."""
    parts = [_head(session), f"# {title_of(session)}"]
    turn = 0
    for message in messages:
        if message["role"] == "user" or turn == 0:
            turn += 1
            parts.append(f"## {turn} · {time_of(message)}")
        parts.append(_folded(message) if message["role"] in FOLDED else _plain(message))
    return "\n\n".join(parts) + "\n"


def _head(session: Item) -> str:
    """Return the head in YAML, of which JSON values are a part."""
    known = [f"{name}: {json.dumps(session[name], ensure_ascii=False)}" for name in HEAD if session.get(name)]
    return "\n".join(["---", *known, "---"])


def _plain(message: Item) -> str:
    return f"**{message['role'].capitalize()}**\n\n{closed(message['text'])}"


def _folded(message: Item) -> str:
    text = message["text"]
    fence = fence_for(text)
    summary = escape(preview_of(text, 80), quote=False)
    return (
        f"<details>\n<summary>{message['role'].capitalize()}: {summary}</summary>\n\n"
        f"{fence}text\n{text}\n{fence}\n\n</details>"
    )


_DOCUMENTS: dict[str, Callable[[Item, Sequence[Item]], str]] = {
    "markdown": as_markdown,
    "json": as_json,
    "html": as_html,
}
