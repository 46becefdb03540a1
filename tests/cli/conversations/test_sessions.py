"""Test past sessions in a terminal: list, show, search, tag, statistics, and export."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cli.output import display_width
from tests.cli.conftest import FIBONACCI, Ctxr, bare_ctxr

LONG = (
    "장바구니 가격 반올림이 왜 틀리는지 알려 주세요, how do prices get rounded when the basket is split in two orders"
)


def log(ctxr: Ctxr, channel: str, *texts: str, days_ago: float = 0, **meta: str) -> None:
    """Log a conversation of questions and answers whose first message is `days_ago` old."""
    start = datetime.now(UTC) - timedelta(days=days_ago, minutes=30)
    messages = [
        {"role": ("user", "assistant")[i % 2], "text": text, "timestamp": (start + timedelta(seconds=i)).isoformat()}
        for i, text in enumerate(texts)
    ]
    given = {"channel": channel, "messages": messages, "meta": {"source": "cursor", **meta}}
    assert ctxr("log", "-", given=given).exit_code == 0


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder for a copy of the registry of `three`, which the first test makes."""
    return tmp_path_factory.mktemp("kept") / "registry.db"


@pytest.fixture
def three(ctxr: Ctxr, empty_home: Path, kept: Path) -> Ctxr:
    """Return three sessions: `tokens` today, `basket` 3 days ago, `prices` 20 days ago."""
    registry = empty_home / "ctxr" / "registry.db"
    if kept.exists():
        shutil.copy(kept, registry)
    else:
        log_three(ctxr)
        shutil.copy(registry, kept)
    return ctxr


def log_three(ctxr: Ctxr) -> None:
    shop = "/home/ann/shop"
    log(
        ctxr,
        "prices",
        LONG,
        "By the cent.",
        days_ago=20,
        project=shop,
        session_id="5e550000-aaaa-bbbb-cccc-000000000001",
    )
    log(ctxr, "basket", "Where is the basket kept?", "In redis.", days_ago=3, project=shop, title="Basket")
    log(ctxr, "tokens", "How long do tokens live?", "A week.\n\n```python\nx = 1\n```", source="codex")


def as_json(ctxr: Ctxr, *words: str) -> Any:
    shown = ctxr(*words, "--json")
    assert shown.exit_code == 0, shown.stderr
    return json.loads(shown.stdout)


def listed(ctxr: Ctxr, *words: str) -> list[str]:
    return [session["channel"] for session in as_json(ctxr, *words)["sessions"]]


def test_sessions_are_listed_latest_first_with_their_places(three: Ctxr) -> None:
    lines = three("list").stdout.splitlines()
    assert [line.split()[0] for line in lines[::2]] == ["#1", "#2", "#3"]
    assert "How long do tokens live?" in lines[0]
    assert "Basket" in lines[2]
    assert "5e550000-aaaa-bbbb-cccc-000000000001  2 messages" in lines[5]


def test_a_list_fits_into_80_columns_and_stays_aligned_in_korean(three: Ctxr) -> None:
    lines = three("list").stdout.splitlines()
    assert max(map(display_width, lines)) <= 80
    assert {display_width(line[: line.index("shop")]) for line in lines[2::2]} == {64}
    assert "\x1b" not in "".join(lines)


