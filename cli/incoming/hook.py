"""`ctxr hook CLIENT EVENT`: what a client's hooks run. It notes the event in the spool and lets the client go on.

A client waits for it at every turn, so it imports next to nothing (0.02 s in all). It fails open: an error is one line
on stderr and exit status 0, because 2 would stop the user's prompt.
"""

from __future__ import annotations

import os
import sys
import time

from orchestrator.sync.spool import append, dumps, loads, registry_home, without_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

CLIENTS = ("cursor", "claude-code", "codex", "copilot-cli", "gemini-cli", "opencode", "kilo", "qwen-code", "droid")
"""The clients with hooks in `sources.clients`. Importing those records takes longer than all the rest."""

KEPT = (
    *("conversation_id", "session_id", "generation_id", "prompt_id", "turn_id", "agent_id"),
    *("prompt", "text", "last_assistant_message", "model", "attachments"),
    *("cwd", "workspace_roots", "transcript_path", "cursor_version"),
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"),
)
"""The fields of a payload that are recorded: no e-mail address, no tool output, no environment."""

STARTS = ("SessionStart", "sessionStart", "session.start")  # the events at which a chat begins
NEW = ("new", "startup", "clear")  # their `source` for a new chat, in contrast to a resumed one
COMPACTED = "compact"  # their `source` for a chat that goes on with a summary in the place of what was said
NOTE_PATIENCE_S = 4.0

PROMPTED = ("UserPromptSubmit", "BeforeAgent", "userPromptSubmitted", "chat.message")
"""The events at which a client passes on what we answer to a prompt."""
ACTING = ("PreToolUse", "BeforeTool", "preToolUse")
"""The events before a tool runs at which a client passes on what we answer."""
DOES = frozenset(("command", "cmd", "new_string", "newString", "new_str", "content", "file_text", "input", "patch"))
"""The parameters of tools that run a command or change a file."""
LOOKS = (
    *("cat ", "cd ", "date ", "echo ", "find ", "git diff ", "git log ", "git show ", "git status ", "grep ", "head "),
    *("ls ", "pwd ", "rg ", "sed -n ", "tail ", "tree ", "wc ", "which "),
)
"""Beginnings of commands that change nothing."""

PATIENCE_S = 1.0  # a client that sends nothing for so long gets its answer, though the pipe is open


def run_hook(client: str, event: str) -> None:
    """Read the payload on stdin, spool it, answer on stdout. Never raises, never exits."""
    payload: Mapping[str, Any] = {}
    try:
        payload = _parse(_read_all(0))
        source = source_of(client, payload)
        if event not in ACTING:  # the chat's own file has its acts
            home = registry_home()
            append(home, spooled(source, event, without_secrets(home, payload), time.time()))
    except Exception as exc:  # fail open: a chat is worth more than its record
        _write(2, f"ctxr hook: not recorded: {exc}\n")
    said = note(payload) if is_start(client, event, payload) else hint(client, event, payload)
    _write(1, answer(client, event, payload, said))


def is_start(client: str, event: str, payload: Mapping[str, Any]) -> bool:
    """Return True if the event begins a chat, or one goes on after a compaction.

    Cursor, which also runs other clients' hooks, gets its own.
    """
    is_borrowed = client != "cursor" and "cursor_version" in payload
    return event in STARTS and not is_borrowed and payload.get("source", "new") in (*NEW, COMPACTED)


