"""`ctxr audit`: an act a line, for people and for a file elsewhere."""

import json

from tests.cli.conftest import FIBONACCI, Ctxr


def test_the_audit_lists_acts_and_prints_one_a_line_as_json(ctxr: Ctxr) -> None:
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


def test_what_was_deleted_by_is_told_in_words(ctxr: Ctxr) -> None:
    assert ctxr("log", "-", given=FIBONACCI).exit_code == 0
    assert ctxr("forget", str(FIBONACCI["channel"]), "--before", "2100-01-01", "--dry-run").exit_code == 0
    assert "soft False, by before, dry_run True" in ctxr("audit", "--operation", "delete").stdout


def test_an_operation_is_known_by_its_other_name_and_one_that_is_none_is_refused(ctxr: Ctxr) -> None:
    assert ctxr("log", "-", given=FIBONACCI).exit_code == 0
    assert "conversation_log" in ctxr("audit", "--operation", "save").stdout
    refused = ctxr("audit", "--operation", "exported")
    assert refused.exit_code == 2
    assert "given 'exported'; allowed: " in refused.stderr
    assert "conversation_log" in refused.stderr


def test_where_nobody_did_anything_the_audit_says_so_beside_its_lines(ctxr: Ctxr) -> None:
    nothing = ctxr("audit", "--json", "--from", "2001-01-01", "--to", "2001-01-02")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", "No acts.\n")
