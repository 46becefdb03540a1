"""How the tool calls of a Cursor agent ended. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sources.kit import drafts
from sources.kit.jsonl import Record, mapping, string
from sources.kit.loose_json import inside, number

_MOST_PATHS = 50
_FAILED = ("error", "failure", "permissionDenied", "timeout")


LONGEST_DATA = 16 * 2**20
"""Characters. Beyond this, long parameters and results of one conversation are kept as they are shown."""


@dataclass(slots=True)
class Allowance:
    """How much of what tools were given and gave back may still be kept whole; `cut` counts what was not."""

    left: int = LONGEST_DATA
    cut: int = 0

    def keep(self, value: Any) -> Any:
        """The value with its texts, as long as there is room for them."""
        if isinstance(value, dict):
            return {key: self.keep(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.keep(inner) for inner in value]
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        """One text."""
        kept = text if len(text) <= self.left else drafts.shortened(text)
        self.left -= len(kept)
        self.cut += kept is not text
        return kept


def cursors_own(holder: Record) -> Record:
    """What Cursor noted beside a message or a part of one."""
    return mapping(inside(holder, "providerOptions", "cursor"))


def paths_in(calls: Iterable[drafts.Draft]) -> list[str]:
    """Some of the paths that calls name: one of the folders above them is the workspace."""
    params = (mapping(mapping(call.more.get("tool")).get("params")) for call in calls)
    named = (string(value) for given in params for key, value in given.items() if key == "cwd" or "path" in key.lower())
    return list(islice(filter(None, named), _MOST_PATHS))


def outcome(part: Record, message: Record) -> tuple[str, str]:
    """Result and status of a call: the result that the model saw, and how the client saw it end."""
    told = _told(part) or _told(message)
    result = drafts.readable(part.get("result")) or drafts.readable(part.get("experimental_content"))
    return result or string(told.get("diffString")), _status(part, told)


def _told(holder: Record) -> Record:
    """`highLevelToolCallResult`, whose shape changed: the cases stand in it, or in its `output`."""
    told = mapping(cursors_own(holder).get("highLevelToolCallResult"))
    return {**told, **mapping(told.get("output"))}


def _status(part: Record, told: Record) -> str:
    if told.get("rejected"):
        return drafts.REJECTED
    code = next((code for key in ("exitCode", "exit_code") for code in _numbers(told, key)), None)
    is_failed = part.get("isError") is True or told.get("isError") is True or bool(code)
    return drafts.FAILED if is_failed or any(told.get(key) for key in _FAILED) else drafts.COMPLETED


def _numbers(told: Record, key: str) -> list[float]:
    found = (number(holder.get(key)) for holder in (told, mapping(told.get("success")), mapping(told.get("failure"))))
    return [value for value in found if value is not None]
