"""Write the entry that starts our server, as JSON, as a link and as a shell command; and the launcher that it names.

The launcher is the one path in clients' settings that survives upgrades, cache cleans and moved clones.
"""

import base64
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from cli.connect.settings_files import replace_file
from registry.extras import PROGRAM, installer
from registry.settings import Settings, default_home
from sources.client import Client

SERVER = "context-registry"  # our name in every client's list of servers


@dataclass(frozen=True, slots=True)
class StdioServer:
    """The command that starts `ctxr mcp` from anywhere, and the environment variables it needs."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    client: str = ""  # the client that will start it (`ctxr mcp --client`)
    is_captured: bool = False
    """Our hooks capture the client's chats, so its model need not log them (`ctxr mcp --captured`)."""

    def started_by(self, client: Client, *, is_captured: bool = False) -> Self:
        return replace(self, client=client.command or client.source, is_captured=is_captured)

    @property
    def words(self) -> tuple[str, ...]:
        options = (*(("--client", self.client) if self.client else ()), *(("--captured",) if self.is_captured else ()))
        return (*self.command, *options)

    def entry(self) -> dict[str, Any]:
        env = {"env": dict(self.env)} if self.env else {}
        return {"command": self.words[0], "args": list(self.words[1:]), **env}

    def one_command(self) -> dict[str, Any]:
        """Return the entry for clients that take program and arguments in one list."""
        env = {"environment": dict(self.env)} if self.env else {}
        return {"command": list(self.words), **env}

    def mcp_json(self) -> str:
        entry = json.dumps(self.entry(), ensure_ascii=False)
        return f'{{\n  "mcpServers": {{\n    "{SERVER}": {entry}\n  }}\n}}'

    def link(self, client: Client) -> str:
        """Return a link that opens a client and offers to add the server."""
        config = base64.b64encode(json.dumps(self.started_by(client).entry()).encode()).decode()
        return f"{client.link}?{urlencode({'name': SERVER, 'config': config})}"

    def hook_command(self, client: str, event: str) -> str:
        """Return the shell command for a client's hook."""
        words = [*self.hook_words(client), event]
        return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)

    def hook_words(self, client: str) -> list[str]:
        """Return the hook's command as a list, without the event."""
        home = self.env.get("CTXR_HOME") if os.name != "nt" else None
        return [*(["env", f"CTXR_HOME={home}"] if home else []), *self.command[:-1], "hook", client]


def this_program() -> tuple[str, ...]:
    """Return the command that starts the running program from any folder, without the shell's PATH."""
    program = shutil.which(sys.argv[0])
    is_ctxr = program and Path(program).stem in ("ctxr", "context-registry")
    return (os.path.abspath(program),) if program and is_ctxr else (sys.executable, "-m", "cli.entry")


def command_name() -> str:
    """Return the command that starts this program in a shell: `ctxr`, or a longer one if that is not on the PATH."""
    if installer() == "uvx":  # its environment is on the PATH of the program that it runs only
        return f"uvx {PROGRAM}"
    program, *more = this_program()
    found = shutil.which("ctxr")
    is_found = found is not None and Path(found).resolve().parent == Path(program).resolve().parent
    return "ctxr" if is_found or more else shlex.quote(str(Path(program).with_stem("ctxr")))


def with_command_name(text: str) -> str:
    """Replace `ctxr` in the commands of a text, so that they work as printed."""
    return re.sub(r"\bctxr (?=[a-z])", lambda _: f"{command_name()} ", text)


def launcher_file() -> Path | None:
    """Return the launcher's path; None on Windows, where clients start no shell scripts."""
    return None if os.name == "nt" else default_home() / "bin" / "ctxr"


def write_launcher(program: Sequence[str]) -> None:
    """Write the launcher: it starts this program, or another installed one if this one is gone."""
    file = launcher_file()
    if file is None:
        return
    # Replaced atomically: a client may start it at this moment.
    # A client that no shell started has a short PATH, so the launcher contains the path of uvx.
    words = {"PROGRAM": shlex.join(program), "UVX": shlex.quote(shutil.which("uvx") or "")}
    script = Path(__file__).with_name("launcher.sh").read_text(encoding="utf-8")
    for name, word in {**words, "VERSION": version("context-registry")}.items():
        script = script.replace(f"@{name}@", word)
    replace_file(file, script)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def this_server() -> StdioServer:
    """Return the server as clients start it: by the launcher, with the settings of this terminal's environment."""
    program = this_program()  # the others still start after an upgrade, or a clean of uvx's cache
    if launcher := launcher_file():
        program = (str(launcher),)
    elif installer() == "uvx" and (uvx := shutil.which("uvx")):
        program = (uvx, "--from", f"{PROGRAM}=={version(PROGRAM)}", "ctxr")
    names = [f"CTXR_{name.upper()}" for name in Settings.model_fields if name not in ("host", "port")]
    env = {name: os.environ[name] for name in names if os.environ.get(name)}
    if "CTXR_HOME" in env:
        env["CTXR_HOME"] = str(Path(env["CTXR_HOME"]).expanduser().absolute())
    return StdioServer((*program, "mcp"), env)
