"""The readers. To add one, subclass `Source` (`sources.base`) and add an instance here."""

from sources.aider.reader import Aider
from sources.antigravity.reader import Antigravity
from sources.base import Source
from sources.claude_code.reader import ClaudeCode
from sources.clients import KILO
from sources.cline.reader import Cline, KiloTasks, RooCode
from sources.codex.reader import Codex
from sources.continue_dev.reader import Continue
from sources.copilot.cli import CopilotCli
from sources.copilot.vscode import CopilotVscode
from sources.cursor.reader import CursorIde
from sources.cursor_agent.reader import CursorAgent
from sources.droid.reader import Droid
from sources.gemini.reader import GeminiCli
from sources.goose.reader import Goose
from sources.grok.reader import GrokCli
from sources.kimi.reader import KimiCode
from sources.memory_files.reader import MemoryFiles
from sources.openclaw.reader import OpenClaw, OpenClawFiles
from sources.opencode.reader import OpenCode, OpenCodeFiles
from sources.pi.reader import Pi
from sources.qwen.reader import QwenCode
from sources.windsurf.reader import Windsurf
from sources.zed.reader import Zed

READERS: tuple[Source, ...] = (
    *(ClaudeCode(), CursorIde(), CursorAgent(), Codex(), GeminiCli(), Antigravity(), CopilotCli(), CopilotVscode()),
    *(OpenCode(), OpenCode(KILO.source), QwenCode(), GrokCli(), KimiCode(), Droid(), OpenClaw(), Cline(), RooCode()),
    *(OpenCodeFiles(), OpenClawFiles(), KiloTasks(), Zed(), Continue(), Goose(), Pi(), Aider(), Windsurf()),
    MemoryFiles(),
)
