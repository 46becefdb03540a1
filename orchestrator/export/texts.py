"""Export a session as Markdown, JSON, HTML or PDF; convert an exported JSON document to requests."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from html import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple

from orchestrator.answer.delivery import UNDONE
from registry.domain import local_day, preview_of
from registry.errors import InvalidRequest, StorageError

ExportFormat = Literal["markdown", "json", "html", "pdf"]
ENDINGS: Mapping[ExportFormat, str] = {"markdown": ".md", "json": ".json", "html": ".html", "pdf": ".pdf"}

Item = Mapping[str, Any]
_UNSAFE = re.compile(r"[^\w.-]+")

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
    if to != "json":
        messages = [{**message, "text": with_attachments(message)} for message in messages]
    if to == "pdf":
        from orchestrator.export.pdf import as_pdf  # needs an extra

        return as_pdf(session, messages)
    return _DOCUMENTS[to](session, messages).encode()


def with_attachments(message: Item) -> str:
    """Return a message's text with the names of its attachments: a text cannot contain them."""
    attached = message.get("attachments")
    if not isinstance(attached, list) or not attached:
        return str(message["text"])
    names = (str(one.get("name") or one) if isinstance(one, Mapping) else str(one) for one in attached)
    note = f"(attached: {', '.join(names)})"
    return f"{closed(message['text'])}\n\n{note}" if message["text"] else note


def document_name(session: Item, to: ExportFormat) -> str:
    """Return a file name that is valid on every system: first day, name, digest of the channel."""
    words = session["nickname"] or session["title"] or session["first_message_preview"] or ""
    name = _UNSAFE.sub("-", words).strip("-.")[:60].rstrip("-.")
    digest = blake2b(session["channel"].encode(), digest_size=3).hexdigest()
    return "_".join(filter(None, (local_day(session["created_at"]), name, digest))) + ENDINGS[to]


def document_path(given: str, to: ExportFormat, folder: str | None) -> Path:
    """Return the path to write to. Raises InvalidRequest for another suffix, or a relative path without a folder.

    Only documents may be written: text of a session must not become a program or a setting.
    """
    path = Path(given).expanduser()
    allowed = {ENDINGS[to], *{"markdown": [".markdown"], "html": [".htm"]}.get(to, [])}
    if path.suffix.lower() not in allowed:
        raise InvalidRequest(
            "That is not a document's file name.", f"path: given {given!r}; allowed: a name that ends in {ENDINGS[to]}"
        )
    if not path.is_absolute() and folder is None:
        raise InvalidRequest("The path is not complete.", f"path: given {given!r}; allowed: an absolute path")
    return Path(folder or "/") / path


def write_new_file(path: Path, content: bytes) -> Path:
    """Write a new file and return its path; InvalidRequest if it exists, or its folder does not."""
    if not path.parent.is_dir():
        raise InvalidRequest(
            "There is no such folder.", f"path: given {str(path)!r}; allowed: a file in an existing folder"
        )
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError as exc:
        raise InvalidRequest("The file exists already.", f"path: given {str(path)!r}; allowed: a new name") from exc
    except OSError as exc:
        with suppress(OSError):
            path.unlink()  # a part of it, on a full disk
        raise StorageError("The file could not be written.", f"{path}: {exc.strerror}") from exc
    return path.absolute()


def as_json(session: Item, messages: Sequence[Item]) -> str:
    """Return session and messages as JSON, without the time of the last access."""
    session = {name: value for name, value in session.items() if name != "last_accessed"}
    return json.dumps({"session": session, "messages": messages}, ensure_ascii=False, indent=2) + "\n"


def as_markdown(session: Item, messages: Sequence[Item]) -> str:
    """Return YAML front matter and a section for each turn: full texts; tools and thinking folded."""
    # JSON values are a part of YAML
    head = [f"{name}: {json.dumps(session[name], ensure_ascii=False)}" for name in HEAD if session.get(name)]
    parts = ["\n".join(["---", *head, "---"]), f"# {title_of(session)}"]
    turn = 0
    for message in messages:
        if message["role"] == "user" or turn == 0:
            turn += 1
            parts.append(f"## {turn} · {time_of(message)}")
        role, text = message["role"], message["text"]
        speaker = speaker_of(message).capitalize()
        parts.append(_folded(speaker, text) if role in FOLDED else f"**{speaker}**\n\n{closed(text)}")
    return "\n\n".join(parts) + "\n"


def _folded(speaker: str, text: str) -> str:
    fence = "`" * max([2, *map(len, _BACKTICKS.findall(text))]) + "`"  # longer than any fence in the text
    summary = escape(preview_of(text, 80), quote=False)
    return f"<details>\n<summary>{speaker}: {summary}</summary>\n\n{fence}text\n{text}\n{fence}\n\n</details>"


FOLDED = ("tool", "thinking", "system")

