"""Stored messages as the conversation page shows them. Pure."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from difflib import unified_diff
from itertools import groupby, islice
from typing import Any, NamedTuple

from markupsafe import Markup

from backoffice.pages.viewer.markdown import code_html, html_of, with_images_by_number
from registry.domain import parse_time

# Characters shown at once; the rest is loaded on request, up to 200 000. More is offered as a file.
MAX_SHOWN_CHARS = {"tool": 4_000, "thinking": 8_000, "system": 4_000}
FOLDED_ROLES = {"tool", "thinking", "system"}
_MAX_HEADLINE_CHARS = 160
_DIFF_STARTS = ("diff --git ", "--- ", "*** Begin Patch", "@@ ")
_SUCCESS_STATUSES = {"completed", "ok", "success", "succeeded", "done"}


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message as its template needs it; `missing`: how many characters of it are not shown."""

    id: str
    role: str
    timestamp: str
    is_inferred: bool
    is_undone: bool
    is_folded: bool
    headline: str
    status: str
    has_failed: bool
    duration_ms: float | None
    html: Markup
    missing: int
    deleted: bool
    facts: dict[str, str]
    model: str
    tokens: int
    attachments: Sequence[str]  # those that are not stored
    images: Mapping[int, str]  # the names of stored ones, by position


class Block(NamedTuple):
    """Messages shown together: one message, or a run of tool calls and thoughts behind one summary line."""

    messages: Sequence[ShownMessage]
    is_strip: bool

    @property
    def tools(self) -> int:
        return sum(message.role == "tool" for message in self.messages)

    @property
    def failed(self) -> int:
        return sum(message.has_failed for message in self.messages)


def blocks_of(messages: Iterable[ShownMessage]) -> list[Block]:
    """Group messages in order: two or more tool calls and thoughts in a row make a strip."""
    blocks: list[Block] = []
    for is_aside, group in groupby(messages, key=lambda one: one.role in ("tool", "thinking") and not one.deleted):
        grouped = list(group)
        if is_aside and len(grouped) > 1:
            blocks.append(Block(grouped, True))
        else:
            blocks += [Block([one], False) for one in grouped]
    return blocks


def with_durations(messages: Iterable[ShownMessage]) -> Iterator[ShownMessage]:
    """Set each answer's duration to the time since its question, if the client stored both times."""
    asked: datetime | None = None
    for one in messages:
        if one.role == "user":
            asked = None if one.is_inferred else parse_time(one.timestamp)
        if asked and one.role == "assistant" and not one.is_inferred:
            took = (parse_time(one.timestamp) - asked) / timedelta(milliseconds=1)
            yield replace(one, duration_ms=took)
        else:
            yield one


def shown_message(item: Mapping[str, Any], *, whole: bool = False) -> ShownMessage:
    """Return a stored message for the page, shortened unless `whole`."""
    payload: Mapping[str, Any] = item["payload"]
    tool = _mapping(payload.get("tool"))
    text = with_images_by_number(item["text"])
    max_chars = 200_000 if whole else MAX_SHOWN_CHARS.get(item["role"], 20_000)
    status = str(tool.get("status") or "")
    tokens = _mapping(payload.get("usage")).get("output_tokens")
    attached = [str(_mapping(one).get("name") or one) for one in _listed(payload.get("attachments"))]
    images = {position: name for position, name in enumerate(attached) if position in item.get("images", ())}
    if images and text == " ".join(f"[{name}]" for name in attached):  # the text of a message of images only
        text = ""
    return ShownMessage(
        id=item["id"],
        role=item["role"],
        timestamp=item["timestamp"],
        is_inferred=payload.get("time") == "inferred",
        is_undone=bool(payload.get("superseded")),
        is_folded=item["role"] in FOLDED_ROLES or bool(payload.get("injected")),
        headline=_headline(text, tool),
        status=status,
        has_failed=bool(status) and status not in _SUCCESS_STATUSES,
        duration_ms=_milliseconds(payload, tool),
        html=Markup(_body(item, text[:max_chars], tool, max_chars)),  # noqa: S704, sanitised by `markdown`
        missing=max(len(text) - max_chars, 0),
        deleted=item["deleted"],
        facts=dict(_facts(item)),
        model=str(payload.get("model") or ""),
        tokens=tokens if isinstance(tokens, int) else 0,
        attachments=[name for position, name in enumerate(attached) if position not in images],
        images=images,
    )


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _headline(text: str, tool: Mapping[str, Any]) -> str:
    name, first = str(tool.get("name") or ""), text.lstrip().partition("\n")[0][:_MAX_HEADLINE_CHARS]
    return first if first.startswith(name) else f"{name}: {first}"


