"""Read the chats of Gemini CLI and of its sub-agents, in both formats: documents and journals."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

from registry.domain import Role, Session
from sources.base import FoundSession, Skipped
from sources.clients import GEMINI_CLI
from sources.gemini.prompts import parts_text, prompt_of
from sources.kit import drafts
from sources.kit.contents import content_text
from sources.kit.files import File, folders_in, read_small_text, store_entries
from sources.kit.loose_json import Record, items, mapping, objects, read_json, string, text_at, value_at
from sources.kit.reader import FileReader, ParseFile, SessionFile, parse_records, with_documents


class GeminiCli(FileReader):
    """Reads `tmp/<slot>/chats/` and the project of each slot. Never open siblings of `tmp`: they have secrets."""

    client = GEMINI_CLI
    patterns = tuple(f"tmp/*/chats/{form}" for form in ("*.json", "*.jsonl", "*/*.json", "*/*.jsonl"))

    def files(self, store: Path) -> Iterator[SessionFile | Skipped]:
        return with_documents(FileReader.files(self, store))

    def session_file(self, file: File) -> SessionFile:
        """Return the chat, whose key is the same in both formats; a sub-agent's chat is one folder deeper."""
        key = os.path.splitext(file.path)[0]
        *_, slot, chats, folder, session_id = key.split(os.sep)
        if chats == "chats":
            return SessionFile(file, key, session_id, folder, slot)
        return SessionFile(file, key, session_id, None, chats)

    def is_better(self, file: SessionFile, than: SessionFile) -> bool:
        """Return True for the journal, to which the client converts a document."""
        return file.path.endswith(".jsonl")

    def parser(self, store: Path) -> ParseFile:
        projects = cache(lambda: _projects(store))

        def parse(file: SessionFile) -> Iterator[FoundSession]:
            folder = projects().get(file.folder, "")
            chat = GeminiChat(file.session_id, folder, agent_of=file.agent_of, by_hash=projects())
            return parse_records(file, chat)

        return parse


def _projects(store: Path) -> dict[str, str]:
    """Return the projects by slot name and by hash, from the list of projects and from the slots' own files."""
    listed = mapping(value_at(read_json(read_small_text(store / "projects.json")), "projects"))
    noted = {
        os.path.basename(slot): read_small_text(os.path.join(slot, ".project_root")).strip()
        for slot in folders_in(store_entries(store / "tmp"))
    }
    by_hash = {sha256(path.encode("utf-8", "replace")).hexdigest(): path for path in (*listed, *noted.values())}
    by_name = {string(name): path for path, name in listed.items()}
    return by_hash | by_name | {slot: path for slot, path in noted.items() if path}


