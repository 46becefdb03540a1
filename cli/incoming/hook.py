"""`ctxr hook CLIENT EVENT`: record the event of a client's hook in the spool, and answer the client.

A client waits for it at every turn, so it imports almost nothing (0.02 s in all). It fails open: an error is one line
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

RECORDED_FIELDS = (
    *("conversation_id", "session_id", "generation_id", "prompt_id", "turn_id", "agent_id"),
    *("prompt", "text", "last_assistant_message", "model", "attachments"),
    *("cwd", "workspace_roots", "transcript_path", "cursor_version"),
    *("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"),
)
"""The fields of a payload that are recorded: no e-mail address, no tool output, no environment."""

START_EVENTS = ("SessionStart", "sessionStart", "session.start")  # the events at which a chat begins
COMPACTION = "compact"  # their `source` for a chat that continues after a compaction
NOTE_TIMEOUT_S = 4.0

PROMPT_EVENTS = ("UserPromptSubmit", "BeforeAgent", "userPromptSubmitted", "chat.message")
"""The events of a prompt at which a client passes our answer to its model."""
TOOL_EVENTS = ("PreToolUse", "BeforeTool", "preToolUse")
"""The events of a tool call at which a client passes our answer to its model."""
CHANGE_PARAMS = frozenset(
    ("command", "cmd", "new_string", "newString", "new_str", "content", "file_text", "input", "patch")
)
"""The parameters of tools that run a command or change a file."""
READ_ONLY_COMMANDS = (
    *("cat ", "cd ", "date ", "echo ", "find ", "git diff ", "git log ", "git show ", "git status ", "grep ", "head "),
    *("ls ", "pwd ", "rg ", "sed -n ", "tail ", "tree ", "wc ", "which "),
)
"""Prefixes of commands that change nothing."""


def run_hook(client: str, event: str) -> None:
    """Read the payload on stdin, spool it, answer on stdout. Never raises, never exits."""
    payload: Mapping[str, Any] = {}
    try:
        payload = _parse(_read_all(0))
        source = source_of(client, payload)
        if event not in TOOL_EVENTS:  # tool calls are read from the chat's file
            home = registry_home()
            append(home, spool_record(source, event, without_secrets(home, payload), time.time()))
    except Exception as exc:  # fail open: an error must not stop the chat
        _write(2, f"ctxr hook: not recorded: {exc}\n")
    context = request_note(payload) if is_start(client, event, payload) else request_hint(client, event, payload)
    _write(1, answer(client, event, payload, context))


def is_start(client: str, event: str, payload: Mapping[str, Any]) -> bool:
    """Return True if a chat begins, or continues after a compaction.

    Cursor also runs other clients' hooks; these return False, because it has its own.
    """
    is_borrowed = client != "cursor" and "cursor_version" in payload
    is_resumed = payload.get("source", "new") not in ("new", "startup", "clear", "fork", COMPACTION)
    return event in START_EVENTS and not is_borrowed and not is_resumed


def request_note(payload: Mapping[str, Any]) -> str:
    """Return the note about the folder's latest conversations; "" if it takes too long."""
    import subprocess

    folders = payload.get("workspace_roots") or [payload.get("cwd")]
    words = [sys.executable, "-P", "-m", "cli.entry", "note", *_session_option(payload)]
    words += [*(["--compacted"] if payload.get("source") == COMPACTION else []), "--", str(folders[0] or ".")]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    try:
        process = subprocess.run(  # noqa: S603, ourselves
            words, capture_output=True, timeout=NOTE_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return process.stdout.decode("utf-8", errors="replace").strip()


def request_hint(client: str, event: str, payload: Mapping[str, Any]) -> str:
    """Return the hint for a prompt or a tool call; "" if there is none, or the prompt is not a task."""
    is_sub_agent = payload.get("agent_id") or payload.get("agentId")  # Copilot CLI's key
    if event not in (*PROMPT_EVENTS, *TOOL_EVENTS) or "cursor_version" in payload or is_sub_agent:
        return ""
    try:
        option = _prompt_option(payload) if event in PROMPT_EVENTS else _act_option(payload)
        if not option:
            return ""
        from cli.shared.command import output_of_running

        words = ["note", *_session_option(payload), "--client", client, *option, "--", str(payload.get("cwd") or ".")]
        return output_of_running(words, 1.0).strip()  # seconds that the user waits at most, on a busy machine
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
    given = payload.get("tool_input", payload.get("toolArgs"))  # Copilot CLI sends a JSON string
    params = loads(given) if isinstance(given, str) and given[:1] == "{" else given
    act = dumps(params) if isinstance(params, dict) and changes_something(params) else ""
    return ["--act", act] if 0 < len(act) <= 20_000 else []  # characters: systems limit the length of a command


def changes_something(params: Mapping[str, Any]) -> bool:
    """Return False for the parameters of a read, and of a single read-only command."""
    command = str(params.get("command") or params.get("cmd") or "")
    is_read_only = f"{command} ".startswith(READ_ONLY_COMMANDS) and not any(sign in command for sign in "&;|>\n`$")
    return not is_read_only and not CHANGE_PARAMS.isdisjoint(params)


def _session_option(payload: Mapping[str, Any]) -> list[str]:
    """Return the option with the chat's id, whose key differs by client."""
    session = next((payload[key] for key in ("conversation_id", "session_id", "sessionId") if payload.get(key)), None)
    return ["--session", str(session)] if session else []


def is_task(prompt: str) -> bool:
    """Return False for greetings, commands, machine notices and mostly pasted text."""
    own = "".join(prompt.split("```")[::2]).strip()  # what is not fenced
    has_own_words = len(own) <= 500 and "\n\n" in own  # beside a few pasted lines
    is_pasted = len(prompt) > 2000 or (own.count("\n") >= 3 and not has_own_words)
    return len(own) >= 16 and not is_pasted and own[0] not in "/<[!#>$"


def source_of(client: str, payload: Mapping[str, Any]) -> str:
    """Return the source of the calling client: Cursor also runs Claude Code's hooks. Raises ValueError."""
    version = payload.get("cursor_version")
    if isinstance(version, str):
        return "cursor-agent" if version.startswith("20") else "cursor"  # the versions of its command line are dates
    if client not in CLIENTS:
        raise ValueError(f"unknown client {client!r}; known: {', '.join(CLIENTS)}")
    return client


def spool_record(source: str, event: str, payload: Mapping[str, Any], at: float) -> dict[str, Any]:
    """Return the event as it is written to the spool; `at` in seconds since 1970."""
    recorded = {key: payload[key] for key in RECORDED_FIELDS if payload.get(key)}
    return {"source": source, "event": event, "at": at, "payload": recorded}


def answer(client: str, event: str, payload: Mapping[str, Any], note: str = "") -> str:
    """Return what the client expects: Cursor treats silence as a failure, others would show the output to the model."""
    if note:
        # a quoted tag would end the one that the client puts around the note, or begin another
        note = note.replace("</", "< /").replace("<system-", "< system-")
        return note if client in ("opencode", "kilo") else dumps(_note_answer(client, event, note)) + "\n"
    if client != "cursor" and "cursor_version" not in payload:
        return ""
    return '{"continue": true}\n' if event in ("beforeSubmitPrompt", "UserPromptSubmit") else "{}\n"


def _note_answer(client: str, event: str, note: str) -> dict[str, Any]:
    if client == "cursor":
        return {"additional_context": note}
    if client == "copilot-cli":
        return {"additionalContext": note}
    if client == "gemini-cli":  # `gemini -p` reads the files that its prompt mentions, and the note is put before it
        note = note.replace("@", "\\@")
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": note}}


def _parse(given: bytes) -> Mapping[str, Any]:
    payload = loads(given.decode("utf-8-sig", errors="replace"))
    if not isinstance(payload, dict):
        raise ValueError("the payload is not an object")
    return payload


def _read_all(file: int) -> bytes:
    if os.isatty(file):
        raise ValueError("called by a client, which sends its event on standard input")
    import select

    chunks = []
    # after a second without input the client is answered, even if its pipe is open
    while sys.platform == "win32" or select.select([file], [], [], 1.0)[0]:
        if not (chunk := os.read(file, 1 << 16)):
            break
        chunks.append(chunk)
    return b"".join(chunks)


def _write(file: int, text: str) -> None:
    try:
        os.write(file, text.encode("utf-8", errors="replace"))
    except OSError:
        return  # the client has closed the pipe
