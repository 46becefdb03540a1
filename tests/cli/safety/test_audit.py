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
    assert ctxr("audit", "--from", "2001-01-01", "--to", "2001-01-02").stdout == ""
    assert ctxr("audit", "--from", "soon").exit_code == 2
