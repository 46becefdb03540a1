"""Test shell completion: sessions, tags, projects, and clients."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from cli.main import cli
from tests.cli.conftest import FIBONACCI, Ctxr


@pytest.fixture
def one(ctxr: Ctxr) -> Ctxr:
    assert (
        ctxr("log", "-", given={**FIBONACCI, "meta": {"project": "/home/me/agent", "source": "cursor"}}).exit_code == 0
    )
    assert ctxr("nickname", "1", "fib").exit_code == 0
    assert ctxr("tag", "1", "maths").exit_code == 0
    return ctxr


BEGUN = [
    (["show"], "f", ["fib"]),
    (["show"], "cursor_s", ["cursor_session_20250929_1430"]),
    (["export"], "FI", ["fib"]),
    (["list", "--tag"], "m", ["maths"]),
    (["tag", "fib"], "ma", ["maths"]),
    (["list", "--source"], "cu", ["cursor"]),
    (["list", "--project"], "a", ["all", "agent"]),
    (["list", "--project"], "/home", ["/home/me/agent"]),
]


def test_names_that_begin_with_the_typed_text_are_offered(one: Ctxr, subtests: pytest.Subtests) -> None:
    for words, begun, offered in BEGUN:
        with subtests.test(words=words, begun=begun, offered=offered):
            found = ShellComplete(cli, {}, "ctxr", "_CTXR_COMPLETE").get_completions(words, begun)
            assert [item.value for item in found] == offered


def test_without_a_registry_nothing_is_offered_or_printed(
    ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CTXR_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    assert ShellComplete(cli, {}, "ctxr", "_CTXR_COMPLETE").get_completions(["show"], "f") == []
    assert capfd.readouterr() == ("", "")
