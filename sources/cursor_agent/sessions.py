"""One conversation of a Cursor agent, out of its store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from registry.domain import Message, Role, Session, preview_of
from sources.base import Skipped
from sources.cursor.conversations import counted
from sources.cursor_agent.files import Stored
from sources.cursor_agent.messages import UNKNOWN_MODEL, Talk
from sources.cursor_agent.state import Root, question_of, read_turn, steps_of
from sources.cursor_agent.store import AgentStore
from sources.kit.jsonl import Record, string

_UNNAMED = ("", "New Agent")
_TITLE_WIDTH = 80
_STEPS = {"assistant": Role.ASSISTANT, "thinking": Role.THINKING}


def talk_in(store: AgentStore, root_id: str, root: Root, about: Record) -> tuple[Talk, tuple[Skipped, ...]]:
    """What was said, and what could not be read of it. Raises StorageError."""
    talk = Talk(string(about.get("cwd")) or root.folder(), string(about.get("lastUsedModel")))
    damage = Counter[str]()
    for element in store.elements(root_id, root):
        if element.message is None:
            damage[element.why] += 1
        else:
            talk.read(element.name, element.message)
    if not any(draft.role is not Role.SYSTEM for draft in talk.drafts):
        _read_turns(store, root, talk)
    if (began := root.turn_began()) and (asked := _last_question(talk)) and asked.at is None:
        asked.at = began
    if not root.is_whole:
        damage["not whole: the state that lists them is damaged"] += 1
    skipped = (Skipped(counted(count, "message"), why) for why, count in damage.items())
    return talk, (*skipped, *talk.skipped())


def _read_turns(store: AgentStore, root: Root, talk: Talk) -> None:
    """What the user saw, where what the model saw is not there."""
    for turn_id in root.turns():
        turn = read_turn(store.blob(turn_id) or b"")
        if turn is None:
            continue
        talk.said(turn.question, Role.USER, question_of(store.blob(turn.question) or b""))
        for step_id in turn.steps:
            for place, step in enumerate(steps_of(store.blob(step_id) or b"")):
                if role := _STEPS.get(step.kind):
                    talk.said(f"{step_id}.{place}", role, step.text)
                else:
                    talk.unknown["tool call outside of the prompt"] += 1


def _last_question(talk: Talk) -> Any:
    return next((draft for draft in reversed(talk.drafts) if draft.role is Role.USER), None)


def stored_session(kept: Stored, about: Record, root: Root, talk: Talk, messages: tuple[Message, ...]) -> Session:
    """The session with what its own store says of it."""
    meta: dict[str, Any] = {"mode": string(about.get("mode"))} | {
        key: value for key, value in root.about().items() if value
    }
    model = string(about.get("lastUsedModel"))
    meta |= {"model": "" if model == UNKNOWN_MODEL else model, "children": root.children()}
    named = (string(about.get(key)).strip() for key in ("title", "name"))
    return Session(
        session_id=string(about.get("agentId")) or kept.session_id,
        messages=messages,
        title=title_of(next((name for name in named if name not in _UNNAMED), ""), messages),
        project=talk.folder or None,
        meta={key: value for key, value in meta.items() if value},
    )


def title_of(named: str, messages: Iterable[Message]) -> str | None:
    """The client's title, else the first words of the user."""
    asked = (message.text for message in messages if message.role is Role.USER)
    return preview_of(named or next(asked, ""), _TITLE_WIDTH) or None
