"""Parse the messages of a bubble, Cursor's unit of conversation. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from registry.domain import Message, Role
from sources.cursor.times import bubble_time
from sources.kit.drafts import COMPLETED, FAILED, PENDING, REJECTED, shortened, status_of, tool_draft
from sources.kit.loose_json import (
    compact,
    first_text,
    items,
    mapping,
    number,
    objects,
    parse_nested,
    read_json,
    string,
    text_at,
    value_at,
)
from sources.kit.token_counts import usage_of
from sources.kit.workspace_files import path_of

_THINKING, _SUMMARY = 30, 22  # capabilityType
_SPEAKERS: dict[float | None, Role] = {1: Role.USER, 2: Role.ASSISTANT}
_ATTACHED = ("relevantFiles", "attachedFolders", "attachedFoldersNew", "attachedFiles", "externalLinks")
_SELECTED = ("fileSelections", "folderSelections", "selections", "terminalSelections", "externalLinks", "selectedDocs")
# names of nodes in lower case without `_`, in which the two editors agree
_BLOCKS = ("paragraph", "heading", "quote", "blockquote", "listitem", "code", "codeblock")
_BREAKS = ("linebreak", "hardbreak")


def speaker_of(bubble: Mapping[str, Any], header: Mapping[str, Any]) -> Role | None:
    """Return the role by the type of the bubble, else of its header; None for an unknown type."""
    given = (number(source.get("type")) for source in (bubble, header))
    return next((_SPEAKERS[kind] for kind in given if kind in _SPEAKERS), None)


def messages_of(
    bubble: Mapping[str, Any], header: Mapping[str, Any], speaker: Role, model: str | None
) -> Iterator[Message]:
    """Yield the messages of a bubble: thinking, text, tool call, error. Times may be missing.

    The main message has the bubble's id as `native_id`; the others have their role appended to it. `model`: the
    conversation's model, for answers that name none.
    """
    bubble_id = string(header.get("bubbleId")) or string(bubble.get("bubbleId"))
    bubble_model = model_of(bubble) or model
    common = {"request_id": string(bubble.get("requestId")), "model": "" if speaker is Role.USER else bubble_model}
    known = {name: value for name, value in common.items() if value}
    usage = {name: count for name, count in usage_of(bubble.get("tokenCount")).items() if count}
    by_kind = {_THINKING: Role.THINKING, _SUMMARY: Role.SYSTEM}
    leading = Role.TOOL if is_tool_call(bubble) else by_kind.get(_capability(bubble), speaker)
    for index, part in enumerate(_parts(bubble, speaker)):
        native_id = bubble_id if part.role is leading else f"{bubble_id}:{part.role}"
        more = {"native_id": native_id, **known, **({"usage": usage} if usage and index == 0 else {}), **part.more}
        yield replace(part, timestamp=bubble_time(bubble, header), more=more)


def model_of(holder: Mapping[str, Any], field: str = "modelInfo") -> str | None:
    """Return the model that a bubble or conversation names; None if it is "default"."""
    name = text_at(holder, field, "modelName")
    return name if name not in ("", "default") else None


def bubble_text(bubble: Mapping[str, Any]) -> str:
    """Return the text of a bubble, including the code that older answers store in separate fields."""
    text = string(bubble.get("text")) or string(bubble.get("rawText"))
    if not text.strip():
        text = plain_text(bubble.get("richText") or bubble.get("initText"))
    blocks = filter(None, map(_fenced, objects(bubble.get("codeBlocks"))))
    return "\n\n".join([text.strip(), *(block for code, block in blocks if code not in text)]).strip()


def _parts(bubble: Mapping[str, Any], speaker: Role) -> Iterator[Message]:
    if thought := _thinking(bubble):
        duration = number(bubble.get("thinkingDurationMs"))
        yield Message(Role.THINKING, thought, more={"duration_ms": round(duration)} if duration else {})
    yield from _text_messages(bubble, speaker)
    if is_tool_call(bubble):
        yield tool_message(mapping(bubble.get("toolFormerData")))
    if failure := bubble.get("errorDetails"):
        yield Message(Role.ERROR, error_text(failure))


def _text_messages(bubble: Mapping[str, Any], speaker: Role) -> Iterator[Message]:
    text, kind = bubble_text(bubble), _capability(bubble)
    if kind == _SUMMARY:
        summary = text or text_at(bubble, "conversationSummary", "summary")
        if summary:
            yield Message(Role.SYSTEM, summary, more={"injected": True})
        return
    attached = attachments_of(bubble)
    shown = text or " ".join(f"[{name}]" for name in attached if speaker is Role.USER)
    if shown:
        role = Role.THINKING if kind == _THINKING and not _thinking(bubble) else speaker
        yield Message(role, shown, more={"attachments": attached} if attached else {})


def _capability(bubble: Mapping[str, Any]) -> int:
    return int(number(bubble.get("capabilityType")) or 0)


def _thinking(bubble: Mapping[str, Any]) -> str:
    thought = parse_nested(bubble.get("thinking"))
    text = string(thought) or text_at(thought, "text")
    blocks = objects(bubble.get("allThinkingBlocks"))
    older = (string(block.get("thinking")) or string(block.get("text")) for block in blocks)
    return (text or "\n\n".join(filter(None, older))).strip()


def _fenced(block: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the code of a block, and the code within a fence that is longer than any backticks in it."""
    code = string(block.get("content")).strip("\n")
    if not code.strip():
        return None
    longest = max(map(len, re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return code, f"{fence}{string(block.get('languageId'))}\n{code}\n{fence}"


def attachments_of(bubble: Mapping[str, Any]) -> list[str]:
    """Return the names of attached images, files and folders, each once, without their contents."""
    context = mapping(bubble.get("context"))
    lists = [bubble.get(key) for key in _ATTACHED] + [context.get(key) for key in _SELECTED]
    paths = (first_text(image, "path", "name", "filename") for image in objects(bubble.get("images")))
    pictures = (re.split(r"[/\\]", path)[-1] or "image" for path in paths)
    files = (_file_name(entry) for given in lists for entry in items(given))
    return list(dict.fromkeys(filter(None, [*pictures, *files])))


def _file_name(entry: Any) -> str:
    if isinstance(entry, str):
        return entry
    given = mapping(entry)
    names = ("relativeWorkspacePath", "relativePath", "path", "url", "name")
    return path_of(given.get("uri")) or first_text(given, *names)


# Rich text: the saved state of the editors Lexical and ProseMirror


def plain_text(state: Any) -> str:
    """Return the text in an editor's state (JSON text or parsed), including the text of unknown nodes."""
    value = mapping(read_json(state) if isinstance(state, str) else state)
    return "".join(_pieces(value.get("root", value))).strip()


def _pieces(root: Any) -> Iterator[str]:
    stack = [root]
    while stack:  # no recursion: a damaged state may be nested deeper than Python's stack
        node = stack.pop()
        if isinstance(node, str):
            yield node
            continue
        node = mapping(node)
        kind = string(node.get("type")).replace("_", "").lower()
        attributes = mapping(node.get("attrs"))
        named = (node.get("text"), node.get("mentionName"), attributes.get("label"), attributes.get("mentionName"))
        yield "\n" if kind in _BREAKS else next(filter(None, map(string, named)), "")
        if kind in _BLOCKS:
            stack.append("\n")
        stack.extend(reversed(items(node.get("children")) or items(node.get("content"))))


# Tool calls: a call and its result share one bubble

_VERSION = re.compile(r"_v\d+$")


def is_tool_call(bubble: Mapping[str, Any]) -> bool:
    """Return True if the bubble contains a tool call; many other bubbles have an empty `toolFormerData`."""
    call = mapping(bubble.get("toolFormerData"))
    return any(call.get(key) for key in ("name", "toolCallId", "rawArgs", "params", "result"))


def tool_message(call: Mapping[str, Any]) -> Message:
    """Return a call as a message; a long result is shortened."""
    name, result, error = string(call.get("name")) or "tool", parse_nested(call.get("result")), call.get("error")
    params = parse_nested(call.get("params")) or parse_nested(call.get("rawArgs"))
    draft = tool_draft("", _VERSION.sub("", name), params, None)
    draft.more["tool"] |= {"name": name, "id": call.get("toolCallId")}
    text = first_text(result, "output", "contents", "content", "text", "stdout", "diff", "message")
    shown = "" if result in (None, "", {}, []) else shortened((text or compact(result)).strip())
    draft.set_result(result, _status(call, result), error_text(error) if error else shown)
    return Message(Role.TOOL, "\n\n".join(draft.parts), more=draft.more)


def _status(call: Mapping[str, Any], result: Any) -> str:
    if call.get("userDecision") == "rejected":
        return REJECTED
    if number(value_at(result, "exitCode")):
        return FAILED
    return status_of(call.get("status"), COMPLETED if result else PENDING)


# fields that may contain the text of an error; the last one is tried first
_ERROR_FIELDS = (
    *("modelVisibleErrorMessage", "error", "detail", "title", "message", "clientVisibleErrorMessage", "details"),
)


def error_text(error: Any) -> str:
    """Return the first text found in an error, which Cursor nests in many ways; else the error as JSON."""
    stack = [parse_nested(error)]
    while stack:
        found = stack.pop()
        if isinstance(found, str) and found.strip():
            return shortened(found.strip())
        stack.extend(inner for word in _ERROR_FIELDS if (inner := mapping(found).get(word)))
    return shortened(compact(parse_nested(error)))
