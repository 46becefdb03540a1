"""Turn sessions that were exported as JSON into the requests that store them again. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

CLIENT = "client"  # the writer of a summary that is part of the conversation
Document = Mapping[str, Any]
_OF_THE_REGISTRY = ("id", "sequence")
_DESCRIBING = ("title", "session_id", "summary")


def is_document(given: Any) -> bool:
    """Return True for a document of `ctxr export --format json`."""
    if not isinstance(given, Mapping) or not isinstance(given.get("messages"), list):
        return False
    session = given.get("session")
    return isinstance(session, Mapping) and all(isinstance(session.get(name), str) for name in ("channel", "source"))


def requests_of(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the request that stores the session, and the one that names and tags it."""
    session = document["session"]
    messages = [
        {name: value for name, value in message.items() if name not in _OF_THE_REGISTRY}
        for message in document["messages"]
        if isinstance(message, Mapping)
    ]
    about = {name: session[name] for name in _DESCRIBING if session.get(name)}
    if session.get("session_id") == session["channel"]:
        del about["session_id"]
    if session.get("summary_by") != CLIENT:
        about.pop("summary", None)
    if session.get("project_path"):
        about["project"] = session["project_path"]
    to = {"channel": session["channel"], "source": session["source"]}
    yield {"operation": "conversation_log", **to, "messages": messages, "meta": about}
    names = {"nickname": session.get("nickname"), "add_tags": session.get("tags") or []}
    if any(names.values()):
        yield {"operation": "tag", **to, "query": {name: value for name, value in names.items() if value}}
