"""Shared functions of the readers of both providers' exports. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from registry.domain import Role, Session, format_time, preview_of
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import Record, items, mapping, string


def name_of(value: object) -> str:
    """Return an id as it is; its digest if it is too long or unprintable for a key."""
    given = string(value)
    if given.isprintable() and len(given) <= 200:
        return given
    return blake2b(given.encode("utf-8", "replace"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Version:
    """The state of a conversation when it was exported; `rest`: other fields that may change."""

    updated: datetime | None
    messages: int
    rest: tuple[object, ...] = ()

    def fingerprint(self, generation: str) -> str:
        """Return the fingerprint for FoundSession, of which `is_known` compares the parts."""
        rest = blake2b(repr(self.rest).encode("utf-8", "replace"), digest_size=6).hexdigest()
        return f"{generation} {format_time(self.updated) if self.updated else '-'} {self.messages} {rest}"


def is_known(seen: str | None, found: str) -> bool:
    """Return True if an export has nothing new of a conversation: it is the same or an older one."""
    if seen is None or seen == found:
        return seen is not None
    (before, seen_at, had, _), (generation, found_at, has, _) = seen.split(" "), found.split(" ")
    return before == generation and "-" not in (seen_at, found_at) and found_at < seen_at and int(has) <= int(had)


def titled(drafted: Iterable[Draft], **titles: str) -> tuple[str, str] | tuple[None, None]:
    """Return the origin and the text of the title: the first that is not empty, else the user's first words."""
    for kind, title in titles.items():
        if title.strip():
            return kind, preview_of(title, 320)
    typed = (part for draft in drafted if draft.role is Role.USER for part in draft.parts)
    words = next(filter(str.strip, typed), "")
    return ("first words", preview_of(words, 80)) if words else (None, None)


def session_of(
    session_id: str, drafted: list[Draft], title: tuple[str, str] | tuple[None, None], meta: Mapping[str, Any]
) -> Session:
    """Return the session, with the fields of `meta` that are set."""
    named = Counter[str]()
    for draft in drafted:
        name = name_of(draft.more["native_id"])
        named[name] += 1
        draft.more["native_id"] = name if named[name] == 1 else f"{name}#{named[name]}"
    known = {"title_from": title[0], **meta}
    known = {name: value for name, value in known.items() if value}
    return Session(
        session_id, drafts.messages_of(drafted), title[1], string(known.pop("project", None)) or None, None, known
    )


def injected(text: str, at: datetime | None, native_id: str, **more: Any) -> Draft:
    """Return a draft of text that nobody typed: context, instructions, contents of files."""
    return Draft(Role.SYSTEM, [text] if text else [], at, {"native_id": native_id, "injected": True, **more})


def more_result(draft: Draft, result: str, status: str) -> None:
    """Add a result to a call; some calls have several."""
    tool = draft.more["tool"]
    if tool["status"] == drafts.PENDING:
        drafts.answer(draft, result, status)
    elif result:
        tool["result"] = f"{tool['result']}\n\n{result}"
        draft.add(result)


_WRITTEN = ("content", "file_text", "code", "input")


def show_document(draft: Draft, params: object) -> None:
    """Add the document or script that a call writes or runs (artifacts, canvases) to the message's text."""
    given = mapping(params)
    text, title = next(filter(None, (string(given.get(key)) for key in _WRITTEN)), ""), draft.parts[0]
    name = next(filter(None, (string(given.get(key)) for key in ("title", "name"))), "")
    if text:
        draft.parts[0] = f"{title} {preview_of(name)}".strip() if name not in title else title
        draft.add(text.strip())


def cited(*lists: object) -> dict[str, list[dict[str, str]]]:
    """Return the pages that a text refers to, for a message's `more`."""
    pages: dict[str, str] = {}
    for entry in (entry for entries in lists for entry in items(entries)):
        for page in _pages(mapping(entry)):
            if url := string(page.get("url")):
                pages.setdefault(url, string(page.get("title")))
    return {"citations": [{"title": title, "url": url} for url, title in pages.items()]} if pages else {}


def _pages(entry: Record) -> Iterator[Record]:
    yield entry
    yield mapping(entry.get("metadata"))
    yield from map(mapping, items(entry.get("items")))
