"""A conversation that a parser builds message by message. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from registry.domain import Role, Session, preview_of
from sources.base import Skipped
from sources.kit import drafts
from sources.kit.drafts import Draft
from sources.kit.jsonl import mapping, object_in


@dataclass(slots=True)
class Conversation:
    """The messages so far, tool calls by id, and a count of what the parser did not understand.

    `folder`: the working folder, which shortens paths in the titles of calls. `model`: of the messages that follow.
    """

    session_id: str = ""
    folder: str = ""
    model: str = ""
    unknown: Counter[str] = field(default_factory=Counter)
    drafts: list[Draft] = field(default_factory=list)
    calls: dict[str, Draft] = field(default_factory=dict)

    def say(
        self, role: Role, text: str, at: datetime | None = None, native_id: str = "", *, origin: str = "", **more: Any
    ) -> Draft:
        """Add a message and return it; without text or attachments it is returned only."""
        named = {"native_id": native_id} if native_id else {}
        draft = Draft(role, [text] if text else [], at, {**named, **more}, origin)
        if text or "attachments" in more:
            self.drafts.append(draft)
        return draft

    def call(
        self,
        call_id: str,
        name: str,
        params: object,
        at: datetime | None = None,
        *,
        folder: str = "",
        origin: str = "",
        **more: Any,
    ) -> Draft:
        """Add a tool call without a result."""
        draft = drafts.tool_draft(call_id, name or "tool", params, at, folder=folder or self.folder, origin=origin)
        draft.more |= more
        self.calls[call_id or f"without id {len(self.drafts)}"] = draft
        self.drafts.append(draft)
        return draft

    def answer(self, call_id: str, result: str, status: str) -> None:
        """Add the result of a call; one of an unknown call is dropped."""
        if call_id in self.calls:
            drafts.answer(self.calls[call_id], result, status)

    def with_model(self) -> dict[str, Any]:
        """Return the current model as part of a message's `more`."""
        return {"model": self.model} if self.model else {}

    def describe(self, since: int, model: str, usage: Mapping[str, int]) -> None:
        """Note the model with the messages since a position, and the tokens with the first of them."""
        for draft in self.drafts[since:]:
            draft.more |= {"model": model} if model else {}
        for draft in self.drafts[since : since + 1]:
            draft.more |= {"usage": dict(usage)} if usage else {}

    def skipped(self, where: str = "") -> tuple[Skipped, ...]:
        """Return what was passed over because this reader does not know it."""
        return skipped_unknown(self.unknown, where)

    def build(
        self,
        titles: Mapping[str, object] | None = None,
        *,
        folders: Iterable[str] = (),
        project: str | None = None,
        parent: str | None = None,
        began: datetime | None = None,
        **meta: Any,
    ) -> Session:
        """Build the session. `titles`: candidates by origin; `folders`: candidates for the project, the first wins."""
        title_from, title = title_of(self.drafts, titles or {})
        known = {"title_from": title_from, **meta}
        return Session(
            session_id=self.session_id,
            messages=drafts.messages_of(self.drafts, began),
            title=title,
            project=project or drafts.project_of(folders),
            parent=parent or None,
            meta={name: value for name, value in known.items() if value},
        )


def title_of(found: Iterable[Draft], titles: Mapping[str, object]) -> tuple[str, str] | tuple[None, None]:
    """Return origin and text of the title: the first candidate that is not blank, else the user's first words."""
    for origin, title in titles.items():
        if isinstance(title, str) and title.strip():
            return origin, preview_of(title, 320)
    words = next((draft.parts[0] for draft in found if draft.role is Role.USER and draft.parts), "")
    return ("first words", preview_of(words, 80)) if words.strip() else (None, None)


def off_path(parents: Mapping[str, str], leaf: str) -> set[str]:
    """Return the records of a tree that do not lead to its last one: the user took a step back behind them.

    None if the chain to the root is torn.
    """
    live: set[str] = set()
    while leaf in parents and leaf not in live:
        live.add(leaf)
        leaf = parents[leaf]
    return set() if leaf else parents.keys() - live


def skipped_unknown(unknown: Mapping[str, int], where: str = "") -> tuple[Skipped, ...]:
    """Return one entry for each kind of thing that a reader does not know."""
    return tuple(Skipped(f"{count} x {kind}{where}", "unknown to this reader") for kind, count in unknown.items())


def usage_of(given: object, names: Mapping[str, str]) -> dict[str, int]:
    """Return a client's token counts by our names."""
    counts = mapping(given)
    return {ours: counts[theirs] for theirs, ours in names.items() if isinstance(counts.get(theirs), int)}


def params_of(arguments: object) -> object:
    """Return a call's parameters: clients write JSON into a string, or a script as it is."""
    return (object_in(arguments) or {"input": arguments}) if isinstance(arguments, str) else arguments
