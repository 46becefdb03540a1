"""OpenClaw: sessions as a user sees them; Pi's entries in a database that also contains keys."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from registry.domain import Role
from sources.files_to_back_up import copy_database
from sources.openclaw.reader import OpenClaw
from tests.sources.pi.pi_files import SESSION, SHOP, Dialogue, text, working_session
from tests.sources.reading import fingerprints_of, read_changed, texts_of


def write(root: Path, talk: Dialogue) -> Path:
    """Write an agent's database with one session and a key."""
    file = root / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT NOT NULL,"
            " created_at INTEGER NOT NULL, PRIMARY KEY (session_id, seq)) STRICT"
        )
        database.execute("CREATE TABLE auth_profile_store (value TEXT)")
        database.execute("INSERT INTO auth_profile_store VALUES ('sk-secret')")
        rows = ((SESSION, place, json.dumps(line), place) for place, line in enumerate(talk.lines))
        database.executemany("INSERT INTO transcript_events VALUES (?, ?, ?, ?)", rows)
    return file


def write_files(root: Path, talk: Dialogue) -> Path:
    """Write a session as versions before 2026.7.2 did."""
    file = root / "agents" / "main" / "sessions" / f"{SESSION}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in talk.lines), encoding="utf-8")
    return file


def test_a_session_is_read_in_order_and_again_after_it_is_continued(tmp_path: Path) -> None:
    talk = working_session()
    store = write(tmp_path, talk)
    [each] = read_changed(OpenClaw(), store)
    assert texts_of(each.session, Role.USER, Role.ASSISTANT) == [
        ("user", "Why is the basket empty? 안녕"),
        ("assistant", "I will look."),
        ("assistant", "It makes a new list."),
    ]
    assert (each.session.session_id, each.session.project, each.skipped) == (SESSION, SHOP, ())

    seen = fingerprints_of(OpenClaw(), store)
    assert read_changed(OpenClaw(), store, seen) == []
    talk.says("user", text("And now?"))
    [again] = read_changed(OpenClaw(), write(tmp_path, talk), seen)
    assert again.session.messages[-1].text == "And now?"


def test_a_backup_of_the_database_contains_no_key(tmp_path: Path) -> None:
    copy_database(write(tmp_path, working_session()), tmp_path / "copy.db")
    copied = (tmp_path / "copy.db").read_bytes()
    assert b"basket" in copied
    assert b"sk-secret" not in copied
