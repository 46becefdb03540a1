"""What a user pastes to connect a client: the one place of these texts, for `ctxr up`, the README and installers."""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from registry.settings import Settings

SERVER = "context-registry"
"""Our name in every client's list of servers."""

CURSOR_RULE_FILE = ".cursor/rules/context-registry.mdc"

_LOOK_UP = """\
When the user refers to another or an earlier conversation ("continue the
fibonacci conversation", "what did we decide about logins?", "어제 하던 인증 작업
이어서"), first call `extract` with their own words as `query.text`, and go on from
what it returns. Never call it for this chat.
"""

CURSOR_RULE = (
    """\
---
description: Keep this chat in Context Registry, and look up earlier ones there
alwaysApply: true
---
# Context Registry

After every turn, as the very last thing you do, call the tool `conversation_log`
of the MCP server `context-registry`:

- `channel`: `cursor_session_YYYYMMDD_HHMM`, the date and time this chat began.
  Choose it in the first turn and send exactly the same name for the whole chat.
  A new chat gets a new name.
- `messages`: the whole conversation so far, oldest first, this turn included,
  each with its `role`, `user` or `assistant`, and its `text`, word for word.
  Sending again what you sent before is right: it is recognised. Leave out tool
  output and system instructions.
- `timestamp` in a message only if you really know when it was written. Never
  make one up.
- `meta`: `source` is `cursor`, `project` the full path of the workspace folder;
  `file` and `language` if the turn was about one file.

```json
{
  "channel": "cursor_session_20250929_1430",
  "messages": [
    {"role": "user", "text": "How do I make this function faster?"},
    {"role": "assistant", "text": "With a hash map it runs in O(n) ..."}
  ],
  "meta": {"source": "cursor", "project": "/home/me/shop", "file": "src/search.py"}
}
```

Do it silently: do not mention it, do not ask first, do not describe the result.
If the call fails, carry on; the next turn sends everything again.

"""
    + _LOOK_UP
)
"""Cursor's rule file (seed 004), where no hooks do the logging. The model reads it in every turn: every word counts."""

CURSOR_RULE_WITH_HOOKS = f"""\
---
description: Look up earlier chats in Context Registry
alwaysApply: true
---
# Context Registry

{_LOOK_UP}
Hooks of Cursor keep this chat already: do not log it yourself. Only if the user
asks for it, or says that the hooks are not installed, call `conversation_log` at
the end of each turn, with the whole conversation so far, word for word, and the
same `channel` each time (`cursor_session_YYYYMMDD_HHMM`, when this chat began).
"""
"""The rule beside our hooks. Whoever logs too, by mistake or in a checkout without hooks, doubles nothing."""


@dataclass(frozen=True, slots=True)
class StdioServer:
    """How a client starts `ctxr mcp`: a command that works from anywhere, and the settings it must be told."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    def entry(self) -> dict[str, Any]:
        """The server's object in a client's list."""
        given = {"env": dict(self.env)} if self.env else {}
        return {"command": self.command[0], "args": list(self.command[1:]), **given}

    def mcp_json(self) -> str:
        """The file content for Cursor and Claude Desktop."""
        entry = json.dumps(self.entry(), ensure_ascii=False)
        return f'{{\n  "mcpServers": {{\n    "{SERVER}": {entry}\n  }}\n}}'

    def cursor_link(self) -> str:
        """A link that opens Cursor and offers to add the server."""
        config = base64.b64encode(json.dumps(self.entry()).encode()).decode()
        return f"cursor://anysphere.cursor-deeplink/mcp/install?{urlencode({'name': SERVER, 'config': config})}"

    def hook_command(self, client: str, event: str) -> str:
        """The shell command for a client's hook. Its program is the one that also serves MCP."""
        program = self.command[:-1] if self.command[-1] == "mcp" else (self.command[0], "-m", "cli.entry")
        words = [*program, "hook", client, event]
        if os.name == "nt":
            return subprocess.list2cmdline(words)
        home = self.env.get("CTXR_HOME")
        return shlex.join([*(["env", f"CTXR_HOME={home}"] if home else []), *words])

    def shell_command(self) -> str:
        """The server as a command of a POSIX shell."""
        told = [f"{name}={value}" for name, value in self.env.items()]
        return shlex.join([*(["env", *told] if told else []), *self.command])

    def claude_code_command(self) -> str:
        """The shell command for Claude Code."""
        told = [word for name, value in self.env.items() for word in ("--env", f"{name}={value}")]
        return shlex.join(["claude", "mcp", "add", "--scope", "user", SERVER, *told, "--", *self.command])


def this_server() -> StdioServer:
    """The program that is running now, with what only this terminal's environment tells it."""
    return StdioServer(_this_command(), _this_environment())


def _this_command() -> tuple[str, ...]:
    """Windows of a client do not know the shell's PATH, so the program is named in full."""
    program = shutil.which(sys.argv[0])
    if program and Path(program).stem == "ctxr":
        return os.path.abspath(program), "mcp"
    return sys.executable, "-m", "mcp_server"


def _this_environment() -> dict[str, str]:
    """The settings of the environment, without those of `ctxr serve`; a client would start without them."""
    names = [f"CTXR_{name.upper()}" for name in Settings.model_fields if name not in ("host", "port")]
    given = {name: os.environ[name] for name in names if os.environ.get(name)}
    if "CTXR_HOME" in given:
        given["CTXR_HOME"] = str(Path(given["CTXR_HOME"]).expanduser().absolute())
    return given
