"""Forget words and search the disk for them: python -m benchmarks.secrets.forgetting

Through each of six inputs, a new registry receives 30 words, each in its own conversation. For each conversation the
product makes all that it can derive: extractions, searches, hints, a briefing, a resumed session, a remembered
sentence, an expected result, a saved view, a nickname, tags and an earlier title. Then each word is forgotten (every
third by `ctxr forget`, the others by the server), and every file of the registry's folder is searched for it: in any
case, and escaped as in JSON and in URLs. Then the words are sent again, and a backup from before is restored. The table
counts the words that are left after each step; all should be 0.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import quote, quote_plus, urlencode

from httpx2 import Client

from benchmarks.secrets.on_disk import Registry
from benchmarks.setup import servers
from benchmarks.setup.figures import table
from sources.writers import WRITERS
from tests.sources.claude_code.claude_code_files import Dialogue, session_id, write
from tests.sources.exports.export_files import ClaudeChat, claude_files, write_zip

WORDS = (
    *("quokkalike", "Zanzibarian", "parcelfox", "NORTHGATE", "heronwing", "blue-otter", "snake_case_vole"),
    *("v3.14-newt", "velvet marmot", "80% stoat", 'the "grey" lynx', r"C:\lairs\badger", "a&b=civet", "<b>mole</b>"),
    *("Müßiggang", "ÄPFELBAUM", "naïveté", "café-genet", "ЖУРАВЛЬ", "🦦otterbox", "狐の嫁入り", "カワウソ"),
    *("쿼카상점", "비밀정원", "너구리", "수달이네", "여우비", "카카오페이연동", "파란 고래", "달빛-서버"),
)


class Words(Registry):
    """A registry with a server, in which words are planted and forgotten."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        super().__init__(folder)
        self.project = self.user / "shop"
        self.project.mkdir()
        opencode = self.user / ".config" / "opencode"
        opencode.mkdir(parents=True)
        (opencode / "opencode.json").write_text('{"model": "a/b"}', encoding="utf-8")
        program = self.user / "opencode"
        program.write_text(f"#!/bin/sh\necho {WRITERS['opencode'].tested}\n", encoding="utf-8")
        program.chmod(0o755)
        self.env["PATH"] = f"{self.user}:{self.env['PATH']}"
        (folder / "other").mkdir()
        self.other = Registry(folder / "other")
        self.port = servers.free_port()
        self.http = Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60, follow_redirects=True)
        self.home.mkdir()
        self.server = servers.start_http(servers.PRODUCT_HTTP, self.home, self.port, self.env)

    def stop(self) -> None:
        """Stop the server regularly, so that it closes its files."""
        self.server.terminate()
        self.server.wait()

    def ask(self, operation: str, channel: str | None = None, /, **query: Any) -> dict[str, Any]:
        """Run an operation on the server, and return its answer. RuntimeError for any error but NOT_FOUND."""
        body = {"operation": operation, "query": query} | ({"channel": channel} if channel else {})
        answer = dict(self.http.post("/bo/ao/run", json=body).json())
        if answer.get("error") and answer["error"]["code"] != "NOT_FOUND":
            raise RuntimeError(f"{body}: {answer['error']}")
        return answer

    def restore(self, backup: Path) -> None:
        self.run("backup", "restore", str(backup))

    def remains(self) -> dict[str, list[str]]:
        """Return the words found in files of the folder, with the places. Backups are not searched."""
        found: dict[str, list[str]] = {}
        for name, content in self._files():
            lowered = content.lower()
            for word, traces in _TRACES.items():
                if at := next((lowered.find(trace) for trace in traces if trace in lowered), None):
                    excerpt = content[max(0, at - 40) : at + 40].decode(errors="replace")
                    found.setdefault(word, []).append(f"{name}: {excerpt!r}")
        return found

    def _files(self) -> Iterator[tuple[str, bytes]]:
        return ((name, content) for name, content in super()._files() if ".zip" not in name)