def test_a_narrow_list_shows_titles_without_projects(three: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = three("list").stdout.splitlines()
    assert ("How long" in lines[0], "shop" in lines[2]) == (True, False)


def test_filters_narrow_a_list(three: Ctxr) -> None:
    cases: list[tuple[tuple[str, ...], list[str]]] = [
        ((), ["tokens", "basket", "prices"]),
        (("--limit", "1", "--offset", "1"), ["basket"]),
        (("--project", "shop"), ["basket", "prices"]),
        (("--project", "/home/ann/shop/"), ["basket", "prices"]),
        (("--source", "codex"), ["tokens"]),
        (("--tagged",), []),
        (("--since", (datetime.now(UTC) - timedelta(days=5)).date().isoformat()), ["tokens", "basket"]),
    ]
    for words, expected in cases:
        assert listed(three, "list", *words) == expected


def test_the_current_project_is_the_working_folder(
    three: Ctxr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    log(three, "mine", "hello", project=str(here))
    monkeypatch.chdir(here)
    assert listed(three, "list", "--project", "current") == listed(three, "list", "--project", ".") == ["mine"]


def test_a_filtered_list_has_the_places_among_all_sessions(three: Ctxr) -> None:
    [first, *rest] = as_json(three, "list")["sessions"]
    three("tag", "3", "kept")
    assert f"#{rest[-1]['index']}" in three("list", "--tag", "kept").stdout
    assert (first["index"], rest[-1]["index"]) == (1, 3)
    assert "#2" in three("list", "--offset", "1").stdout


def test_a_list_says_how_to_show_more(three: Ctxr) -> None:
    assert "2 of 3. For more: --offset 2" in three("list", "--limit", "2").stdout
    assert as_json(three, "list", "--limit", "2")["pagination"] == {
        "total": 3,
        "limit": 2,
        "offset": 0,
        "has_more": True,
    }


def test_an_empty_list_says_what_to_do(ctxr: Ctxr) -> None:
    shown = ctxr("list")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "ctxr sync" in shown.stderr


def test_an_empty_filtered_list_names_its_filters(three: Ctxr) -> None:
    assert three("list", "--offset", "9").stderr == "No sessions; --offset skips all 3.\n"
    assert three("list", "--tag", "nope").stderr == "No sessions; ctxr list shows all.\n"


def test_recent_sessions_are_those_of_the_last_days(three: Ctxr) -> None:
    for days, expected in [("1", 1), ("7", 2), ("30", 3)]:
        assert len(listed(three, "recent", "--days", days)) == expected


def test_a_session_is_found_by_place_id_or_prefix(three: Ctxr) -> None:
    for name in ["#3", "3", "prices", "5e550000"]:
        shown = three("show", name)
        assert shown.exit_code == 0
        assert "Messages: 2 / 2 (showing most recent)" in shown.stdout
        assert "[ASSISTANT] By the cent." in shown.stdout
        assert max(map(display_width, shown.stdout.splitlines())) <= 80


def test_code_in_a_session_is_shown_unchanged(three: Ctxr) -> None:
    assert "[ASSISTANT] A week.\n\n```python\nx = 1\n```\n" in three("show", "tokens").stdout


def test_a_session_stored_out_of_order_has_nothing_before_its_first_message(ctxr: Ctxr) -> None:
    log(ctxr, "late", "And then?", "Then we stopped.")
    log(ctxr, "late", "What came first?", days_ago=1)
    shown = ctxr("show", "late").stdout
    assert "Messages: 3 / 3" in shown
    assert "Earlier ones" not in shown
    assert "Earlier ones" in ctxr("show", "late", "--limit", "2").stdout


def test_a_long_session_is_shown_from_its_end_and_page_by_page(ctxr: Ctxr) -> None:
    log(ctxr, "long", *(f"message {i}" for i in range(1, 8)))
    last = ctxr("show", "long", "--limit", "3").stdout
    assert "Messages: 3 / 7" in last
    assert "message 4" not in last
    assert "Earlier ones: --before 5" in last
    assert "message 4" in ctxr("show", "long", "--limit", "3", "--before", "5").stdout
    assert "message 1" in ctxr("show", "long", "--all").stdout
    shown = as_json(ctxr, "show", "long", "--limit", "2")
    assert list(shown) == ["session", "messages"]
    assert [message["sequence"] for message in shown["messages"]] == [6, 7]


def test_tool_output_is_short_until_all_is_asked_for(ctxr: Ctxr) -> None:
    noise = [{"role": "tool", "text": "output " * 100}]
    ctxr("log", "-", given={"channel": "noisy", "messages": noise})
    assert len(ctxr("show", "noisy").stdout) < len(ctxr("show", "noisy", "--all").stdout)
    assert as_json(ctxr, "show", "noisy")["messages"][0]["text"] == noise[0]["text"]


def test_an_unknown_session_is_exit_status_3(three: Ctxr) -> None:
    cases: list[tuple[str, ...]] = [("show", "none"), ("show", "9"), ("tag", "none", "x"), ("export", "none")]
    for words in cases:
        failed = three(*words)
        assert (failed.exit_code, failed.stdout) == (3, "")
        assert failed.stderr.startswith("error: NOT_FOUND: ")


def test_tags_are_added_and_removed(three: Ctxr) -> None:
    assert three("tag", "basket", "shop", "설계").stdout == "basket: shop, 설계\n"
    assert three("tag", "basket", "redis", "shop").stdout == "basket: redis, shop, 설계\n"
    assert three("tag", "basket", "--remove", "shop", "none").stdout == "basket: redis, 설계\n"
    assert listed(three, "list", "--tag", "redis") == listed(three, "list", "--tagged") == ["basket"]
    assert "redis, 설계" in three("list").stdout


def test_a_nickname_belongs_to_one_session(three: Ctxr) -> None:
    assert three("nickname", "1", "auth-design").stdout == "tokens: auth-design\n"
    assert as_json(three, "show", "auth-design")["session"]["channel"] == "tokens"
    taken = three("nickname", "basket", "auth-design")
    assert taken.exit_code == 2
    assert "names channel 'tokens'" in taken.stderr


def test_an_undone_message_is_marked(ctxr: Ctxr) -> None:
    undone = {"role": "assistant", "text": "Rent is deducted at 17 %.", "superseded": True}
    said = [
        {"role": "user", "text": "How much rent is deducted?"},
        undone,
        {**undone, "text": "15 %.", "superseded": None},
    ]
    ctxr("log", "-", given={"channel": "rent", "messages": said})
    words = "how much rent is deducted?"
    for shown in (ctxr("show", "rent"), ctxr("extract", words), ctxr("search", words)):
        assert " ".join(shown.stdout.split()).count("undone or replaced in its client") == 1


def test_a_conversation_is_named_by_its_first_question_also_if_that_arrives_last(ctxr: Ctxr) -> None:
    for day, text in ((5, "How many replicas?"), (3, "Who owns the service?")):
        said = {"role": "user", "text": text, "timestamp": f"2026-01-0{day}T12:00:00Z"}
        ctxr("log", "-", given={"channel": "zoo", "messages": [said]})
    assert "Who owns the service?" in ctxr("list").stdout


def test_a_search_shows_sessions_with_their_matches(three: Ctxr) -> None:
    shown = three("search", "where", "is", "the", "basket").stdout
    assert shown.index("Basket") < shown.index("[USER] Where is the basket kept?")
    assert "**" not in shown
    assert max(map(display_width, shown.splitlines())) <= 80


def test_a_search_ignores_words_and_says_so_but_keeps_its_time(ctxr: Ctxr) -> None:
    said = [{"role": "user", "text": "How do I set a quokka?", "timestamp": "2026-01-05T12:00:00Z"}]
    ctxr("log", "-", given={"channel": "quokkas", "messages": said})
    nothing = ctxr("search", "quokka", "어제")
    assert (nothing.exit_code, nothing.stdout) == (3, "")
    assert "nothing from 어제" in nothing.stderr
    ctxr("log", "-", given={"channel": "now", "messages": [{"role": "user", "text": "Feed the wombat"}]})
    lines = ctxr("search", "quokka", "오늘").stdout.splitlines()
    assert lines[0].startswith("No match for these words in that time")
    assert any("wombat" in line for line in lines)
    assert not any("quokka" in line for line in lines)


def test_a_project_without_sessions_says_where_there_are_some(three: Ctxr) -> None:
    for command in (["list"], ["search", "redis"]):
        assert "elsewhere: " in three(*command, "--project", "/nowhere/else").stderr


def test_sessions_and_messages_are_found_in_another_wording(three: Ctxr) -> None:
    assert three("search", "mandje").exit_code == 3
    assert "Basket" in three("search", "mandje", "--also", "basket").stdout
    assert "In redis." in three("extract", "mandje", "--also", "where is the basket kept").stdout


def test_sessions_are_listed_by_a_time_in_words(three: Ctxr) -> None:
    assert listed(three, "list", "--since", "yesterday") == ["tokens"]
    assert (
        listed(three, "list", "--since", "7d") == listed(three, "list", "--since", "최근 7일") == ["tokens", "basket"]
    )


def test_every_found_session_is_named_in_a_small_budget(three: Ctxr) -> None:
    shown = three("search", "basket", "tokens", "--max-tokens", "1")
    assert shown.exit_code == 0
    assert "basket" in shown.stdout
    assert "tokens" in shown.stdout


def test_a_search_in_json_is_the_tools_result(three: Ctxr) -> None:
    found = as_json(three, "search", "redis")
    assert [session["channel"] for session in found["sessions"]] == ["basket"]
    assert found["sessions"][0]["matches"][0]["snippet"] == "In **redis**."
    assert (found["project"], found["pagination"]["total"]) == ("all", 1)


def test_a_search_that_finds_nothing_is_exit_status_3(three: Ctxr) -> None:
    failed = three("search", "kubernetes")
    assert (failed.exit_code, failed.stdout) == (3, "")
    assert failed.stderr.startswith("error: NOT_FOUND: ")
    scripted = three("search", "kubernetes", "--json")
    assert (scripted.exit_code, json.loads(scripted.stdout)["sessions"]) == (3, [])


def test_a_session_is_exported(three: Ctxr, tmp_path: Path) -> None:
    for to, holds in (("markdown", "# Basket"), ("json", '"title": "Basket"'), ("html", "<h1>Basket")):
        printed = three("export", "basket", "--format", to).stdout
        assert holds in printed
        file = tmp_path / to
        assert three("export", "basket", "--format", to, "--output", str(file)).stdout == f"{file}\n"
        assert file.read_text(encoding="utf-8") == printed


def test_an_export_overwrites_nothing_and_needs_a_folder(three: Ctxr, tmp_path: Path) -> None:
    file = tmp_path / "mine.md"
    file.write_text("mine", encoding="utf-8")
    assert three("export", "basket", "--output", str(file)).exit_code == 2
    assert file.read_text(encoding="utf-8") == "mine"
    assert three("export", "basket", "--output", str(tmp_path / "no" / "x.md")).exit_code == 2
    refused = three("export", "basket", "--format", "pdf")
    assert refused.exit_code == 2
    assert "A PDF needs --output FILE" in refused.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_export_that_does_not_fit_on_the_disk_leaves_no_part_and_succeeds_when_there_is_room(
    three: Ctxr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, opened = tmp_path / "basket.md", Path.open

    def open_full(path: Path, mode: str = "r", *more: Any, **also: Any) -> Any:
        if path != file:
            return opened(path, mode, *more, **also)
        path.touch(exist_ok=False)
        return opened(Path("/dev/full"), "wb")

    with monkeypatch.context() as full:
        full.setattr(Path, "open", open_full)
        refused = three("export", "basket", "--output", str(file))
    assert (refused.exit_code, "No space left on device" in refused.stderr) == (1, True)
    assert three("export", "basket", "--output", str(file)).exit_code == 0


def test_statistics_of_the_registry_are_shown(three: Ctxr) -> None:
    figures = as_json(three, "stats")
    assert (figures["channels"], figures["messages"]) == (3, 6)
    assert figures["sources"] == [
        {"source": "cursor", "channels": 2, "messages": 4},
        {"source": "codex", "channels": 1, "messages": 2},
    ]
    assert [row["project"] for row in figures["projects"]] == ["shop", "General"]
    assert len(figures["days"]) == 30
    assert sum(day["messages"] for day in figures["days"]) == 6
    shown = three("stats").stdout
    assert shown.startswith("3 channels, 6 messages\n")
    assert max(map(display_width, shown.splitlines())) == 80


def test_an_empty_registry_has_statistics(ctxr: Ctxr) -> None:
    assert ctxr("stats").stdout.startswith("0 channels, 0 messages\n")


def test_a_match_has_the_number_by_which_it_can_be_shown(ctxr: Ctxr) -> None:
    for number in range(3):
        said = [{"role": "user", "text": f"Where is basket {number}?", "timestamp": f"2026-01-0{number + 1}T10:00:00Z"}]
        ctxr("log", "-", given={"channel": f"talk_{number}", "messages": said})
    assert ctxr("search", '"basket 1"').output.startswith("Confidence: high\n\n#2 ")
    assert "Where is basket 1?" in ctxr("show", "2").output


def test_colours_follow_the_users_settings(ctxr: Ctxr, monkeypatch: pytest.MonkeyPatch) -> None:
    ctxr("log", "-", given=FIBONACCI)
    assert "\x1b[" in ctxr("--color", "always", "list").output
    assert "\x1b[" not in bare_ctxr("--color", "never", "list", color=True).output
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in bare_ctxr("list", color=True).output


def test_a_shared_session_is_marked(ctxr: Ctxr) -> None:
    assert ctxr("log", "-", given={"channel": "c", "messages": [{"role": "user", "text": "hello"}]}).exit_code == 0
    assert "Sharing:" not in ctxr("show", "c").stdout
    shared = ctxr("share", "c", "--with", "team", "--until", "2101-01-01")
    assert shared.stdout.startswith("c: shared with the team until 2101-01-01")
    assert "Sharing:  shared with the team until 2101-01-01" in ctxr("show", "c").stdout
    assert ctxr("share", "1", "--with", "nobody").stdout == "c: not shared\n"
    assert ctxr("share", "c", "--with", "project").exit_code == 2
