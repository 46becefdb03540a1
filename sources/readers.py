"""The readers there are. Adding one: write it as `base` says, and add it here."""

from __future__ import annotations

from sources.base import Source
from sources.claude_code.reader import ClaudeCode
from sources.codex.reader import Codex
from sources.copilot.cli import CopilotCli
from sources.copilot.vscode import CopilotVscode
from sources.cursor.reader import CursorIde
from sources.cursor_agent.reader import CursorAgent
from sources.gemini.reader import GeminiCli
from sources.opencode.reader import OpenCode

READERS: tuple[Source, ...] = (
    ClaudeCode(),
    CursorIde(),
    CursorAgent(),
    Codex(),
    GeminiCli(),
    CopilotCli(),
    CopilotVscode(),
    OpenCode(),
)
