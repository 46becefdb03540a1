"""Test that the README's commands run, over the conversations of `ctxr try`."""

import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.conftest import Ctxr

ROOT = Path(__file__).parent.parent.parent


def test_the_commands_of_the_readme_run(ctxr: Ctxr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    now = datetime.now(UTC)
    for session in json.loads((ROOT / "orchestrator" / "sample.json").read_text(encoding="utf-8")):
        said = [
            {"role": role, "text": text, "timestamp": (now - timedelta(days=session["days_ago"])).isoformat()}
            for role, text in session["messages"]
        ]
        meta = {"title": session["title"], "source": session["source"], "project": str(tmp_path)}
        ctxr("log", "-", given={"channel": session["channel"], "messages": said, "meta": meta})
    [shown] = re.findall(r"## Commands\n\n```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    commands = [shlex.split(line, comments=True)[1:] for line in shown.splitlines()]
    failed = {words[0]: result.output for words in commands if (result := ctxr(*words)).exit_code}
    assert failed.keys() == {"blame"}, failed  # the file does not exist
    assert (tmp_path / "auth.html").exists()
