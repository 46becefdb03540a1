"""Read the transcripts of Claude Code, of its sub-agents, and of the desktop app, which uses the same format."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import islice
from pathlib import Path

from sources.base import FoundSession, Paths, Skipped
from sources.claude_code.transcript import ClaudeTranscript, OutputOf
from sources.clients import CLAUDE_CODE
from sources.kit.files import MAX_DOCUMENT_BYTES, File, files_below, read_small_text
from sources.kit.jsonl import Damage
from sources.kit.loose_json import Record, read_json, string, text_at
from sources.kit.reader import FileReader, ParseFile, SessionFile, file_records

_DESKTOP = "local-agent-mode-sessions"
_MOVED_OUTPUT = re.compile(r"tool-results[\\/]([\w.-]+\.(?:txt|json))")


class ClaudeCode(FileReader):
    """Reads `projects/<folder>/<session>.jsonl` and below. Never open the folder above: it has secrets."""

    client = CLAUDE_CODE
    patterns = ("projects/*/*.jsonl", "projects/*/*/subagents/**/agent-*.jsonl")
    backup_extras = ("projects/**/*", "*/**/projects/**/*")

    def roots(self, paths: Paths) -> Iterable[Path]:
        """Return the configuration folders, and the desktop app's folder of sessions."""
        applications = (("Library", "Application Support"), ("AppData", "Roaming"), (".config",))
        return (
            CLAUDE_CODE.history_in(paths),
            paths.home / ".config" / "claude",
            *(paths.home.joinpath(*parts, "Claude", _DESKTOP) for parts in applications),
        )

    def watched(self, store: Path) -> list[Path]:
        """Return only the projects, not caches and plugins; for the desktop app the folder of all sessions."""
        return [store if store.name == _DESKTOP else store / "projects"]

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        """List the transcripts; the desktop app has a configuration folder for each session."""
        for folder in sorted(store.glob("*/*/local_*/.claude")) if store.name == _DESKTOP else [store]:
            yield from FileReader.files(self, folder)

    def session_file(self, file: File) -> SessionFile:
        """Return the transcript with its session's folder; `agent_of` is "" if only the records name the parent."""
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
    output_of = partial(_moved_output, file.folder)
    main, *agents = parse(file_records(file.path, damage), file.session_id, file.agent_of, output_of)
    if file.agent_of is not None:
        described = read_json(read_small_text(file.path.removesuffix(".jsonl") + ".meta.json"))
        main.titles["session file"] = text_at(described, "description")
    else:
        main.summaries = summaries_of(os.path.dirname(file.path)) | main.summaries
        # the desktop app keeps the title in `local_<id>.json`, next to the session's folder
        folder = next((part for part in Path(file.path).parents if part.name == ".claude"), Path()).parent
        note = f"{folder}.json" if folder.name.startswith("local_") else ""
        main.titles["session file"] = text_at(read_json(read_small_text(note, MAX_DOCUMENT_BYTES)), "title")
    unknown = tuple(skipped for each in (main, *agents) for skipped in each.skipped())
    return file.found_with_agents(main.session(), [agent.session() for agent in agents], damage.skipped() + unknown)


def parse(
    records: Iterable[Record], session_id: str, agent_of: str | None = None, output_of: OutputOf = lambda _: None
) -> list[ClaudeTranscript]:
    """Parse the transcript of a session, and the sub-agents that an old client wrote between its records. Pure.

    `agent_of`: None for a session; for a sub-agent's own file its parent session, or "" if the records name it.
    `output_of`: see ClaudeTranscript.
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
    """Return the summaries at the beginnings of transcripts by leaf uuid; they may be of earlier conversations."""
    found: dict[str, str] = {}
    for file in files_below(folder, "*.jsonl"):
        with suppress(OSError):
            for record in islice(file_records(file.path, Damage()) if isinstance(file, File) else (), 200):
                if record.get("type") in ("user", "assistant"):
                    break
                if record.get("type") == "summary":
                    found[string(record.get("leafUuid"))] = string(record.get("summary"))
    return found


def _moved_output(session_folder: str, stub: str) -> str | None:
    """Return a large output from the session's folder, given its placeholder."""
    moved = _MOVED_OUTPUT.search(stub) if stub.startswith("<persisted-output>") else None
    path = os.path.join(session_folder, "tool-results", moved[1]) if moved else ""
    return read_small_text(path, MAX_DOCUMENT_BYTES) or None