@dataclass(slots=True)
class GeminiChat(drafts.Conversation):
    """Builds a chat from the records of a journal, or from a document. `by_hash`: projects, if `folder` is unknown."""

    by_hash: Mapping[str, str] = field(default_factory=dict)
    header: Record = field(default_factory=dict)
    _messages: dict[str, Record] = field(default_factory=dict)
    _current: dict[str, None] = field(default_factory=dict)  # the ids of messages that were not rewound, in order
    _injected: set[str] = field(default_factory=set)

    def read(self, record: Record) -> None:
        if "$rewindTo" in record:  # that message and all later ones; an unknown id changes nothing
            ids = list(self._current)
            key = string(record["$rewindTo"])
            self._current = dict.fromkeys(ids[: ids.index(key) if key in self._current else None])
        elif "$set" in record:
            self._describe(mapping(record["$set"]))
        elif "type" in record:
            self._put(record)
        elif "sessionId" in record or "messages" in record:
            self._describe(record)
        else:
            self.count_unknown("record", "")

    def session(self) -> Session:
        self.folder = self.folder or self.by_hash.get(string(self.header.get("projectHash")), "")
        for key in self._messages:
            self._add(key)
        self.session_id = string(self.header.get("sessionId")) or self.session_id
        return self.build(
            "" if self.agent_of else self.header.get("summary"),  # a sub-agent's summary is its report
            project=self.folder,
            folders=map(string, items(self.header.get("directories"))),
            began=drafts.moment(self.header.get("startTime")) or self.header.get("lastUpdated"),
        )

    def _describe(self, header: Record) -> None:
        """Merge a header, and add its messages if it lists any.

        The client lists messages after rewriting its history, to summarise it or to shorten outputs. Known messages
        are therefore not changed, and new ones are marked as injected.
        """
        self.header |= {key: value for key, value in header.items() if key != "messages"}
        given = [(mapping(message), text_at(message, "id")) for message in items(header.get("messages"))]
        is_rewritten = any(key in self._messages for _, key in given if key)
        for message, key in given:
            if is_rewritten and key in self._messages:
                continue
            key = self._put(message)
            if is_rewritten:
                self._injected.add(key)

    def _put(self, message: Record) -> str:
        """Store a message. If it is written again because it has grown, the new copy replaces the first one."""
        key = string(message.get("id")) or f"#{len(self._messages)}"
        if key not in self._current:
            self._messages.pop(key, None)  # a rewound message that is sent again
            self._current[key] = None
        self._messages[key] = message
        return key

    def _add(self, key: str) -> None:
        message, before = self._messages[key], len(self.drafts)
        kind, text = string(message.get("type")), parts_text(message.get("content"))
        self.begin(message.get("id"), message.get("timestamp"))
        if kind == "user":
            typed, context, names = prompt_of(message)
            is_result = any("functionResponse" in part for part in objects(message.get("content")))
            if typed or not is_result:
                self.say(Role.USER, typed, attachments=names, content=message.get("content"))
            else:  # a file that a tool read
                self.inject("", attachments=names, content=message.get("content"))
            self.inject(context, ":context" if typed else "")
        elif kind == "gemini":
            self._add_answer(message, text)
        elif kind in ("info", "warning"):
            self.inject(text)
        elif kind == "error":
            self.say(Role.ERROR, text)
        else:
            self.count_unknown("message", kind)
        new = self.drafts[before:]
        drafts.supersede(new if key not in self._current else ())
        for draft in new if key in self._injected else ():
            draft.role, draft.more["injected"] = Role.SYSTEM, True

    def _add_answer(self, message: Record, text: str) -> None:
        before, self.model = len(self.drafts), string(message.get("model"))
        thought = self.say(Role.THINKING, thoughts_in(message), ":thinking")
        first = next(iter(items(message.get("thoughts"))), None)
        thought.at = drafts.moment(value_at(first, "timestamp")) or thought.at
        self.say(Role.ASSISTANT, text)
        for position, call in enumerate(objects(message.get("toolCalls"))):
            key = string(call.get("id")) or f"{self.record_id}:tool:{position}"
            draft = self.call(key, call.get("name"), call.get("args", {}))
            result = "\n".join(filter(None, _responses(call))) or _displayed_text(call.get("resultDisplay"))
            draft.at = drafts.moment(call.get("timestamp")) or draft.at
            status = drafts.status_of(call.get("status"), drafts.COMPLETED if result else drafts.PENDING)
            draft.set_result(result, drafts.FAILED if _EXIT_CODE.search(result) else status)
        self.count_tokens(before, message.get("tokens"), cache_in_input=True, excludes_reasoning=True)


# the client records every finished command as a success; only the result shows that it failed
_EXIT_CODE = re.compile(r"^Exit Code: [1-9]\d*$", re.MULTILINE)


def _responses(call: Record) -> Iterator[str]:
    """Yield the results sent to the model."""
    for part in objects(call.get("result")):
        if "functionResponse" in part:
            response = mapping(value_at(part, "functionResponse", "response"))
            given = next((response[key] for key in ("output", "error", "content") if response.get(key)), response)
            yield content_text(given or None)
        else:
            yield parts_text([part])


def _displayed_text(display: object) -> str:
    """Convert a displayed result to text: a text, a diff, or lines of coloured spans."""
    if isinstance(display, list):
        spans = ((text_at(span, "text") for span in items(line)) for line in display)
        return "\n".join("".join(line).rstrip() for line in spans)
    shown = mapping(display)
    return string(shown.get("fileDiff")) or string(shown.get("summary")) or content_text(display)


def thoughts_in(message: Record) -> str:
    """Return the thoughts of an answer, each with its subject."""
    pairs = (
        (string(given.get("subject")), string(given.get("description"))) for given in objects(message.get("thoughts"))
    )
    thoughts = ["\n".join(filter(None, (subject and f"**{subject}**", words))) for subject, words in pairs]
    thoughts += [string(part.get("text")) for part in objects(message.get("content")) if part.get("thought")]
    return "\n\n".join(filter(None, map(str.strip, thoughts)))