def _traces(word: str) -> set[bytes]:
    forms = {form for one in (word, word.lower(), word.upper()) for form in (one, normalize("NFD", one))}
    escaped = {json.dumps(form, ensure_ascii=is_ascii)[1:-1] for form in forms for is_ascii in (True, False)}
    return {form.encode().lower() for form in (*forms, *escaped, *map(quote, forms), *map(quote_plus, forms))}


_TRACES = {word: _traces(word) for word in WORDS}


def _rare(word: str) -> str:
    """Return words that only this conversation contains, because hints need rare words."""
    number = WORDS.index(word)
    return f"Perhaps at quay{number} or wharf{number}, or in depot{number} or silo{number}."


def _texts(word: str) -> tuple[str, str, str, str]:
    return (
        f"Where does the {word} courier leave the parcels? {_rare(word)}",
        f"Behind the {word} statue near the northern gate. We decided to use {word} from now on.",
        f"And who fetches {word} in the morning?",
        normalize("NFD", f"The baker takes {word}."),
    )


def _conversation(number: int, word: str) -> dict[str, Any]:
    messages = [{"role": ("user", "assistant")[at % 2], "text": text} for at, text in enumerate(_texts(word))]
    return {"channel": f"claude_session_{number}", "messages": messages, "meta": {"title": f"About {word}"}}


def by_tool(registry: Words) -> None:
    """Log each conversation, as the tool does."""
    for number, word in enumerate(WORDS):
        registry.http.post("/bo/conversations", json=_conversation(number, word)).raise_for_status()


def by_hook(registry: Words) -> None:
    """Send the events of Cursor's hooks, and sync."""
    for number, word in enumerate(WORDS):
        asked, answered, *_ = _texts(word)
        ids = {"conversation_id": f"c-{number}", "generation_id": f"g-{number}", "cursor_version": "3.16.2"}
        about = {**ids, "workspace_roots": [str(registry.project)]}
        for event, said in (("beforeSubmitPrompt", {"prompt": asked}), ("afterAgentResponse", {"text": answered})):
            registry.run("hook", "cursor", event, given=json.dumps(about | said))
    registry.run("sync")


def by_store(registry: Words) -> None:
    """Write Claude Code's files, with tool calls, and sync."""
    for number, word in enumerate(WORDS):
        asked, answered, then, last = _texts(word)
        talk = Dialogue(session_id(number), cwd=str(registry.project))
        talk.user(asked, promptSource="typed")
        talk.calls("Bash", {"command": f"ls '{word}'"}, "toolu_1", "msg_1")
        talk.result("toolu_1", f"{word}: no such file")
        talk.says(answered, "msg_2")
        talk.user(then, promptSource="typed")
        talk.says(last, "msg_3")
        write(registry.user / ".claude", talk, project=str(registry.project))
    registry.run("sync")


def by_export(registry: Words) -> None:
    """Import an account's export."""
    chats = []
    for number, word in enumerate(WORDS):
        asked, answered, *_ = _texts(word)
        chat = ClaudeChat(number + 1, name=f"About {word}")
        chat.asks(asked)
        chat.answers(answered)
        chats.append(chat)
    registry.run("import", str(write_zip(registry.user / "export.zip", claude_files(*chats))))


def by_push(registry: Words) -> None:
    """Log into another registry, and push from there."""
    laptop = registry.other
    if not laptop.home.exists():
        for number, word in enumerate(WORDS):
            laptop.run("log", "-", given=json.dumps(_conversation(number, word)))
    laptop.env["CTXR_REMOTE_URL"] = f"http://127.0.0.1:{registry.port}"
    laptop.run("push")


def by_backup(registry: Words) -> None:
    """Restore the backup of another registry."""
    backup = registry.other.out / "other.zip"
    if not backup.exists():
        for number, word in enumerate(WORDS):
            registry.other.run("log", "-", given=json.dumps(_conversation(number, word)))
        registry.other.run("backup", "create", str(backup), "--no-stores")
    registry.restore(backup)


WAYS: dict[str, Callable[[Words], None]] = {
    "tool": by_tool,
    "hook": by_hook,
    "client's store": by_store,
    "account export": by_export,
    "push from another registry": by_push,
    "restored backup": by_backup,
}


