"""How a client starts us, in every form that a user or an installer needs: JSON, link, shell command."""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from registry.settings import Settings
from sources.client import Client

SERVER = "context-registry"
"""Our name in every client's list of servers."""


@dataclass(frozen=True, slots=True)
class StdioServer:
    """How a client starts `ctxr mcp`: a command that works from anywhere, and the settings it must be told."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    client: str = ""
    """The client that will start it (`ctxr mcp --client`)."""

    def started_by(self, client: Client) -> StdioServer:
        """Return the server as this client starts it."""
        return replace(self, client=client.command or client.source)

    @property
    def words(self) -> tuple[str, ...]:
        """The program and its arguments."""
        return (*self.command, "--client", self.client) if self.client else self.command

    def entry(self) -> dict[str, Any]:
        """The server's object in a client's list."""
        given = {"env": dict(self.env)} if self.env else {}
        return {"command": self.words[0], "args": list(self.words[1:]), **given}

    def one_command(self) -> dict[str, Any]:
        """Return the entry for clients that take program and arguments in one list."""
        given = {"environment": dict(self.env)} if self.env else {}
        return {"command": list(self.words), **given}

    def mcp_json(self) -> str:
        """The file content for Cursor and Claude Desktop."""
        entry = json.dumps(self.entry(), ensure_ascii=False)
        return f'{{\n  "mcpServers": {{\n    "{SERVER}": {entry}\n  }}\n}}'

    def link(self, client: Client) -> str:
        """A link that opens a client and offers to add the server."""
        config = base64.b64encode(json.dumps(self.started_by(client).entry()).encode()).decode()
        return f"{client.link}?{urlencode({'name': SERVER, 'config': config})}"

    def hook_command(self, client: str, event: str) -> str:
        """The shell command for a client's hook. Its program is the one that also serves MCP."""
        words = [*self.hook_words(client), event]
        return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)

    def hook_words(self, client: str) -> list[str]:
        """Return the hook's command as a list, without the event."""
        home = self.env.get("CTXR_HOME") if os.name != "nt" else None
        return [*(["env", f"CTXR_HOME={home}"] if home else []), *self.command[:-1], "hook", client]

    def shell_command(self) -> str:
        """The server as a command of a POSIX shell."""
        told = [f"{name}={value}" for name, value in self.env.items()]
        return shlex.join([*(["env", *told] if told else []), *self.words])

    def claude_code_command(self) -> str:
        """The shell command for Claude Code."""
        told = [word for name, value in self.env.items() for word in ("--env", f"{name}={value}")]
        return shlex.join(
            ["claude", "mcp", "add", "--scope", "user", SERVER, *told, "--", *self.words, "--client", "claude-code"]
        )


def this_server() -> StdioServer:
    """The program that is running now, with what only this terminal's environment tells it."""
    return StdioServer(_this_command(), _this_environment())


def _this_command() -> tuple[str, ...]:
    """Windows of a client do not know the shell's PATH, so the program is named in full."""
    program = shutil.which(sys.argv[0])
    if program and Path(program).stem == "ctxr":
        return os.path.abspath(program), "mcp"
    return sys.executable, "-m", "cli.entry", "mcp"


def _this_environment() -> dict[str, str]:
    """The settings of the environment, without those of `ctxr serve`; a client would start without them."""
    names = [f"CTXR_{name.upper()}" for name in Settings.model_fields if name not in ("host", "port")]
    given = {name: os.environ[name] for name in names if os.environ.get(name)}
    if "CTXR_HOME" in given:
        given["CTXR_HOME"] = str(Path(given["CTXR_HOME"]).expanduser().absolute())
    return given
