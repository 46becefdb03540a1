"""blame: find the conversations behind a line, a file or a commit; or the commits made in a conversation."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from orchestrator.answer.delivery import message_dict
from orchestrator.answer.finding.change_origin import (
    AFTER,
    BEFORE,
    MIN_SCORE,
    Evidence,
    evidence_of,
    weigh_lines,
)
from orchestrator.outside import git_history as git
from orchestrator.requests.shapes import QueryShape, Request
from orchestrator.state import Operation, Run, Steps
from registry.access import Level
from registry.errors import InvalidRequest, NotFound
from registry.storage.conversations.channels import ChannelRow, channel_item, channels_by_number, item_of, tags_of
from registry.storage.conversations.messages import MessageRow, messages_between, messages_of
from registry.storage.conversations.references import resolve_session
from registry.storage.database import ReadTransaction


class BlameQuery(QueryShape):
    """A file, a line or a commit to find conversations for; or a session to find commits for."""

    file: str | None = Field(None, min_length=1, max_length=4000, description="FILE or FILE:LINE")
    commit: str | None = Field(None, min_length=1, max_length=300)
    session_id: str | None = Field(None, min_length=1, max_length=300)
    folder: str = Field(".", min_length=1, description="folder of the repository, and of relative paths")
    limit: int = Field(5, ge=1, le=100)


class BlameRequest(Request):
    operation = "blame"
    query: BlameQuery


@dataclass(slots=True)
class Traced:
    """Commits, and the conversations with evidence for them."""

    commits: list[git.Commit]
    about: dict[str, Any]
    found: list[tuple[Evidence, dict[str, Any], git.Commit]] = field(default_factory=list)


def trace(tx: ReadTransaction, run: Run, request: BlameRequest) -> Traced:
    """Compare git's history with the messages and tool calls of that time. Raises NotFound, InvalidRequest."""
    query = request.query
    if sum(map(bool, (query.file, query.commit, query.session_id))) != 1:
        raise InvalidRequest("Either a file, a commit or a session.", "give one of: file, commit, session_id")
    if query.session_id:
        return _commits_from(tx, run, query.session_id)
    folder = Path(query.folder)
    traced = _find_commits(query, folder)
    start = git.parse_reference(query.file, folder)[0].parent if query.file else folder
    traced.found = _conversations(tx, traced.commits, str(git.repository_of(start)))
    run.recorder.explain(by="time, project, files touched and lines written", candidates=len(traced.found))
    return traced


def _find_commits(query: BlameQuery, folder: Path) -> Traced:
    if query.commit:
        one = git.commit(git.repository_of(folder), query.commit)
        return Traced([one], {"commit": one.sha})
    file, line = git.parse_reference(query.file or "", folder)
    top = git.repository_of(file.parent)
    name = file.relative_to(top.resolve()).as_posix() if file.is_relative_to(top.resolve()) else str(file)
    if line is None:
        commits = git.commits_of_file(top, file)
        if not commits:
            raise NotFound("No commit contains that file.", str(file))
        return Traced(commits, {"file": name})
    one, text = git.commit_of_line(top, file, line)
    if lines := git.significant_lines([text]):
        one = replace(one, lines=lines, files=frozenset([name]))
    return Traced([one], {"file": name, "line": line, "text": text})


def _conversations(
    tx: ReadTransaction, commits: Sequence[git.Commit], top: str
) -> list[tuple[Evidence, dict[str, Any], git.Commit]]:
    """Return the conversations with evidence, strongest first, each with its best commit."""
    best: dict[int, tuple[Evidence, git.Commit]] = {}
    rows: dict[int, ChannelRow] = {}
    for one in commits:
        # the last 400 messages of each conversation
        messages_around = messages_between(tx, one.at - BEFORE, one.at + AFTER, 400)
        rows |= channels_by_number(tx, list(messages_around))
        found = {
            number: evidence_of(one, [_message_with_time(each) for each in messages], top, rows[number].project_path)
            for number, messages in messages_around.items()
        }
        weigh_lines(one, found.values())
        for number, evidence in found.items():
            if evidence.score() >= MIN_SCORE and (number not in best or evidence.score() > best[number][0].score()):
                best[number] = evidence, one
    tags = tags_of(tx, list(best))
    ranked = [(evidence, channel_item(rows[number], tags[number]), one) for number, (evidence, one) in best.items()]
    return sorted(ranked, key=lambda each: -each[0].score())


def _message_with_time(row: MessageRow) -> dict[str, Any]:
    return {**message_dict(row), "time": row.timestamp}


def _commits_from(tx: ReadTransaction, run: Run, session_id: str) -> Traced:
    row = resolve_session(tx, session_id)
    run.recorder.channel = row.name
    if not row.project_path or not Path(row.project_path).is_dir():
        raise NotFound("The conversation's folder is not on this machine.", f"project: {row.project_path or 'none'}")
    top = git.repository_of(Path(row.project_path))
    messages = [_message_with_time(each) for each in messages_of(tx, row.number, limit=5_000)]
    item = item_of(tx, row)
    traced = Traced([], {"session_id": item["session_id"]})
    if messages:
        for one in git.commits_between(top, messages[0]["time"], messages[-1]["time"] + BEFORE):
            around = [each for each in messages if one.at - BEFORE <= each["time"] <= one.at + AFTER]
            evidence = evidence_of(one, around, str(top), row.project_path)
            weigh_lines(one, [evidence])
            if evidence.confidence() != "low":
                traced.commits.append(one)
                traced.found.append((evidence, item, one))
    run.recorder.explain(by="lines written and files touched", candidates=len(traced.found))
    return traced


async def describe_traced(run: Run, request: BlameRequest, data: Traced) -> dict[str, Any]:
    if not data.found:
        commits = ", ".join(f"{one.sha[:10]} ({one.summary[:50]})" for one in data.commits[:3])
        detail = f"looked at {commits}" if commits else "no commit contains lines written in it"
        if request.query.session_id:
            raise NotFound("No commit was found that came from that conversation.", detail)
        raise NotFound("No conversation was found that it came from.", detail)
    found = data.found[: request.query.limit]
    run.recorder.explain(kept=len(found), dropped=len(data.found) - len(found), reason="limit")
    found_in = [
        {
            "confidence": evidence.confidence(),
            "why": evidence.why(),
            "score": round(evidence.score(), 2),
            "message_id": evidence.message_id,
            "session": item,
            "commit": one.as_dict(),
        }
        for evidence, item, one in found
    ]
    return {**data.about, "commits": [one.as_dict() for one in data.commits[:20]], "found": found_in}


OPERATION = Operation(
    request=BlameRequest,
    level=Level.ADMIN,
    syncs_first=True,
    needs_everything=True,
    instead="it runs git in a folder of the server; run ctxr blame on the machine where the repository is",
    steps=Steps[BlameRequest, Traced](query=trace, answer=describe_traced),
    labels={"commit": ("commit", "커밋"), "file": ("file", "파일")},
)
