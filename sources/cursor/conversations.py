"""Parse a composer, as Cursor calls a conversation, into a session. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from registry.domain import Message, Role, Session, preview_of
from sources.base import Skipped
from sources.cursor.bubbles import messages_of, model_of, speaker_of
from sources.cursor.projects import ProjectHints, WorkspaceProjects, project_of
from sources.cursor.times import TimeFrame, dated, moment
from sources.kit.drafts import without_empty
from sources.kit.loose_json import first_text, mapping, number, objects, parse_nested, read_json, string, text_at

SETTLED_AFTER = timedelta(seconds=60)

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Composer:
    """A conversation: its record (`composerData`), and its entry in the lists of conversations (`header`)."""

    composer_id: str
    record: Json
    header: Json


@dataclass(frozen=True, slots=True)
class ComposerReading:
    """The session of a composer. If not `settled`, its last answer is left out, because it is still being written."""

    session: Session
    skipped: tuple[Skipped, ...]
    settled: bool


def headers_of(record: Json) -> list[dict[str, Any]]:
    """Return the distinct headers of a conversation's bubbles in order: `bubbleId`, `type`, perhaps `createdAt`."""
    listed = objects(record.get("fullConversationHeadersOnly"))
    named = {string(header.get("bubbleId")): header for header in reversed(listed) if string(header.get("bubbleId"))}
    if not named:
        return [{"bubbleId": bubble_id} for bubble_id in inline_bubbles(record)]
    return list(reversed(named.values()))


def inline_bubbles(record: Json) -> dict[str, dict[str, Any]]:
    """Return the bubbles in an old record by id, in order, with the tool data that it stores separately."""
    capabilities = objects(record.get("capabilities"))
    older = (mapping(given.get("data")) for given in capabilities if number(given.get("type")) == 15)
    tools = {key: call for data in older for key, call in mapping(parse_nested(data.get("bubbleDataMap"))).items()}
    mapped = {key: bubble for key, bubble in mapping(record.get("conversationMap")).items() if isinstance(bubble, dict)}
    listed = enumerate(objects(record.get("conversation")), 1)
    inline = {string(bubble.get("bubbleId")) or f"#{index}": bubble for index, bubble in listed} | mapped
    return {key: {"toolFormerData": tools[key], **bubble} if key in tools else bubble for key, bubble in inline.items()}


def read_composer(
    composer: Composer, bubbles: Iterable[tuple[Json, Any]], workspaces: WorkspaceProjects, now: datetime
) -> ComposerReading:
    """Build the session from its headers, each with the stored bubble: JSON, an object, or None if it is missing."""
    hints, damage, messages = ProjectHints(), Counter[str](), list[Message]()
    model = model_of(composer.record, "modelConfig")
    for header, stored in bubbles:
        bubble = mapping(stored if isinstance(stored, dict) else read_json(stored))
        speaker = speaker_of(bubble, header)
        if not bubble or speaker is None:
            known = "of an unknown type" if bubble else "not a JSON object"
            damage["listed in the conversation but not stored" if stored is None else known] += 1
            continue
        hints.add(bubble)
        messages.extend(messages_of(bubble, header, speaker, model))
    settled = not _is_answering(composer, messages, now)
    questions = [index for index, message in enumerate(messages, 1) if message.role is Role.USER]
    finished = messages if settled else messages[: max(questions, default=0)]
    if all(message.role in (Role.ERROR, Role.SYSTEM) for message in finished):
        finished = []
    created = filter(None, (moment(given.get("createdAt")) for given in (composer.header, composer.record)))
    span = TimeFrame(min(created, default=None), _last_change(composer), now)
    parents = (text_at(given, "subagentInfo", "parentComposerId") for given in (composer.record, composer.header))
    named = (string(given.get("name")).strip() for given in (composer.header, composer.record))
    asked = (preview_of(each.text.strip().partition("\n")[0]) for each in messages if each.role is Role.USER)
    mode = first_text({**composer.header, **composer.record}, "unifiedMode", "forceMode")
    session = Session(
        session_id=composer.composer_id,
        messages=dated(finished, span),
        title=next(filter(None, (*named, *asked)), "Untitled"),
        project=project_of(composer.composer_id, composer.header, composer.record, workspaces, hints),
        parent=next(filter(None, parents), None),
        meta=without_empty({"model": model, "mode": mode}),  # no other fields: a record has keys and tokens too
    )
    skipped = (Skipped(f"{counted(count, 'message')} of {composer.composer_id}", why) for why, count in damage.items())
    return ComposerReading(session, tuple(skipped), settled)


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _is_answering(composer: Composer, messages: list[Message], now: datetime) -> bool:
    """Return True while Cursor writes an answer: the status says so, and the conversation has just changed."""
    record = composer.record
    if record.get("status") != "generating" and not record.get("generatingBubbleIds"):
        return False
    times = (_last_change(composer), *(message.timestamp for message in messages[-1:]))
    return any(time is not None and now - time < SETTLED_AFTER for time in times)


def _last_change(composer: Composer) -> datetime | None:
    names = ("lastUpdatedAt", "conversationCheckpointLastUpdatedAt")
    times = (moment(given.get(name)) for given in (composer.header, composer.record) for name in names)
    return max(filter(None, times), default=None)
