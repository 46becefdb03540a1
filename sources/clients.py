"""The clients, in the order in which they are listed. To add one: a folder, and a line here."""

from __future__ import annotations

from sources.aider.client import AIDER
from sources.antigravity.client import ANTIGRAVITY
from sources.claude_code.client import CLAUDE_CODE
from sources.client import Client
from sources.cline.client import CLINE, ROO_CODE
from sources.codex.client import CODEX
from sources.continue_dev.client import CONTINUE
from sources.copilot.client import COPILOT_CLI, VSCODE
from sources.cursor.client import CURSOR, CURSOR_AGENT
from sources.droid.client import DROID
from sources.exports.client import CHATGPT, CLAUDE, GEMINI
from sources.gemini.client import GEMINI_CLI
from sources.goose.client import GOOSE
from sources.grok.client import GROK_CLI
from sources.kimi.client import KIMI_CODE
from sources.memory_files.client import MEMORY_FILES
from sources.openclaw.client import OPENCLAW
from sources.opencode.client import KILO, OPENCODE
from sources.pi.client import PI
from sources.qwen.client import QWEN_CODE
from sources.windsurf.client import WINDSURF
from sources.zed.client import ZED

CLIENTS: tuple[Client, ...] = (
    CURSOR,
    CURSOR_AGENT,
    CLAUDE,
    CLAUDE_CODE,
    VSCODE,
    COPILOT_CLI,
    CODEX,
    GEMINI_CLI,
    ANTIGRAVITY,
    OPENCODE,
    KILO,
    QWEN_CODE,
    GROK_CLI,
    KIMI_CODE,
    DROID,
    OPENCLAW,
    CLINE,
    ROO_CODE,
    WINDSURF,
    ZED,
    CONTINUE,
    GOOSE,
    PI,
    AIDER,
    MEMORY_FILES,
    CHATGPT,
    GEMINI,
)


def client_called(name: str) -> Client | None:
    """Return the client by its source, or by its name for `ctxr install`."""
    return next((client for client in CLIENTS if name and name in (client.source, client.command)), None)