_FACTS = {
    "Source": "source",
    "Project": "project_path",
    "Session": "session_id",
    "Nickname": "nickname",
    "Tags": "tags",
    "Messages": "message_count",
    "Begun": "created_at",
    "Last activity": "updated_at",
}


def as_html(session: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the HTML page; all text of the session is escaped."""
    from jinja2 import Template  # imported here because it is slow and only HTML exports need it

    template = Path(__file__).with_name("session.html").read_text(encoding="utf-8")
    page = Template(template, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    helpers = {"passages": passages, "speaker_of": speaker_of, "time_of": time_of, "preview_of": preview_of}
    about = {"title": title_of(session), "facts": facts_of(session), "folded": FOLDED}
    shown: str = page.render(messages=messages, **about, **helpers)
    return shown + "\n"


def title_of(session: Mapping[str, Any]) -> str:
    """Return the session's title, else its first words or its channel, on one line."""
    return " ".join((session["title"] or session["first_message_preview"] or session["channel"]).split())


def facts_of(session: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield label and value of the session's fields that are set."""
    for label, name in _FACTS.items():
        value = session[name]
        shown = ", ".join(value) if isinstance(value, list) else value
        if shown:
            yield label, str(shown)


def speaker_of(message: Item) -> str:
    """Return the role of a message, and whether its user undid it."""
    return f"{message['role']} ({UNDONE})" if message.get("superseded") else str(message["role"])


def time_of(message: Mapping[str, Any]) -> str:
    """Return the time of a message, and whether it is inferred."""
    at = f"{message['timestamp'][:16].replace('T', ' ')} UTC"
    return f"{at} (inferred)" if message.get("time") == "inferred" else at


_FENCE = re.compile(r" {0,3}(?:(`{3,})([^`]*)|(~{3,})(.*))")
_BACKTICKS = re.compile("`+")


class FencedPassage(NamedTuple):
    """Prose, or the contents of one code block. `fence` is set if the block is not closed."""

    is_code: bool
    text: str
    fence: str = ""


def passages(text: str) -> Iterator[FencedPassage]:
    """Split a text into prose and code blocks, without fences and without empty prose."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.fullmatch(line)
        mark, info = (found[1] or found[3], found[2] or found[4] or "") if found else ("", "")
        ends = bool(fence) and mark.startswith(fence) and not info.strip()
        if mark and (ends or not fence):
            yield from _passage(lines, is_code=ends)
            lines, fence = [], "" if ends else mark
        else:
            lines.append(line)
    yield from _passage(lines, is_code=bool(fence), fence=fence)


def _passage(lines: list[str], *, is_code: bool, fence: str = "") -> Iterator[FencedPassage]:
    text = "\n".join(lines)
    if is_code or text.strip():
        yield FencedPassage(is_code, text, fence)


def closed(text: str) -> str:
    """Close an open code block at the end of a text, so that appended text is not part of it."""
    fences = [passage.fence for passage in passages(text)]
    return f"{text}\n{fences[-1]}" if fences and fences[-1] else text


_DOCUMENTS: dict[str, Callable[[Item, Sequence[Item]], str]] = {
    "markdown": as_markdown,
    "json": as_json,
    "html": as_html,
}


CLIENT = "client"  # the writer of a summary that is part of the conversation
Document = Mapping[str, Any]
_REGISTRY_FIELDS = ("id", "sequence")
_META_FIELDS = ("title", "session_id", "summary")


def is_document(given: Any) -> bool:
    """Return True for a document of `ctxr export --format json`."""
    if not isinstance(given, Mapping) or not isinstance(given.get("messages"), list):
        return False
    session = given.get("session")
    return isinstance(session, Mapping) and all(isinstance(session.get(name), str) for name in ("channel", "source"))


def requests_of(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the request that stores the session, and those that set its names and tags.

    A title given by the user keeps its time, so that it replaces the client's, but none that was given later.
    """
    session = document["session"]
    messages = [
        {name: value for name, value in message.items() if name not in _REGISTRY_FIELDS}
        for message in document["messages"]
        if isinstance(message, Mapping)
    ]
    about = {name: session[name] for name in _META_FIELDS if session.get(name)}
    if session.get("session_id") == session["channel"]:
        del about["session_id"]
    if session.get("summary_by") != CLIENT:
        about.pop("summary", None)
    if session.get("project_path"):
        about["project"] = session["project_path"]
    to = {"channel": session["channel"], "source": session["source"]}
    yield {"operation": "conversation_log", **to, "messages": messages, "meta": about}
    names = {"nickname": session.get("nickname"), "add_tags": session.get("tags") or []}
    if any(names.values()):
        yield {"operation": "tag", **to, "query": {name: value for name, value in names.items() if value}}
    if session.get("titled_at"):
        yield {"operation": "tag", **to, "query": {"title": session.get("title")}, "timestamp": session["titled_at"]}
