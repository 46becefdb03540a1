"""Read the transcripts of Claude Code, of its sub-agents, and of the desktop app, which uses the same format."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

from sources.base import FoundSession, Places, Skipped
from sources.claude_code.transcript import ClaudeTranscript, OutputOf
from sources.clients import CLAUDE_CODE
from sources.kit.files import LARGEST_DOCUMENT, File, files_below, small_text
from sources.kit.jsonl import Damage
from sources.kit.loose_json import Record, read_json, string, text_at
from sources.kit.reader import FileReader, ParseFile, SessionFile, file_records

_DESKTOP = "local-agent-mode-sessions"
_MOVED_OUTPUT = re.compile(r"tool-results[\\/]([\w.-]+\.(?:txt|json))")


class ClaudeCode(FileReader):
    """Reads `projects/<folder>/<session>.jsonl` and below. Secrets lie beside `projects`."""

    client = CLAUDE_CODE
    patterns = ("projects/*/*.jsonl", "projects/*/*/subagents/**/agent-*.jsonl")
    beside = ("projects/**/*", "*/**/projects/**/*")

    def roots(self, places: Places) -> Iterable[Path]:
        """Return the configuration folders, and the desktop app's folder of sessions."""
        applications = (("Library", "Application Support"), ("AppData", "Roaming"), (".config",))
        return (
            CLAUDE_CODE.history_in(places),
            places.home / ".config" / "claude",
            *(places.home.joinpath(*parts, "Claude", _DESKTOP) for parts in applications),
        )

    def watched(self, store: Path) -> list[Path]:
        """Return only the projects, for caches and plugins lie beside them; of the desktop app all sessions."""
        return [store if store.name == _DESKTOP else store / "projects"]

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the transcripts; the desktop app has a configuration folder for each session."""
        for folder in sorted(store.glob("*/*/local_*/.claude")) if store.name == _DESKTOP else [store]:
            yield from FileReader.files(self, folder)

    def session_file(self, file: File) -> SessionFile:
        """Return the transcript; `folder` is that of its session, `agent_of` is "" if only the records tell it."""
        folder, stem = os.path.split(file.path.removesuffix(".jsonl"))
        session_folder, is_below, _ = folder.rpartition(f"{os.sep}subagents")
        if is_below:
            return SessionFile(file, file.path, stem, os.path.basename(session_folder), session_folder)
        agent_of = "" if stem.startswith("agent-") else None
        return SessionFile(file, file.path, stem, agent_of, os.path.join(folder, stem))

    def parser(self, store: Path) -> ParseFile:
        summaries_of = cache(_summaries_in)
        return lambda file: _parse(file, summaries_of)


def _parse(file: SessionFile, summaries_of: Callable[[str], dict[str, str]]) -> Iterator[FoundSession]:
    damage = Damage()
    main, *agents = parse(file_records(file.path, damage), file.session_id, file.agent_of, _outputs(file.folder))
    if file.agent_of is not None:
        described = read_json(small_text(file.path.removesuffix(".jsonl") + ".meta.json"))
        main.titles["session file"] = text_at(described, "description")
    else:
        main.summaries = summaries_of(os.path.dirname(file.path)) | main.summaries
        main.titles["session file"] = _desktop_title(file.path)
    unknown = tuple(skipped for each in (main, *agents) for skipped in each.skipped())
    return file.found_with_agents(main.session(), [agent.session() for agent in agents], damage.skipped() + unknown)


def parse(
    records: Iterable[Record], session_id: str, agent_of: str | None = None, output_of: OutputOf = lambda _: None
) -> list[ClaudeTranscript]:
    """Parse the transcript of a session, and those of sub-agents that an old client wrote between its records. Pure.

    `agent_of`: None for a session; for a sub-agent's own file the session it works for, or "" to take the one
    its records name. `output_of`: see Transcript.
    """
    main = ClaudeTranscript(session_id, agent_of=agent_of, output_of=output_of)
    agents: dict[str, ClaudeTranscript] = {}
    agent_of_record: dict[str, str] = {}
    for record in records:
        if agent_of is not None or record.get("isSidechain") is not True:
            main.read(record)
            continue
        uuid, above = string(record.get("uuid")), agent_of_record.get(string(record.get("parentUuid")))
        agent = agent_of_record[uuid] = string(record.get("agentId")) or above or uuid or "unknown"
        if agent not in agents:
            agents[agent] = ClaudeTranscript(f"agent-{agent}", agent_of=session_id, output_of=output_of)
        agents[agent].read(record)
    return [main, *agents.values()]


def _summaries_in(folder: str) -> dict[str, str]:
    """Return summaries by leaf uuid: those of any conversation stand at the beginning of a later transcript."""
    found: dict[str, str] = {}
    for file in files_below(folder, "*.jsonl"):
        with suppress(OSError):
            for record in islice(file_records(file.path, Damage()) if isinstance(file, File) else (), 200):
                if record.get("type") in ("user", "assistant"):
                    break
                if record.get("type") == "summary":
                    found[string(record.get("leafUuid"))] = string(record.get("summary"))
    return found


def _outputs(session_folder: str) -> Callable[[str], str | None]:
    """Return a function that finds a large output in the session's folder by the stub in the record."""

    def output_of(stub: str) -> str | None:
        moved = _MOVED_OUTPUT.search(stub) if stub.startswith("<persisted-output>") else None
        path = os.path.join(session_folder, "tool-results", moved[1]) if moved else ""
        return small_text(path, LARGEST_DOCUMENT) or None

    return output_of


def _desktop_title(path: str) -> str:
    """Return the title that the desktop app shows, in `local_<id>.json` beside the session's folder."""
    folder = next((part for part in Path(path).parents if part.name == ".claude"), None)
    if folder is None or not folder.parent.name.startswith("local_"):
        return ""
    return text_at(read_json(small_text(f"{folder.parent}.json", LARGEST_DOCUMENT)), "title")
