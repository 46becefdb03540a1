"""Read the sessions of Kimi Code, and of its sub-agents, from the log of each agent."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from registry.domain import Role, Session
from sources.base import FoundSession
from sources.clients import KIMI_CODE
from sources.kit import drafts
from sources.kit.contents import content_text, texts_in
from sources.kit.files import File, fingerprint_at, read_small_text
from sources.kit.loose_json import Record, mapping, objects, read_json, string, text_at
from sources.kit.reader import FileReader, SessionFile, parse_records


class KimiCode(FileReader):
    """Reads `sessions/<folder>/<session>/agents/<agent>/wire.jsonl`. Never open siblings of `sessions`: keys."""

    client = KIMI_CODE
    patterns = ("sessions/*/*/agents/*/wire.jsonl",)
    backup_extras = ("sessions/*/*/state.json",)

    def session_file(self, file: File) -> SessionFile:
        """Return the session of the main agent or a sub-agent; `folder` is the folder of the main session."""
        agent, folder = Path(file.path).parent.name, Path(file.path).parents[2]
        session_id, parent = (folder.name, None) if agent == "main" else (f"{folder.name}-{agent}", folder.name)
        status = f"+{fingerprint_at(str(folder / 'state.json'))}"
        return SessionFile(file, file.path, session_id, parent, str(folder), status)

    def parse(self, file: SessionFile) -> Iterator[FoundSession]:
        state = mapping(read_json(read_small_text(Path(file.folder, "state.json"))))
        return parse_records(
            file, AgentLog(file.session_id, string(state.get("cwd")), state=state, agent_of=file.agent_of)
        )


@dataclass(slots=True)
class AgentLog(drafts.Conversation):
    """Builds a session from the records that change the model's context. Pure."""

    state: Record = field(default_factory=dict)  # the client's description of the session
    _step: int = 0  # position of the first message of a step of the model

    def session(self) -> Session:
        title = "" if self.agent_of else self.state.get("title")
        return self.build(title, parent=string(self.state.get("forkedFrom")), relation="fork")

    def read(self, record: Record) -> None:
        kind, message, event = (record.get(name) for name in ("type", "message", "event"))
        self.begin(text_at(message, "id") or text_at(event, "uuid"), record.get("time"))
        if kind == "profile.bind":
            self.model = string(record.get("modelAlias"))
        elif kind == "context.append_message":
            self._add_message(mapping(message))
        elif kind == "context.append_loop_event":
            self._add_event(mapping(event))
        elif kind == "context.apply_compaction":
            self.inject(content_text(record.get("summary")), compaction={})
        elif kind == "context.undo":  # of the last `count` turns
            remaining = [draft for draft in self.drafts if "superseded" not in draft.more]
            questions = [index for index, draft in enumerate(remaining) if draft.role is Role.USER]
            count = record.get("count")
            if isinstance(count, int) and 0 < count <= len(questions):
                drafts.supersede(remaining[questions[-count] :])
        elif string(kind).startswith("context.") and kind != "context.clear":
            self.count_unknown("record", string(kind))

    def _add_message(self, message: Record) -> None:
        """Add a typed message, or an injected one of the client."""
        content = message.get("content")
        text = "\n\n".join(texts_in(content))
        origin = mapping(message.get("origin"))
        is_typed = origin.get("kind") in (None, "user") or origin.get("name") == "subagent"
        if is_typed and message.get("role") == "user":
            parts = [string(part.get("type")) for part in objects(content)]
            self.say(Role.USER, text, attachments=[part.removesuffix("_url") for part in parts if part != "text"])
        else:
            self.inject(text)

    def _add_event(self, event: Record) -> None:
        kind, part = string(event.get("type")), mapping(event.get("part"))
        if kind == "step.begin":
            self._step = len(self.drafts)
        elif kind == "content.part":
            self.say(Role.ASSISTANT, string(part.get("text")))
            self.say(Role.THINKING, string(part.get("think")))
        elif kind == "tool.call":
            self.call(string(event.get("toolCallId")), event.get("name"), event.get("args", {}))
        elif kind == "tool.result":
            result = mapping(event.get("result"))
            status = drafts.result_status(result.get("isError") is True)
            self.set_result(event.get("toolCallId"), content_text(result.get("output")), status)
        elif kind == "step.end":
            self.count_tokens(self._step, event.get("usage"))
        else:
            self.count_unknown("event", kind)
