"""Show conversations: a list of sessions, one session to read, and what `ctxr extract` found."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from cli.output import (
    counted,
    cut,
    dim,
    display_width,
    line_width,
    local_time,
    one_line,
    pad,
    printable,
    with_bold_hits,
    wrap,
)
from orchestrator.answer.delivery import UNDONE
from orchestrator.export.texts import with_attachments
from orchestrator.operations.usage import in_dollars

ROLE_COLOURS = {"user": "cyan", "assistant": "green", "error": "red"}
INDENT = "  "
WORDS_RELAXED = "No match for these words in that time or place; these are the last messages there."
Session = Mapping[str, Any]
TIME = len("2025-09-29 14:30")


def session_entry(session: Session, number: int | None = None) -> Iterator[str]:
    """Return the two lines of a list: time, title and project, then the id, which is never cut.

    `number`: its position in the list of all sessions. Low-ranked search hits may lack time and message count.
    """
    margin = 6 if number else 0
    for_project = 16 if line_width() >= 60 else 0  # a narrow terminal has room for the title only
    project = cut(one_line(session.get("project_name", "")), for_project) if for_project else ""
    time = local_time(session["updated_at"]) if "updated_at" in session else " " * TIME
    title = click.style(pad(one_line(title_of(session)), line_width() - margin - TIME - 4 - for_project), bold=True)
    yield f"{pad(f'#{number}' if number else '', margin)}{time}  {title}  {project}".rstrip()
    name = printable(session.get("nickname") or session["session_id"])
    count = [counted(session["message_count"], "message")] if "message_count" in session else []
    facts = ", ".join([*count, *_time_note(session), *session.get("tags", ())])
    left = f"{' ' * margin}{pad(session['source'], TIME)}  {name}  "
    yield dim((left + cut(one_line(facts), max(line_width() - display_width(left), 0))).rstrip())


def next_page_line(found: Mapping[str, Any]) -> Iterator[str]:
    """Return the line that says how to get the next page, if there is one."""
    pagination = found["pagination"]
    if pagination["has_more"]:
        after = pagination["offset"] + len(found["sessions"])
        yield dim(f"{after} of {pagination['total']}. For more: --offset {after}")


def elsewhere_note(found: Mapping[str, Any]) -> str:
    """Return how many sessions other projects have; "" if there are none."""
    other = found.get("elsewhere") or {}
    if "all" not in other:
        return ""
    same = other.get("same_name")
    folder = f", {same['count']} in {printable(same['path'])}" if same else ""
    return f"elsewhere: {other['all']} in all projects{folder}"


def title_of(session: Session) -> str:
    return str(session.get("title") or session.get("first_message_preview") or session["channel"])


def session_page(page: Mapping[str, Any], before: int | None, *, is_whole: bool) -> Iterator[str]:
    session, messages = page["session"], page["messages"]
    rule = "━" * line_width()
    which = "" if is_whole else f" (before message {before})" if before else " (showing most recent)"
    yield rule
    yield from _session_head(session)
    yield f"Messages: {len(messages)} / {session['message_count']}{which}"
    yield rule
    for message in messages:
        yield from _message(message)
        yield ""
    yield rule


def _time_note(session: Session) -> list[str]:
    return ["time inferred"] if session.get("time") == "inferred" else []


def _session_head(session: Session) -> Iterator[str]:
    first, last = local_time(session["created_at"]), local_time(session["updated_at"])
    facts = {
        "Session": title_of(session),
        "Date": ", ".join([first if first == last else f"{first} to {last}", *_time_note(session)]),
        "Source": session["source"],
        "Project": session["project_path"] or session["project_name"],
        "Id": session["session_id"],
        "Nickname": session["nickname"],
        "Tags": ", ".join(session["tags"]),
        "Sharing": sharing_text(session),
        "Tokens": _tokens(session.get("usage")),
    }
    for label, value in facts.items():
        if value:
            lines = wrap(one_line(value), line_width() - 10)
            yield f"{label + ':':<10}" + ("\n" + " " * 10).join(lines)


def sharing_text(session: Session) -> str:
    """Return a session's owner and sharing; "" if it has neither."""
    until = f" until {local_time(session['shared_until'])}" if "shared_until" in session else ""
    shared = f"shared with the {session['shared_with']}{until}" if "shared_with" in session else ""
    owner = session.get("owner", "")
    return f"{owner}, {shared or 'private'}" if owner else shared


