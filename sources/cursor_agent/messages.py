"""Parse the messages of a Cursor agent's prompt, or of its transcript, which lacks results and times. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from registry.domain import Role
from sources.cursor_agent.prompts import attachments_of, find_timestamp, folder_of, pieces_of
from sources.kit import drafts
from sources.kit.contents import attachment_name, blocks_of, content_text, texts_in
from sources.kit.loose_json import Record, first_text, mapping, number, object_in, objects, string, text_at, value_at

_REDACTED = re.compile(r"\s*\[REDACTED\]\s*\Z|\A\s*\[REDACTED\]\s*")  # a thought, in a transcript


def known_model(name: object) -> str:
    """Return a model's name; empty for `default`."""
    return "" if name == "default" else string(name)


@dataclass(slots=True)
class AgentDialogue(drafts.Conversation):
    """Builds a conversation from its messages in order, each with a unique name. `model`: for answers without one."""

    _begun: int = 0
    _count: int = 0
    _request: str = ""

    def read(self, name: str, message: Record) -> None:
        options, role = cursor_options(message), string(message.get("role"))
        self._begin(name, string(options.get("requestId")))
        if options.get("isSummary") is True:
            text = "\n\n".join(texts_in(message.get("content"))) or "Conversation summarised"
            self._inject(text, compaction={})
        elif role == "system":
            self._inject("\n\n".join(texts_in(message.get("content"))))
        elif role == "user":
            self._read_user(message)
        elif role == "assistant":
            self._read_assistant(message)
        elif role == "tool":
            self._read_results(message)
        else:
            self.count_unknown("record", role or string(message.get("type")))

    def read_line(self, name: str, record: Record) -> None:
        """Add a record of a transcript, which has a unique name."""
        name = f"transcript:{name}"
        if record.get("type") in ("turn_ended", "error"):
            error = record.get("error")
            if text := string(error) or text_at(error, "message"):
                self.add(name, Role.ERROR, text)
            elif record.get("status") in ("error", "aborted"):
                self.add(name, Role.SYSTEM, f"[Turn ended: {record['status']}]")
            return
        content = mapping(record.get("message")).get("content", record.get("content"))
        shown = [{**block, "text": _REDACTED.sub("", string(block.get("text")))} for block in blocks_of(content)]
        self.read(name, {**record, "content": shown})

    def add(self, name: str, role: Role, text: str) -> None:
        """Add a message with role and text only."""
        self._begin(name, "")
        if role is Role.USER:
            self._add_question(text)
        elif role is Role.SYSTEM:
            self._inject(text)
        else:
            self._add(role, text)

    def _begin(self, name: str, request: str) -> None:
        self.begin(name, None)
        self._begun, self._count, self._request = len(self.drafts), 0, request

    def _read_user(self, message: Record) -> None:
        content = message.get("content")
        for text in texts_in(content):
            self._add_question(text)
        for block in objects(content):
            kind, name = string(block.get("type")), _name_of(block)
            questions = (draft for draft in self.drafts[self._begun :] if draft.role is Role.USER)
            if name and (question := next(questions, None)):
                question.attach(name)
            elif name:
                self._add(Role.USER, "", attachments=[name])
            elif kind != "text":
                self.count_unknown("part", kind)

    def _read_assistant(self, message: Record) -> None:
        request, fallback = self._request, self.model
        for part in blocks_of(message.get("content")):
            kind, options = string(part.get("type")), cursor_options(part)
            self._request = string(options.get("requestId")) or request
            self.model = _model_of(options, message) or fallback
            if kind == "text":
                self._add(Role.ASSISTANT, string(part.get("text")))
            elif kind in ("reasoning", "thinking"):
                self._add(Role.THINKING, string(part.get("thinking")) or string(part.get("text")))
            elif kind in ("tool-call", "tool_use"):
                self._read_call(part)
            elif kind not in ("redacted-reasoning", "image", "file", "document"):
                self.count_unknown("part", kind)
        self._request, self.model = request, _model_of(message) or fallback
        for call in objects(message.get("tool_calls")):
            function = mapping(call.get("function"))
            given = string(function.get("arguments"))
            self._add_call(string(call.get("id")), function.get("name"), object_in(given) or given)
        self.model = fallback

    def _read_results(self, message: Record) -> None:
        parts = [part for part in objects(message.get("content")) if part.get("type") == "tool-result"]
        call_id = string(message.get("tool_call_id")) or string(message.get("id"))
        whole = {"toolCallId": call_id, "toolName": message.get("name"), "result": message.get("content")}
        for part in parts or [whole]:
            call_id = string(part.get("toolCallId"))  # may contain a newline: compared as it is
            draft = self.calls.get(call_id) or self._add_call(call_id, part.get("toolName"), {})
            noted = _noted_outcome(part) or _noted_outcome(message)
            result = content_text(part.get("result")) or content_text(part.get("experimental_content"))
            result = result or string(noted.get("diffString"))
            draft.set_result(result, _status(part, noted), drafts.shortened(result))

    def _read_call(self, part: Record) -> None:
        given: object = next((part[key] for key in ("args", "input") if key in part), {})
        params = object_in(given) or given if isinstance(given, str) else given
        draft = self._add_call(string(part.get("toolCallId")), part.get("toolName") or part.get("name"), params)
        if isinstance(result := part.get("result"), str):  # only in a transcript of text
            draft.set_result(result, drafts.COMPLETED, drafts.shortened(result))

    def _add_call(self, call_id: str, name: object, params: object) -> drafts.Draft:
        native_id = f"{self.record_id}{self._next_part()}"  # the client's id only pairs the call with its result
        draft = self.calls[call_id] = self.call(native_id, name, params, request_id=self._request)
        if call_id:
            draft.more["tool"]["id"] = call_id
        return draft

    def _add_question(self, text: str) -> None:
        attached: list[str] = []
        question: drafts.Draft | None = None
        for speaker, piece in pieces_of(text):
            if speaker is Role.SYSTEM:
                self._inject(piece)
                attached += attachments_of(piece)
            else:
                question = self._add(speaker, piece)
                question.at = find_timestamp(text)
        for name in attached:
            if question:
                question.attach(name)

    def _inject(self, text: str, **more: Any) -> None:
        self.folder = self.folder or folder_of(text)
        self._add(Role.SYSTEM, text, injected=True, **more)

    def _add(self, role: Role, text: str, **more: Any) -> drafts.Draft:
        return self.say(role, text, self._next_part(), request_id=self._request, **more)

    def _next_part(self) -> str:
        self._count += 1
        return f":{self._count - 1}"