def note(payload: Mapping[str, Any]) -> str:
    """Return the note about the folder's latest conversations; "" if it takes too long."""
    import subprocess

    folders = payload.get("workspace_roots") or [payload.get("cwd")]
    words = [sys.executable, "-P", "-m", "cli.entry", "note", *_session_option(payload)]
    words += [*(["--compacted"] if payload.get("source") == COMPACTED else []), "--", str(folders[0] or ".")]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    try:
        said = subprocess.run(  # noqa: S603, ourselves
            words, capture_output=True, timeout=NOTE_PATIENCE_S, check=False, stdin=subprocess.DEVNULL, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.decode("utf-8", errors="replace").strip()


def hint(client: str, event: str, payload: Mapping[str, Any]) -> str:
    """Return what a past conversation says about a prompt or an act; "" for what is no task, and if none does."""
    if event not in (*PROMPTED, *ACTING) or "cursor_version" in payload or payload.get("agent_id"):
        return ""
    try:
        asked = _prompt_option(payload) if event in PROMPTED else _act_option(payload)
        if not asked:
            return ""
        from cli.shared.command import output_at_once

        words = ["note", *_session_option(payload), "--client", client, *asked, "--", str(payload.get("cwd") or ".")]
        return output_at_once(words, 0.5).strip()  # s: the user waits
    except Exception as exc:  # fail open, as above
        _write(2, f"ctxr hook: no hint: {exc}\n")
        return ""


def _prompt_option(payload: Mapping[str, Any]) -> list[str]:
    prompt = payload.get("prompt")
    if not isinstance(prompt, str):
        return []
    for end in ("</hook_context>", "</system-reminder>"):  # Gemini CLI and Qwen Code put notes before it
        prompt = prompt.rpartition(end)[2]
    prompt = prompt.strip()
    return ["--prompt", prompt] if is_task(prompt) else []


def _act_option(payload: Mapping[str, Any]) -> list[str]:
    given = payload.get("tool_input", payload.get("toolArgs"))  # Copilot CLI writes them as a text
    params = loads(given) if isinstance(given, str) and given[:1] == "{" else given
    act = dumps(params) if isinstance(params, dict) and changes_something(params) else ""
    return ["--act", act] if 0 < len(act) <= 20_000 else []  # characters: a system limits the length of a command


def changes_something(params: Mapping[str, Any]) -> bool:
    """Return False for the parameters of a read, and of a single command that only looks at something."""
    command = str(params.get("command") or params.get("cmd") or "")
    is_look = f"{command} ".startswith(LOOKS) and not any(sign in command for sign in "&;|>\n`$")
    return not is_look and not DOES.isdisjoint(params)


def _session_option(payload: Mapping[str, Any]) -> list[str]:
    """Return the option that names the chat, by what its client calls the id."""
    session = next((payload[key] for key in ("conversation_id", "session_id", "sessionId") if payload.get(key)), None)
    return ["--session", str(session)] if session else []


def is_task(prompt: str) -> bool:
    """Return False for greetings, commands, notices of machines, and what is mostly pasted."""
    is_long = len(prompt) > 2000 or prompt.count("\n") >= 3  # characters, lines: more is mostly pasted
    return len(prompt) >= 16 and not is_long and prompt[0] not in "/<[!#"


def source_of(client: str, payload: Mapping[str, Any]) -> str:
    """Return the client that really called: Cursor also runs the hooks of Claude Code. Raises ValueError."""
    version = payload.get("cursor_version")
    if isinstance(version, str):
        return "cursor-agent" if version.startswith("20") else "cursor"  # the command line counts in dates
    if client not in CLIENTS:
        raise ValueError(f"no client {client!r}; known: {', '.join(CLIENTS)}")
    return client


def spooled(source: str, event: str, payload: Mapping[str, Any], at: float) -> dict[str, Any]:
    """Return the event as it is written to the spool; `at` in seconds since 1970."""
    kept = {key: payload[key] for key in KEPT if payload.get(key)}
    return {"source": source, "event": event, "at": at, "payload": kept}


def answer(client: str, event: str, payload: Mapping[str, Any], note: str = "") -> str:
    """Return what the client expects: Cursor treats silence as a failure, others would show the output to the model."""
    if note:
        return note if client == "opencode" else dumps(_note_answer(client, event, note)) + "\n"
    if client != "cursor" and "cursor_version" not in payload:
        return ""
    return '{"continue": true}\n' if event in ("beforeSubmitPrompt", "UserPromptSubmit") else "{}\n"


def _note_answer(client: str, event: str, note: str) -> dict[str, Any]:
    if client == "cursor":
        return {"additional_context": note}
    if client == "copilot-cli":
        return {"additionalContext": note}
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": note}}


def _parse(given: bytes) -> Mapping[str, Any]:
    payload = loads(given.decode("utf-8-sig", errors="replace"))
    if not isinstance(payload, dict):
        raise ValueError("the payload is no object")
    return payload


def _read_all(file: int) -> bytes:
    if os.isatty(file):
        raise ValueError("called by a client, which sends its event on standard input")
    chunks = []
    while _is_ready(file) and (chunk := os.read(file, 1 << 16)):
        chunks.append(chunk)
    return b"".join(chunks)


def _is_ready(file: int) -> bool:
    if sys.platform == "win32":
        return True
    import select

    return bool(select.select([file], [], [], PATIENCE_S)[0])


def _write(file: int, text: str) -> None:
    try:
        os.write(file, text.encode("utf-8", errors="replace"))
    except OSError:
        return  # nobody listens
