"""Aider: chats of each project as a user sees them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.aider.reader import NAME, Aider, chats_of, dialogue_of
from sources.base import Paths
from tests.sources.anything import check
from tests.sources.reading import fingerprints_of, read_changed, texts_of

TAG = "thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b"
FIRST = f"""
# aider chat started at 2026-11-22 07:11:16

> aider --model openai/gpt-4o --message Why?
and the second line of that  \n> Aider v0.86.2  \n> Main model: openai/gpt-4o with diff edit format  \n
#### Why is the basket empty? 안녕  \n#### And since when?  \n
<{TAG}>

It returns a new list.

</{TAG}>

I will change it.

> a line that the model quotes

basket.py
```python
<<<<<<< SEARCH
    return []
=======
    return items
>>>>>>> REPLACE
```

> Tokens: 2.6k sent, 92 received. Cost: $0.0073 message, $0.0073 session.  \n> Applied edit to basket.py  \n"""
SECOND = """
# aider chat started at 2026-11-23 08:00:00

> Aider v0.86.2  \n
#### Hi  \n
Hello
"""


def write(project: Path, *chats: str) -> Path:
    """Write a project's history file."""
    project.mkdir(parents=True, exist_ok=True)
    (project / NAME).write_text("".join(chats), encoding="utf-8")
    return project / NAME


def test_chats_are_read_in_order(tmp_path: Path) -> None:
    first, second = read_changed(Aider(), write(tmp_path / "shop", FIRST, SECOND))

    assert [kind for kind, _ in texts_of(first.session)] == [
        "system",
        "user",
        "thinking",
        "assistant",
        "tool",
        "system",
    ]
    command, asked, thought, answer, edit, _ = (each.text for each in first.session.messages)
    assert command.startswith("aider --model openai/gpt-4o --message Why?\nand the second line of that")
    assert asked == "Why is the basket empty? 안녕\nAnd since when?"
    assert thought == "It returns a new list."
    assert answer.startswith("I will change it.\n\n> a line that the model quotes")
    assert answer.endswith("```")
    assert edit == "edit basket.py"
    assert texts_of(second.session)[1:] == [("user", "Hi"), ("assistant", "Hello")]


def test_chats_keep_project_model_edits_and_start_time(tmp_path: Path) -> None:
    first, second = read_changed(Aider(), write(tmp_path / "shop", FIRST, SECOND))

    assert first.session.project == str(tmp_path / "shop")
    assert first.session.title == "Why is the basket empty? 안녕 And since when?"
    assert first.session.session_id != second.session.session_id
    command, asked, _, answer, edit, _ = first.session.messages
    assert command.timestamp == datetime(2026, 11, 22, 7, 11, 16).astimezone()
    assert "time" not in command.more
    assert asked.more == {"time": "inferred"}
    assert answer.more["model"] == "openai/gpt-4o"
    assert edit.more["tool"]["params"] == {"file_path": "basket.py"}
    assert (edit.more["tool"]["result"], edit.more["tool"]["status"]) == ("Applied edit to basket.py", "completed")


def test_the_same_time_in_two_projects_makes_two_conversations(tmp_path: Path) -> None:
    ids = {read_changed(Aider(), write(tmp_path / name, SECOND))[0].session.session_id for name in ("shop", "till")}
    assert len(ids) == 2
    assert {one.index("-") for one in ids} == {8}  # with other ids all would be stored once more


def test_only_the_continued_chat_is_read_again(tmp_path: Path) -> None:
    store = write(tmp_path, FIRST, SECOND)
    seen, stamp = fingerprints_of(Aider(), store), Aider().stamp(store)
    assert read_changed(Aider(), store, seen) == []

    write(tmp_path, FIRST, SECOND, "\n#### More?  \n\nNo\n")
    assert Aider().stamp(store) != stamp
    assert [texts_of(each.session)[-1] for each in read_changed(Aider(), store, seen)] == [("assistant", "No")]


def test_empty_chats_and_two_in_one_second_are_read_correctly(tmp_path: Path) -> None:
    empty = "# aider chat started at 2026-11-22 07:11:16\n\n> Aider v0.86.2  \n"
    store = write(tmp_path, "rubbish before\n", empty, empty, SECOND)
    one, two, talk = read_changed(Aider(), store)
    assert [each.skipped[0].why for each in (one, two)] == ["no conversation in it"] * 2
    assert one.key != two.key
    assert not talk.skipped


def test_histories_are_found_below_home_or_the_folders_of_the_variables(tmp_path: Path) -> None:
    near = [write(tmp_path / name, SECOND) for name in ("", "shop", "src/till")]
    for name in ("a/b/deep", ".cache/hidden"):
        write(tmp_path / name, SECOND)
    assert sorted(Aider().find(Paths(tmp_path, {}))) == sorted(near)

    deep = tmp_path / "a" / "b" / "deep"
    assert list(Aider().find(Paths(tmp_path, {"CTXR_AIDER_DIRS": str(deep)}))) == [deep / NAME]
    own = tmp_path / "elsewhere.md"
    own.write_text(SECOND, encoding="utf-8")
    assert own in list(Aider().find(Paths(tmp_path, {"AIDER_CHAT_HISTORY_FILE": str(own)})))


@given(
    st.lists(
        st.sampled_from(["# aider chat started at 2026-11-22 07:11:16", "#### ", "> ", "a", "  ", f"<{TAG}>", "\0", ""])
        | st.text(max_size=9),
        max_size=20,
    )
)
def test_any_lines_are_parsed(lines: list[str]) -> None:
    for chat in chats_of([*lines, "# aider chat started at 2026-11-22 07:11:16", *lines]):
        check(dialogue_of(chat, "s").build(began=chat.began))


@pytest.mark.parametrize("day", ["2026-13-45 99:99:99", "not a time"])
def test_a_heading_without_a_valid_time_begins_no_chat(day: str) -> None:
    assert list(chats_of([f"# aider chat started at {day}", "#### Hi"])) == []