def _model_of(*holders: Record) -> str:
    named = (known_model(each.get("modelName")) for holder in holders for each in (holder, cursor_options(holder)))
    return next(filter(None, named), "")


def _name_of(part: Record) -> str:
    """Return the name of an attachment: its own, the last part of its URL, or its media type."""
    if part.get("type") not in ("image", "file", "document"):
        return ""
    address = first_text(part, "image", "url", "path")
    last = "" if address.startswith("data:") else re.split(r"[/\\]", address)[-1][:200]
    media_type = first_text(part, "mediaType", "mimeType")
    return string(part.get("filename")) or last or media_type or attachment_name(part)


def cursor_options(holder: Record) -> Record:
    """Return Cursor's own fields of a message or a part of one."""
    return mapping(value_at(holder, "providerOptions", "cursor"))


def paths_in(calls: Iterable[drafts.Draft]) -> list[str]:
    """Return the paths in the parameters of calls; a parent of one of them is the workspace."""
    params = (mapping(value_at(call.more, "tool", "params")) for call in calls)
    named = (string(value) for given in params for key, value in given.items() if key == "cwd" or "path" in key.lower())
    return list(islice(filter(None, named), 50))


def _noted_outcome(holder: Record) -> Record:
    """Return `highLevelToolCallResult`, merged with its `output`, in which newer builds store the cases."""
    noted = mapping(cursor_options(holder).get("highLevelToolCallResult"))
    return {**noted, **mapping(noted.get("output"))}


def _status(part: Record, noted: Record) -> str:
    if noted.get("rejected"):
        return drafts.REJECTED
    holders = (noted, mapping(noted.get("success")), mapping(noted.get("failure")))
    codes = (number(holder.get(key)) for key in ("exitCode", "exit_code") for holder in holders)
    code = next((code for code in codes if code is not None), None)
    is_failed = part.get("isError") is True or noted.get("isError") is True or bool(code)
    cases = ("error", "failure", "permissionDenied", "timeout")
    return drafts.FAILED if is_failed or any(noted.get(key) for key in cases) else drafts.COMPLETED


# The oldest transcripts: plain text

_SPEAKERS = {"user": "user", "A": "assistant", "assistant": "assistant"}
_SPEAKER = re.compile(r"(user|A|assistant):\s*")
_MARKER = re.compile(r"\[(Thinking|Tool call|Tool result)\][ \t]*")
_PARAMETER = re.compile(r"\s+([A-Za-z_]\w*):[ \t]?(.*)", re.DOTALL)

_Block = tuple[str, str, list[str]]  # kind, rest of the marker's line, following lines


def records_of_text(lines: Iterable[str]) -> Iterator[Record]:
    """Convert a text transcript to the records of current transcripts, one for each change of speaker.

    Text in a message that looks like a marker cannot be distinguished from one.
    """
    speaker, blocks = "", list[_Block]([("", "", [])])
    for line in lines:
        speaker_line = _SPEAKER.fullmatch(line)
        marker = _MARKER.match(line) if speaker == "assistant" else None
        if speaker_line:
            yield from _record(speaker, blocks)
            speaker, blocks = _SPEAKERS[speaker_line[1]], [("", "", [])]
        elif marker:
            blocks.append((marker[1], line[marker.end() :].strip(), []))
        else:
            blocks[-1][2].append(line)
    yield from _record(speaker, blocks)


def _record(speaker: str, blocks: list[_Block]) -> Iterator[Record]:
    content: list[Record] = []
    without_result: dict[str, list[Record]] = defaultdict(list)
    for kind, head, lines in blocks:
        body = "".join(lines).strip()
        if kind == "Tool call":
            content.append({"type": "tool_use", "name": head, "input": _parameters(lines)})
            without_result[head].append(content[-1])
        elif kind == "Tool result" and without_result[head]:
            without_result[head].pop()["result"] = body
        elif kind == "Tool result":
            content.append({"type": "tool_use", "name": head, "input": {}, "result": body})
        elif kind == "Thinking":
            content.append({"type": "thinking", "text": f"{head}\n{body}"})
        else:
            content.append({"type": "text", "text": body})
    if speaker:
        yield {"role": speaker, "message": {"content": content}}


def _parameters(lines: list[str]) -> dict[str, str]:
    """Parse `name: value` on indented lines; any other line continues the previous value."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in lines:
        if parameter := _PARAMETER.fullmatch(line):
            name = parameter[1]
            found[name] = [parameter[2]]
        elif name:
            found[name].append(line)
    return {key: "".join(value).strip() for key, value in found.items()}
