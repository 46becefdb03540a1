"""Test `ctxr token`: create, list, and revoke; a token is shown once."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.cli.conftest import Ctxr


def made(ctxr: Ctxr, *words: str) -> dict[str, object]:
    result = ctxr("token", "create", "--json", *words)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_a_token_is_printed_once_and_not_stored(ctxr: Ctxr, empty_home: Path) -> None:
    result = ctxr(
        "token", "create", "--name", "phone", "--scope", "write", "--channels", "cursor_*", "--expires", "90d"
    )
    [secret] = result.stdout.split()
    assert secret.startswith("ctxr_")
    assert "not shown again" in result.stderr
    assert "Conversations stored with it belong to phone" in result.stderr
    assert "stored with it" not in ctxr("token", "create", "--name", "prometheus", "--scope", "metrics").stderr
    assert "`ctxr open` still signs you in without one." in result.stderr
    assert secret not in ctxr("token", "list", "--json").stdout
    assert all(secret.encode() not in file.read_bytes() for file in (empty_home / "ctxr").iterdir())


def test_the_list_says_the_purpose_and_expiry_of_each_token(ctxr: Ctxr) -> None:
    made(ctxr, "--name", "phone", "--channels", "cursor_*,claude_?", "--project", "/home/me/app", "--expires", "7d")
    made(ctxr, "--name", "tv", "--scope", "admin", "--expires", "never", "--owner", "kim")
    tv, phone = json.loads(ctxr("token", "list", "--json").stdout)["tokens"]
    assert (phone["scope"], phone["channels"], phone["projects"]) == (
        "read",
        ["cursor_*", "claude_?"],
        ["/home/me/app"],
    )
    left = datetime.fromisoformat(phone["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=6) < left < timedelta(days=7, minutes=1)
    assert (tv["scope"], tv["expires_at"], tv["used_at"], tv["state"]) == ("admin", None, None, "active")
    assert tv["owner"] == "kim"
    shown = ctxr("token", "list").stdout
    assert "phone" in shown
    assert "never used" in shown
    assert "of kim, admin" in shown


def test_a_token_may_have_its_own_rate_limit(ctxr: Ctxr) -> None:
    assert made(ctxr, "--name", "robot", "--per-minute", "60")["per_minute"] == 60
    assert made(ctxr, "--name", "phone")["per_minute"] is None
    assert "60 requests a minute" in ctxr("token", "list").stdout
    assert ctxr("token", "create", "--name", "tv", "--per-minute", "-1").exit_code == 2


def test_a_revoked_token_is_listed_as_such_and_its_name_stays_taken(ctxr: Ctxr) -> None:
    token_id = made(ctxr, "--name", "phone")["id"]
    assert ctxr("token", "revoke", str(token_id)).exit_code == 0
    assert json.loads(ctxr("token", "list", "--json").stdout)["tokens"][0]["state"] == "revoked"
    again = ctxr("token", "create", "--name", "phone")
    assert again.exit_code == 2
    assert "A token with that name exists, or was revoked." in again.stderr
    assert ctxr("token", "revoke", "tv").exit_code == 3


def test_invalid_arguments_are_refused(ctxr: Ctxr) -> None:
    cases: list[list[str]] = [
        ["--expires", "soon"],
        ["--expires", "2001-01-01"],
        ["--name", "a\nb"],
        ["--channels", ""],
    ]
    for words in cases:
        result = ctxr("token", "create", "--name", "phone", *words)
        assert result.exit_code == 2
        assert json.loads(ctxr("token", "list", "--json").stdout) == {"tokens": []}


def test_a_pattern_that_matches_nothing_is_reported_when_the_token_is_made(ctxr: Ctxr) -> None:
    said = {"channel": "cursor_1", "messages": [{"role": "user", "text": "hi"}], "meta": {"project": "/home/kim/shop"}}
    assert ctxr("log", "-", given=said).exit_code == 0
    projects = [word for one in ("shop", "/home/kim/*", "/home/kim") for word in ("--project", one)]
    result = ctxr("token", "create", "--name", "phone", "--channels", "cursor_*,codex_*", *projects)
    told = [line for line in result.stderr.splitlines() if line.startswith("No conversation matches")]
    assert told == [
        "No conversation matches 'codex_*' yet.",
        "No conversation matches '/home/kim' yet. Folders below it: '/home/kim/*'.",
    ]
    assert made(ctxr, "--name", "tv", "--channels", "nothing_*")["unmatched"] == ["nothing_*"]