def _tokens(usage: Mapping[str, Any] | None) -> str:
    if not usage or not usage["answers"]:
        return ""
    cached = usage["cache_read_tokens"] + usage["cache_write_tokens"]
    counts = {"input": usage["input_tokens"], "output": usage["output_tokens"], "cache": cached}
    listed = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    return listed if usage["cost_usd"] is None else f"{listed}; list price {in_dollars(usage['cost_usd'])}"


def _message(message: Mapping[str, Any]) -> Iterator[str]:
    role, text = message["role"], printable(with_attachments(message))
    label = f"[{role.upper()}]"
    first, *more = wrap(f"{label}\n{text}" if text.startswith("```") else f"{label} {text}", line_width())
    yield click.style(label, fg=ROLE_COLOURS.get(role, "yellow"), bold=True) + first.removeprefix(label)
    yield from more
    if message.get("superseded"):
        yield dim(f"{INDENT}({UNDONE})")


def transcript(result: Mapping[str, Any]) -> Iterator[str]:
    counts = result["metadata"]
    yield from _head(result)
    if later := result.get("newer"):
        is_same = later["channel"] == result["channel"]
        where = "message of this conversation" if is_same else f"conversation, {printable(later['channel'])},"
        yield dim(f"A later {where} may change this:")
        yield from with_bold_hits("\n".join(_indented(later["line"]))).split("\n")
    if "summary" in result:
        yield ""
        yield from wrap(printable(result["summary"]), line_width())
    messages = result["messages"]
    for message in messages:
        if gap := message.get("gap_before"):
            yield "\n" + dim(f"… {counted(gap, 'message')} left out …")
        yield ""
        yield from _message_lines(message)
    if newer := counts.get("newer_messages"):
        yield "\n" + dim(f"… {counted(newer, 'newer message')} left out …")
    if "next_cursor" in counts:
        yield f"\n{dim('There is more; repeat the command with:')}"
        yield f"--cursor {counts['next_cursor']}"
    if "candidates" in result:
        yield f"\n{dim('Not what you meant? Other channels:')}"
        for other in result["candidates"]:
            yield from _candidate_lines(other)


def _head(result: Mapping[str, Any]) -> Iterator[str]:
    counts = result["metadata"]
    yield click.style(printable(result["channel"]), bold=True)
    if title := result.get("title"):
        origin = f"{printable(result['source'])}, {cut(printable(result['project']), 20)}"
        yield f"{cut(one_line(title), line_width() - display_width(origin) - len(INDENT))}{INDENT}{dim(origin)}"
    total = counted(counts["total_messages"], "message")
    yield dim(f"{counts['filtered_messages']} of {total}, last activity {local_time(counts['last_activity'])}")
    if confidence := result.get("confidence"):
        yield dim(f"Confidence: {confidence}")
    if note := result.get("note"):
        yield from (click.style(line, fg="yellow") for line in wrap(printable(note), line_width()))
    elif counts.get("understood", {}).get("relaxed") == "words":
        yield dim(WORDS_RELAXED)


def _message_lines(message: Mapping[str, Any]) -> Iterator[str]:
    role = click.style(message["role"], fg=ROLE_COLOURS.get(message["role"], "yellow"), bold=True)
    yield f"{role}  {dim(local_time(message['timestamp']))}"
    yield from (dim(f"{INDENT}({mark})") for mark in _marks(message))
    yield from _indented(message["text"])


def _marks(message: Mapping[str, Any]) -> Iterator[str]:
    if message.get("time") == "inferred":
        yield "time inferred: its client stored none"
    if length := message.get("full_length"):
        yield f"shortened, {length:,} characters in full"
    if at := message.get("replaced_on"):
        yield f"replaced at {local_time(at)}"
    if message.get("superseded"):
        yield UNDONE


def _indented(text: str) -> Iterator[str]:
    for line in wrap(printable(text), line_width() - len(INDENT)):
        yield (INDENT + line).rstrip()


def _candidate_lines(other: Mapping[str, Any]) -> Iterator[str]:
    """Return the lines about another channel. Its name is never cut: users copy it."""
    time, margin = local_time(other["when"]), " " * len("2025-09-29 14:30  ")
    yield f"{time}  {printable(other['channel'])}"
    project = cut(one_line(other["project"]), 20)
    title = cut(one_line(other["title"]), line_width() - len(margin) - len(INDENT) - display_width(project))
    yield dim(f"{margin}{title}{INDENT}{project}".rstrip())
    for message in other.get("messages", ()):
        yield margin + cut(one_line(message["text"]), line_width() - len(margin))
