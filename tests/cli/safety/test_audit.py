"""Test `ctxr audit`: one line for each act, as text and as JSON."""

import json

from tests.cli.conftest import FIBONACCI, Ctxr


def test_the_audit_lists_acts_and_prints_them_as_lines_of_json(ctxr: Ctxr) -> None:
    channel = FIBONACCI["channel"]
    assert ctxr("log", "-", given=FIBONACCI).exit_code == 0
    assert ctxr("share", channel, "--with", "team").exit_code == 0
    shown = ctxr("audit", "--operation", "share").stdout
    for word in ("(this machine)", "share", "succeeded", channel, "with team"):
        assert word in shown
    lines = [json.loads(line) for line in ctxr("audit", "--json", "--from", "1d").stdout.splitlines()]
    assert [one["operation"] for one in lines] == ["conversation_log", "share"]
    assert lines[1]["details"] == {"with": "team"}
    assert ctxr("audit", "--from", "soon").exit_code == 2


def test_a_deletion_is_described_in_words(ctxr: Ctxr) -> None:
    assert ctxr("log", "-", given=FIBONACCI).exit_code == 0
    assert ctxr("forget", str(FIBONACCI["channel"]), "--before", "2100-01-01", "--dry-run").exit_code == 0
    assert "soft False, by before, dry_run True" in ctxr("audit", "--operation", "delete").stdout


def test_an_operation_is_known_by_its_alias_and_an_unknown_one_is_refused(ctxr: Ctxr) -> None:
    assert ctxr("log", "-", given=FIBONACCI).exit_code == 0
    assert "conversation_log" in ctxr("audit", "--operation", "save").stdout
    refused = ctxr("audit", "--operation", "exported")
    assert refused.exit_code == 2
    assert "given 'exported'; allowed: " in refused.stderr
    assert "conversation_log" in refused.stderr


def test_without_acts_the_audit_says_so_on_stderr(ctxr: Ctxr) -> None:
    nothing = ctxr("audit", "--json", "--from", "2001-01-01", "--to", "2001-01-02")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", "No acts.\n")
