"""The clients in which a conversation from elsewhere can go on, by source. To add one: a Writer, and a line here."""

from __future__ import annotations

from sources.claude_code.writer import CLAUDE_CODE_WRITER
from sources.codex.writer import CODEX_WRITER
from sources.copilot.writer import COPILOT_CLI_WRITER
from sources.gemini.writer import GEMINI_WRITER
from sources.opencode.writer import KILO_WRITER, OPENCODE_WRITER
from sources.qwen.writer import QWEN_WRITER
from sources.writing import Writer

_OTHERS = (GEMINI_WRITER, OPENCODE_WRITER, KILO_WRITER, COPILOT_CLI_WRITER, QWEN_WRITER)
WRITERS: dict[str, Writer] = {each.client.source: each for each in (CLAUDE_CODE_WRITER, CODEX_WRITER, *_OTHERS)}
