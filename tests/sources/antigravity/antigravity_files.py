"""Build Antigravity's files: transcripts of numbered steps."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Record = dict[str, Any]

BEGIN = datetime(2026, 11, 3, 9, 0, tzinfo=UTC)
SHOP = "/home/ann/shop"
SESSION = "3e166585-bc21-43b7-b3d1-dec5e67688b3"
SETTINGS = (
    "<USER_SETTINGS_CHANGE>\nThe user changed setting `Model Selection` from Gemini 3.5 Flash (High) to"
    " Claude Sonnet 4.6 (Thinking).\n</USER_SETTINGS_CHANGE>"
)


@dataclass
class Steps:
    """The steps of one conversation."""

    lines: list[Record] = field(default_factory=list)

    def add(self, source: str, kind: str, content: str = "", **more: Any) -> Record:
        """Add a step of any type."""
        number = len(self.lines)
        at = (BEGIN + timedelta(seconds=10 * number)).strftime("%Y-%m-%dT%H:%M:%SZ")
        step = {"step_index": number, "source": source, "type": kind, "status": "DONE", "created_at": at, **more}
        if content:
            step["content"] = content
        self.lines.append(step)
        return step

    def user(self, text: str, settings: str = "") -> Record:
        """Add a user message, wrapped as the client does."""
        metadata = "<ADDITIONAL_METADATA>\nThe current local time is: 2026-11-03.\n</ADDITIONAL_METADATA>"
        wrapped = f"<USER_REQUEST>\n{text}\n</USER_REQUEST>\n{metadata}{settings}"
        return self.add("USER_EXPLICIT", "USER_INPUT", wrapped)

    def model(self, content: str = "", *calls: Record, **more: Any) -> Record:
        """Add an answer with its calls."""
        fields = {"tool_calls": list(calls)} if calls else {}
        return self.add("MODEL", "PLANNER_RESPONSE", content, **fields, **more)

    def result(self, kind: str, output: str, **more: Any) -> Record:
        """Add the result of a call."""
        times = "Created At: 2026-11-03T09:00:30Z\nCompleted At: 2026-11-03T09:00:31Z\n\n\t\t\t\t"
        return self.add("MODEL", kind, times + output, **more)


def call(name: str, *, is_shortened: bool = False, **args: Any) -> Record:
    """Return a call; the shortened transcript has each argument as JSON text."""
    return {"name": name, "args": {key: json.dumps(value) for key, value in args.items()} if is_shortened else args}


def working_steps() -> Steps:
    """Return a conversation with all usual parts."""
    steps = Steps()
    steps.user("Why is the basket empty? 안녕", SETTINGS)
    steps.add("SYSTEM", "CONVERSATION_HISTORY")
    steps.model(
        "I will look.",
        call("default_api:view_file", AbsolutePath=f"{SHOP}/basket.py", toolSummary="View file"),
        call("run_command", CommandLine="pytest", Cwd=SHOP),
        thinking="It returns a new list.",
    )
    steps.result("VIEW_FILE", "return []")
    steps.result("RUN_COMMAND", "The command exited with code 1.\n\t\t\t\tOutput:\n\t\t\t\t1 failed", exit_code=1)
    steps.add("SYSTEM", "CHECKPOINT", "{{ CHECKPOINT 0 }} The basket is made anew.")
    steps.model("It makes a new list.")
    return steps


def write(store: Path, steps: Steps, session: str = SESSION, name: str = "transcript_full.jsonl") -> Path:
    """Write a transcript into its folder."""
    folder = store / "brain" / session / ".system_generated" / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    lines = (json.dumps(line, ensure_ascii=False) + "\n" for line in steps.lines)
    file.write_text("".join(lines), encoding="utf-8")
    return file