def _milliseconds(*records: Mapping[str, Any]) -> float | None:
    found = (record.get("duration_ms") for record in records)
    return next((value for value in found if isinstance(value, int | float)), None)


def _body(item: Mapping[str, Any], text: str, tool: Mapping[str, Any], max_chars: int) -> str:
    if item["role"] == "tool":
        changes = list(_changes(_mapping(tool.get("params")), max_chars))
        return "".join([*(code_html(change, "diff") for change in changes), _output(_below_headline(text))])
    if item["role"] == "user" and is_pasted(text):
        return code_html(text, "text")
    return html_of(text, f"/messages/{item['id']}/images")


_TERMINAL = re.compile(
    r"[$%] \S|[\w.-]+@[\w.-]+[:~]|Traceback \(|  File \"|\s+at \S+\(|[dl-][rwx-]{9}|\d{4}-\d\d-\d\d[ T]\d\d:\d\d"
    r"|(?:\w+\.)*\w*(?:Error|Exception|Warning):|\[?(?:INFO|WARN|WARNING|ERROR|DEBUG|FATAL)\b"
    r"|(?:FAILED|PASSED) |npm |\t"
)
_LIST = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")


def is_pasted(text: str) -> bool:
    """Return whether a text is pasted terminal output or a log: then it is not rendered as Markdown."""
    lines = [line for line in islice(text.splitlines(), 200) if line.strip()]
    if "```" in text or len(lines) < 3:
        return False
    commands = sum(1 for line in lines if _TERMINAL.match(line))
    indented = sum(1 for line in lines if line.startswith("    ") and not _LIST.match(line))
    return commands > 0 and commands + indented >= 0.4 * len(lines)


def _below_headline(text: str) -> str:
    first, _, rest = text.lstrip().partition("\n")
    return rest.lstrip("\n") if len(first) <= _MAX_HEADLINE_CHARS else text


def _output(text: str) -> str:
    if not text:
        return ""
    is_diff = any(line.startswith(_DIFF_STARTS) for line in text.splitlines()[:4])
    return code_html(text, "diff" if is_diff else "text")


def _changes(params: Mapping[str, Any], max_chars: int) -> Iterator[str]:
    for edit in [params, *map(_mapping, _listed(params.get("edits")))]:
        old, new = edit.get("old_string"), edit.get("new_string")
        if isinstance(old, str) and isinstance(new, str):
            lines = list(unified_diff(old[:max_chars].splitlines(), new[:max_chars].splitlines(), lineterm=""))
            yield "\n".join(lines[2:])  # without the names of the files
    for key in ("patch", "diff", "input"):
        given = params.get(key)
        if isinstance(given, str) and given.lstrip().startswith(_DIFF_STARTS):
            yield given[:max_chars]


def _facts(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    payload = item["payload"]
    known = {
        "id": item["id"],
        "actor": item["actor"],
        "source": item["source"],
        "origin": payload.get("origin"),
        "native_id": payload.get("native_id"),
        "model": payload.get("model") or _mapping(payload.get("meta")).get("model"),
        "received_at": item["received_at"],
        "context": item["context"],
        "attachments": payload.get("attachments"),
    }
    for name, value in known.items():
        if value:
            yield name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
