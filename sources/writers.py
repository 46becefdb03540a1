"""The clients in which a conversation from elsewhere can go on. Adding one: a writer as `writing` says, a line here."""

from __future__ import annotations

from sources.claude_code.writer import ClaudeCodeWriter
from sources.codex.writer import CodexWriter
from sources.copilot.writer import CopilotCliWriter
from sources.gemini.writer import GeminiWriter
from sources.opencode.writer import OpenCodeWriter
from sources.qwen.writer import QwenWriter
from sources.writing import Writer

WRITERS: dict[str, Writer] = {
    writer.client.source: writer
    for writer in (
        ClaudeCodeWriter(),
        CodexWriter(),
        GeminiWriter(),
        OpenCodeWriter(),
        CopilotCliWriter(),
        QwenWriter(),
    )
}
"""By the client's source."""
