"""What a Claude Code transcript tells about its session: title, project, origin. Pure."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from registry.domain import preview_of
from sources.kit.drafts import project_of
from sources.kit.jsonl import Record, mapping, string

TITLE_WIDTH = 80
TITLE_FIELDS = {
    "custom-title": "customTitle",
    "agent-name": "agentName",
    "ai-title": "aiTitle",
    "last-prompt": "lastPrompt",
}
TITLES_BY_TRUST = ("custom-title", "/rename", "agent-name", "ai-title", "summary", "session file")


@dataclass(slots=True)
class Facts:
    """About one session, gathered from its records. `agent_of` is the session that a sub-agent works for."""

    session_id: str
    agent_of: str | None = None
    titles: dict[str, str] = field(default_factory=dict)
    """The newest title of each kind (`TITLES_BY_TRUST`, `last-prompt`)."""
    summaries: dict[str, str] = field(default_factory=dict)
    """Uuid of a last record, here or in another file, to the summary of the conversation it ends."""
    extra: dict[str, str] = field(default_factory=dict)
    _folders: dict[str, None] = field(default_factory=dict)
    _relocated: str = ""
    _first_session_id: str = ""
    _forked_from: str = ""

    def envelope(self, record: Record) -> None:
        """What every record of a conversation carries."""
        self._folders[string(record.get("cwd"))] = None
        self._first_session_id = self._first_session_id or string(record.get("sessionId"))
        if version := string(record.get("version")):
            self.extra["version"] = version
        if (branch := string(record.get("gitBranch"))) not in ("", "HEAD"):
            self.extra.setdefault("branch", branch)
        fork = mapping(record.get("forkedFrom"))
        if (origin := string(fork.get("sessionId"))) not in ("", self.session_id):
            self._forked_from = origin
            self.extra["forked_at"] = string(fork.get("messageUuid"))

    def titled(self, record: Record) -> bool:
        """Take in a record about the session as a whole; False if it is none."""
        kind = string(record.get("type"))
        if kind == "summary":
            self.summaries[string(record.get("leafUuid"))] = string(record.get("summary"))
        elif kind == "relocated":
            self._relocated = string(record.get("relocatedCwd")) or self._relocated
        elif title := string(record.get(TITLE_FIELDS.get(kind, ""))).strip():
            self.titles[kind] = title
        return kind in ("summary", "relocated", *TITLE_FIELDS)

    def title(self, uuids: Container[str]) -> tuple[str, str] | None:
        """Where the best title comes from, and the title. A summary counts if its conversation is this one."""
        summaries = [summary for leaf, summary in self.summaries.items() if leaf in uuids and summary.strip()]
        titles = {**self.titles, "summary": summaries[-1]} if summaries else self.titles
        best = next((kind for kind in TITLES_BY_TRUST if titles.get(kind)), None)
        return (best, preview_of(titles[best], 4 * TITLE_WIDTH)) if best else None

    def project(self) -> str | None:
        """The folder where the work began, or to which the client moved it."""
        return self._relocated or project_of(self._folders)

    def parent(self) -> tuple[str | None, str | None]:
        """The session this one comes from, and how: a resumed session of old began with records of the one before."""
        if self.agent_of is not None:
            return self.agent_of or self._first_session_id or None, "sub-agent"
        if self._forked_from:
            return self._forked_from, "fork"
        if self._first_session_id not in ("", self.session_id):
            return self._first_session_id, "resume"
        return None, None

    def meta(self, **known: str | None) -> dict[str, str]:
        """What else is known; nothing empty."""
        return {key: value for key, value in {**known, **self.extra}.items() if value}
