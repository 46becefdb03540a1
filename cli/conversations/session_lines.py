"""How sessions look in a terminal: a list of them, and one to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from cli.conversations.transcript import INFERRED, ROLE_COLOURS
from cli.output import counted, cut, display_width, local_time, one_line, pad, printable, wrap

Session = Mapping[str, Any]

PLACE = 6
TIME = len("2025-09-29 14:30")
GAP = "  "
PROJECT = 16
FENCE = "```"


def session_list(sessions: Sequence[Session], width: int, first: int | None = None) -> Iterator[str]:
    """Two lines for each. `first`: the place of the first one among all sessions, None where that is not known."""
    for offset, session in enumerate(sessions):
        yield from session_entry(session, width, f"#{first + offset}" if first else "")


def session_entry(session: Session, width: int, place: str = "") -> Iterator[str]:
    """Return a session's lines: time, subject and project, then its id, which is never cut.

    Of a session far down among many that were found only the essence may be known.
    """
    margin = PLACE if place else 0
    room = width - margin - TIME - 2 * len(GAP) - PROJECT
    title = pad(one_line(title_of(session)), room)
    project = cut(one_line(session.get("project_name", "")), PROJECT)
    time = local_time(session["updated_at"]) if "updated_at" in session else " " * TIME
    yield f"{pad(place, margin)}{time}{GAP}{click.style(title, bold=True)}{GAP}{project}".rstrip()
    name = printable(session.get("nickname") or session["session_id"])
    count = [counted(session["message_count"], "message")] if "message_count" in session else []
    facts = ", ".join([*count, *_doubt(session), *session.get("tags", ())])
    left = " " * margin + pad(session["source"], TIME) + GAP + name + GAP
    yield click.style((left + cut(one_line(facts), max(width - display_width(left), 0))).rstrip(), dim=True)


def elsewhere(found: Mapping[str, Any]) -> str:
    """Return where and when there are sessions instead; nothing if there are none at all."""
    other = found.get("elsewhere") or {}
    named = other.get("same_name")
    folder = f", {named['count']} in {printable(named['path'])}" if named else ""
    places = [f"elsewhere: {other['all']} in all projects{folder}"] if "all" in other else []
    near = {"projects": "projects called nearly so", "tags": "tags"}
    lists = [f"{said}: {printable(', '.join(other[name]))}" for name, said in near.items() if name in other]
    times = [f"nearest: {', '.join(map(local_time, other['nearest']))}"] if "nearest" in other else []
    return "; ".join([*moved_from(found), *times, *places, *lists])


def moved_from(found: Mapping[str, Any]) -> list[str]:
    """Return this folder's former name, if its files tell it, and the command that moves its sessions."""
    before = (found.get("elsewhere") or {}).get("moved_from")
    if not before:
        return []
    count = f"{before['count']} session{'' if before['count'] == 1 else 's'}"
    return [printable(f"this folder was {before['path']}, {count}: {before['command']}")]


def title_of(session: Session) -> str:
    """Return a session's title for a list."""
    return str(session.get("title") or session.get("first_message_preview") or session["channel"])


def session_page(page: Mapping[str, Any], width: int, before: int | None, *, is_whole: bool) -> Iterator[str]:
    """A session's head, then its messages, each with who said it."""
    session, messages = page["session"], page["messages"]
    rule = "━" * width
    yield rule
    yield from _head(session, width)
    yield f"Messages: {len(messages)} / {session['message_count']}{_which(before, is_whole)}"
    yield rule
    for message in messages:
        yield from _message(message, width)
        yield ""
    yield rule


def _doubt(session: Session) -> list[str]:
    return ["time inferred"] if session.get("time") == INFERRED else []


def _head(session: Session, width: int) -> Iterator[str]:
    begun, ended = local_time(session["created_at"]), local_time(session["updated_at"])
    facts = {
        "Session": title_of(session),
        "Date": ", ".join([begun if begun == ended else f"{begun} to {ended}", *_doubt(session)]),
        "Source": session["source"],
        "Project": session["project_path"] or session["project_name"],
        "Id": session["session_id"],
        "Nickname": session["nickname"],
        "Tags": ", ".join(session["tags"]),
        "Related": ", ".join(one["channel"] for one in session.get("related", ())),
    }
    for label, value in facts.items():
        first, *more = wrap(one_line(value or ""), width - TIME)
        if first:
            yield f"{label + ':':<10}{first}"
        yield from (" " * 10 + line for line in more)


def _which(before: int | None, is_whole: bool) -> str:
    if is_whole:
        return ""
    return f" (before message {before})" if before else " (showing most recent)"


def _message(message: Mapping[str, Any], width: int) -> Iterator[str]:
    role, text = message["role"], printable(message["text"])
    label = f"[{role.upper()}]"
    shown = list(wrap(f"{label}\n{text}" if text.startswith(FENCE) else f"{label} {text}", width))
    yield click.style(label, fg=ROLE_COLOURS.get(role, "yellow"), bold=True) + shown[0].removeprefix(label)
    yield from shown[1:]