def _first_messages(registry: Words) -> list[tuple[str, str]]:
    """Return for each word the channel and the id of a message that contains it."""
    items = registry.http.get("/bo/conversations", params={"limit": 1000}).json()["items"]
    return [next((one["channel"], one["id"]) for one in items if word in one["text"]) for word in WORDS]


def use(registry: Words) -> None:
    """Make the product store everything that it derives from a conversation."""
    said, hints = _first_messages(registry), 0
    for number, word in enumerate(WORDS):
        registry.ask("extract", text=f"where does the {word} courier leave the parcels")
        channel, id_ = said[number]
        registry.ask("extract", channel, text=f"{word} statue", mode="summary")
        registry.ask("search", text=word)
        registry.ask("search", text=f"nobody says {word}", to="2001-01-01T00:00:00Z")
        prompt = f"Tell the {word} courier where the parcels are. {_rare(word)}"
        hints += bool(registry.ask("hint", text=prompt, session_id=f"other-{number}")["hint"])
        registry.ask("hint", text="ls", act={"command": f"ls '{word}'"}, folder=str(registry.project))
        registry.ask("remember", text=f"Never feed the {word} after midnight.", project=str(registry.project))
        registry.ask("remember", text=f"The {word} sleeps.", project=None)
        registry.ask("tag", channel, title=f"First of {word}", add_tags=[f"{word}s"], nickname=f"{word}-{number}")
        registry.ask("tag", channel, title=f"Of {word}")
        registry.ask("share", channel, **{"with": "team"})
        last = registry.http.get("/bo/ao/executions", params={"operation": "search", "limit": 1}).json()["items"][0]
        registry.http.post(f"/flow/{last['id']}/expected", data={"message": id_}).raise_for_status()
        view = {"name": f"All of {number}", "address": "/?" + urlencode({"q": word})}
        registry.http.post("/views", data=view).raise_for_status()
        registry.http.get("/", params={"q": word})
        if number % 10 == 0:
            registry.run("resume", channel, "--in", "opencode")
    print(f"{hints} hints", file=sys.stderr)
    registry.ask("daily_briefing", date="today")
    registry.ask("note", folder=str(registry.project))


def forget(registry: Words) -> None:
    for number, word in enumerate(WORDS):
        if number % 3:
            registry.ask("delete", soft=False, matching=word.lower())
        else:
            registry.run("forget", "--matching", word, "--yes")


def left_after_each_step(way: str, folder: Path) -> list[tuple[str, dict[str, list[str]]]]:
    """Return for each step the words left, with the files that contain them."""
    registry = Words(folder)
    try:
        WAYS[way](registry)
        use(registry)
        came = registry.remains()
        if missing := [word for word in WORDS if word not in came]:
            raise RuntimeError(f"{way}: not stored: {missing}")
        backup = registry.out / "before.zip"
        registry.run("backup", "create", str(backup), "--no-stores")
        forget(registry)
        steps = [("forgotten", registry.remains())]
        WAYS[way](registry)
        steps.append(("sent again", registry.remains()))
        registry.restore(backup)
        steps.append(("restored", registry.remains()))
        registry.stop()
        steps.append(("ended", registry.remains()))
    finally:
        servers.kill(registry.server)
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.secrets.forgetting", description=__doc__)
    parser.add_argument("--way", action="append", choices=WAYS, help="one input; may be repeated")
    parser.add_argument("--long", action="store_true", help="print where each remaining word is")
    options = parser.parse_args()
    rows, heads = [], list[str]()
    for way in options.way or WAYS:
        with tempfile.TemporaryDirectory(prefix="ctxr-forgetting-") as folder:
            steps = left_after_each_step(way, Path(folder) / "one")
        heads = [step for step, _ in steps]
        rows.append((way, str(len(WORDS)), *(str(len(words)) for _, words in steps)))
        for step, words in steps:
            for word, places in words.items() if options.long else ():
                print(f"{way}, {step}: {word!r} in", *places, sep="\n  ", file=sys.stderr, flush=True)
    print(table(("input", "words", *heads), rows))


if __name__ == "__main__":
    main()
