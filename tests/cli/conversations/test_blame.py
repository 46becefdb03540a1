"""Test `ctxr blame`: the conversation in which a line was written."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from registry.domain import format_time
from tests.cli.conftest import Ctxr

BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SUBJECTS = ("retry", "session", "basket")


def git(folder: Path, *words: str, at: datetime = BEGIN) -> str:
    when = f"{int(at.timestamp())} +0000"
    env = {**os.environ, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "GIT_CONFIG_GLOBAL": os.devnull}
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *who, "-C", str(folder), *words], capture_output=True, text=True, env=env, check=True)
    return done.stdout.strip()


def code(subject: str) -> list[str]:
    return [
        f"def {subject}_total(rows):",
        f'    """What all {subject} rows come to."""',
        f"    found = [row.{subject} for row in rows if row.{subject} is not None]",
        f"    return sum(found) or DEFAULT_{subject.upper()}",
    ]


def talk(
    subject: str, project: Path, at: datetime, *, answered: str = "", wrote: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Return a conversation about a subject, with the code in its answer or in a tool call."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "text": f"Write the total of {subject} rows.", "timestamp": format_time(at)},
        {"role": "assistant", "text": answered or "Done.", "timestamp": format_time(at + timedelta(minutes=2))},
    ]
    if wrote:
        file, text = wrote
        call = {"role": "tool", "text": f"Write {file}\n{text}", "timestamp": format_time(at + timedelta(minutes=1))}
        messages.insert(1, call)
    meta = {"source": "claude-code", "project": str(project), "title": f"Total of {subject}"}
    return {"channel": f"talk_{subject}_{at:%m%d%H%M}", "messages": messages, "meta": meta}


@pytest.fixture
def shop(empty_home: Path, ctxr: Ctxr) -> Path:
    """Make a file for each subject, written in one conversation, with other conversations about the same subject."""
    shop = empty_home / "shop"
    shop.mkdir()
    git(shop, "init", "-q")
    for number, subject in enumerate(SUBJECTS):
        at = BEGIN + timedelta(hours=5 * number)
        text = "\n".join(code(subject))
        (shop / f"{subject}.py").write_text(text + "\n")
        written = number % 2 == 0
        told = talk(
            subject,
            shop,
            at - timedelta(minutes=40),
            answered="" if written else f"Like this:\n```python\n{text}\n```",
            wrote=(str(shop / f"{subject}.py"), text) if written else None,
        )
        beside = talk(subject, shop, at - timedelta(minutes=5), answered=f"{subject}.py needs a total, I think.")
        elsewhere = talk(subject, empty_home / "garden", at - timedelta(minutes=30), answered="Rows of tulips.")
        for each in (told, beside, elsewhere):
            assert ctxr("log", "-", given=each).exit_code == 0
        git(shop, "add", "-A")
        git(shop, "commit", "-q", "-m", f"Add the total of {subject}", at=at)
    return shop


def found(ctxr: Ctxr, *words: str) -> list[dict[str, Any]]:
    result = ctxr("blame", *words, "--json")
    assert result.exit_code == 0, result.output
    answer: list[dict[str, Any]] = json.loads(result.output)["found"]
    return answer


def test_the_conversation_of_a_line_file_or_commit_is_first(
    shop: Path, ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch
) -> None:
    for subject, line in (("retry", ":3"), ("session", ":3"), ("session", "")):
        words = str(shop / f"{subject}.py") + line
        first = found(ctxr, words)[0]
        at = BEGIN + timedelta(hours=5 * SUBJECTS.index(subject), minutes=-40)
        assert (first["session"]["channel"], first["confidence"]) == (f"talk_{subject}_{at:%m%d%H%M}", "high"), words
    monkeypatch.chdir(shop)
    assert found(ctxr, "--commit", "HEAD")[0]["session"]["title"] == "Total of basket"


def test_a_conversation_lists_the_commits_made_from_it(shop: Path, ctxr: Ctxr) -> None:
    [only] = found(ctxr, "--session", "talk_retry_03020820")
    assert only["commit"]["summary"] == "Add the total of retry"
    none = ctxr("blame", "--session", "talk_retry_03020855", "--json")
    assert (none.exit_code, "No commit was found" in none.stderr) == (3, True)


def test_an_unknown_line_is_not_found(shop: Path, ctxr: Ctxr, empty_home: Path) -> None:
    (shop / "new.py").write_text("x = 'nobody has spoken of this'\n")
    assert ctxr("blame", str(shop / "new.py")).exit_code == 3
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "-m", "Nobody", at=BEGIN + timedelta(days=90))
    assert ctxr("blame", f"{shop / 'new.py'}:1").exit_code == 3
    (empty_home / "plain.txt").write_text("no repository")
    assert "no git repository" in ctxr("blame", str(empty_home / "plain.txt")).stderr
    assert ctxr("blame").exit_code == 2
