"""Test owners in a shared registry: chats are private until they are shared."""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import anyio
import httpx
import pytest

from orchestrator.service import Orchestrator
from registry.access import Access, Level
from registry.registry import Registry
from tests.backoffice.conftest import Hire, Log, Person, problem_of
from tests.orchestrator.test_secrets import rows_of

pytestmark = pytest.mark.anyio


async def test_a_chat_is_seen_by_its_owner_an_admin_and_this_machine(
    http: httpx.AsyncClient, hire: Hire, orchestrator: Orchestrator
) -> None:
    kim, lee, boss = await hire("kim"), await hire("lee"), await hire("boss", Level.ADMIN)
    await kim.log("kims", "the harbour report")
    await lee.log("lees", "the harbour report")
    assert (await kim.sees(), await lee.sees(), await boss.sees()) == (["kims"], ["lees"], ["kims", "lees"])
    found = (await lee.ask("GET", "/bo/search?q=harbour")).json()
    assert ([one["channel"] for one in found["items"]], found["total"]) == (["lees"], 1)
    everything = await orchestrator.run({"operation": "list", "query": {}})
    assert everything["pagination"]["total"] == 2


async def test_chats_stored_without_a_token_are_seen_by_all(hire: Hire, log: Log) -> None:
    await log("ours", "hello")
    kim = await hire("kim")
    assert await kim.sees() == ["ours"]
    await kim.log("ours", "more")
    assert await (await hire("lee")).sees() == ["ours"]


async def test_all_tokens_of_a_person_see_the_persons_chats(hire: Hire) -> None:
    laptop, phone = await hire("kim"), await hire("kim-phone", Level.READ, owner="kim")
    await laptop.log("kims", "hello")
    assert await phone.sees() == ["kims"]


@pytest.mark.both_databases
async def test_chats_of_two_people_never_meet_in_one_channel(hire: Hire) -> None:
    kim, lee, boss = await hire("kim"), await hire("lee"), await hire("boss", Level.ADMIN)
    said = ["how do we deploy the shop?", "and roll it back?", "and who is on call?"]
    for person in (kim, lee, boss):
        for _ in range(2):  # sent again, it is recognised in its own channel
            logged = await person.log("design", *said, session_id="s-1", project="/srv/shop")
        assert logged["duplicate_count"] == 3
    names = await boss.sees()
    assert [name.startswith("design") for name in names] == [True, True, True]
    assert [len(await person.sees()) for person in (kim, lee)] == [1, 1]
    assert [(await lee.log("design", "new"))["channel"]] == await lee.sees() != ["design"]


@pytest.mark.both_databases
async def test_people_who_begin_a_chat_of_one_name_on_two_servers_at_once_never_meet(database_url: str) -> None:
    people = [Access(name, Level.WRITE, owner=name) for name in ("kim", "lee", "ann", "bob")]
    servers = [Orchestrator(Registry(database_url)) for _ in people]
    channels = set()

    async def begin(server: Orchestrator, person: Access, topic: str) -> None:
        said = [{"role": "user", "text": f"what is new in the {topic}?"}]
        given = {"operation": "conversation_log", "channel": topic, "messages": said, "source": person.name}
        answer = await server.run(given, access=person)
        assert answer["success"], answer["error"]
        channels.add(answer["channel"])

    for topic in ("standup", "review", "retro", "plan", "budget"):
        async with anyio.create_task_group() as tasks:
            for server, person in zip(servers, people, strict=True):
                tasks.start_soon(begin, server, person, topic)
    for server, person in zip(servers, people, strict=True):
        listed = await server.run({"operation": "list", "query": {}}, access=person)
        assert listed["pagination"]["total"] == 5
        server.registry.close()
    assert len(channels) == 5 * len(people)


async def test_a_remembered_sentence_holds_for_its_person(hire: Hire) -> None:
    people = {name: await hire(name, level) for name, level in (("kim", Level.WRITE), ("boss", Level.ADMIN))}
    for name, person in people.items():
        asked = {"operation": "remember", "query": {"text": f"{name} likes tabs"}}
        for given in (asked, {"operation": "remember", "query": {}}):
            answer = (await person.ask("POST", "/bo/ao/run", json=given)).json()
            assert [one["text"] for one in answer["remembered"]] == [f"{name} likes tabs"]


async def test_another_persons_chat_is_not_found_and_not_changed(hire: Hire) -> None:
    kim, lee = await hire("kim"), await hire("lee")
    logged = await kim.log("kims", "hello")
    [said] = logged["stored_ids"]
    for answer in (
        await lee.ask("PATCH", "/bo/channels/kims", json={"title": "mine"}),
        await lee.ask("DELETE", "/bo/channels/kims"),
        await lee.ask("DELETE", f"/bo/conversations/{said}"),
        await lee.ask("GET", f"/bo/conversations/{said}"),
        await lee.ask("GET", "/bo/channels/kims"),
        await lee.run("extract", "kims"),
    ):
        assert problem_of(answer, 404)["code"] == "NOT_FOUND"
    kept = (await kim.ask("GET", "/bo/channels/kims")).json()
    assert (kept["title"], kept["message_count"]) == (None, 1)


async def test_settings_and_metrics_are_open_only_to_an_admin(hire: Hire) -> None:
    kim, watcher = await hire("kim"), await hire("prometheus", Level.METRICS)
    for path in ("/settings", "/metrics"):
        assert problem_of(await kim.ask("GET", path), 401)["message"] == "This token may not see that."
    assert (await watcher.ask("GET", "/metrics")).status_code == 200
    access = (await kim.ask("GET", "/settings/access")).text
    assert "kim</th>" in access
    assert "prometheus</th>" not in access


@pytest.mark.both_databases
async def test_a_chat_that_is_shared_is_read_by_others_and_changed_only_by_its_owner(hire: Hire) -> None:
    kim, lee = await hire("kim"), await hire("lee")
    await kim.log("kims", "the harbour report")
    shared = (await kim.run("share", "kims", **{"with": "team"})).json()
    assert (shared["channel"]["owner"], shared["channel"]["shared_with"]) == ("kim", "team")
    extracted = (await lee.run("extract", "kims")).json()
    assert [one["text"] for one in extracted["messages"]] == ["the harbour report"]
    for answer in (
        await lee.ask("PATCH", "/bo/channels/kims", json={"title": "mine"}),
        await lee.ask("DELETE", "/bo/channels/kims"),
        await lee.run("share", "kims", **{"with": "nobody"}),
    ):
        assert problem_of(answer, 401)["message"] == "This token may not touch that channel."
    assert (await lee.log("kims", "lee was here"))["channel"] != "kims"
    assert (await kim.ask("GET", "/bo/channels/kims")).json()["message_count"] == 1
    await kim.run("share", "kims", **{"with": "nobody"})
    assert "kims" not in await lee.sees()
    assert problem_of(await lee.run("extract", "kims"), 404)


@pytest.mark.both_databases
async def test_a_chat_that_is_shared_with_a_project_is_read_by_tokens_for_it(hire: Hire) -> None:
    kim = await hire("kim")
    await kim.log("kims", "hello", project="/srv/shop/web")
    await kim.log("elsewhere", "hello")
    await kim.run("share", "kims", **{"with": "project"})
    people = {
        "its": await hire("lee", projects=["/srv/shop/web"]),
        "its name": await hire("pat", projects=["web"]),
        "above": await hire("ola", projects=["/srv/shop/*"]),
        "another": await hire("rob", projects=["/srv/shop"]),
        "none": await hire("sam"),
    }
    seen = {who: await person.sees() for who, person in people.items()}
    assert seen == {"its": ["kims"], "its name": ["kims"], "above": ["kims"], "another": [], "none": []}
    refused = problem_of(await kim.run("share", "elsewhere", **{"with": "project"}))
    assert refused["message"] == "The conversation belongs to no project."


async def test_sharing_ends_at_its_time(hire: Hire) -> None:
    kim, lee = await hire("kim"), await hire("lee")
    await kim.log("kims", "hello")
    shared = (await kim.run("share", "kims", **{"with": "team", "until": "2101-01-01"})).json()["channel"]
    assert shared["shared_until"] == "2101-01-01T23:59:59.999Z"
    assert await lee.sees() == ["kims"]
    until = {"with": "team", "until": "2025-01-01T00:00:00Z"}
    said = {"field": "shared", "value": until, "done_at": "2100-01-01T00:00:00Z", "names": ["kims"]}
    edited = await kim.ask("POST", "/bo/edits", json={"items": [said]})
    assert edited.json() == {"items": [{"why": None}]}
    assert await lee.sees() == []
    assert "shared_with" not in (await kim.ask("GET", "/bo/channels/kims")).json()
    assert problem_of(await kim.run("share", "kims", **until))["message"] == "That time is in the past."
    problem_of(await kim.run("share", "kims", **{"with": "nobody", "until": "2101-01-01"}))


async def test_sharing_is_a_run_and_is_shown_on_the_page(hire: Hire) -> None:
    kim, lee = await hire("kim"), await hire("lee")
    await kim.log("kims", "hello")
    form = {"channel": "kims", "with": "team", "until": "2101-01-01"}
    assert (await kim.ask("POST", "/sharings", data=form)).status_code == 303
    page = (await kim.ask("GET", "/channels/kims")).text
    assert "shared with the team" in page
    assert 'value="team" aria-pressed="true"' in page
    assert '<span class="role">You</span>' in page
    page = (await lee.ask("GET", "/channels/kims")).text
    assert '<span class="role">kim</span>' in page
    assert "/sharings" not in page
    await kim.ask("POST", "/sharings", data={"channel": "kims", "with": "nobody"})
    assert "private" in (await kim.ask("GET", "/channels/kims")).text
    runs = (await kim.ask("GET", "/bo/ao/executions?operation=share")).json()["items"]
    assert [(one["channel"], one["token"]) for one in runs] == [("kims", "kim")] * 2


async def test_an_owner_sees_who_else_read_a_chat(hire: Hire) -> None:
    kim, lee, boss = await hire("kim"), await hire("lee"), await hire("boss", Level.ADMIN)
    phone = await hire("kim-phone", Level.READ, owner="kim")
    [said] = (await kim.log("kims", "the harbour report"))["stored_ids"]
    await boss.log("its own", "the harbour report")
    ways = {
        "page": ("GET", "/channels/kims"),
        "message": ("GET", f"/bo/conversations/{said}"),
        "export": ("GET", "/exports/kims"),
        "messages": ("GET", "/bo/conversations"),
        "search": ("GET", "/bo/search?q=harbour"),
        "sessions": ("GET", "/bo/channels?q=harbour"),
    }
    read = 0
    for way, (method, path) in ways.items():
        assert (await boss.ask(method, path)).is_success
        runs = (await boss.ask("GET", "/bo/ao/executions?channel=kims&operation=fetch")).json()["items"]
        assert (way, len(runs), runs[0]["token"]) == (way, read + 1, "boss")
        read += 1
    limited = await hire("auditor", Level.ADMIN, channels=["kim*"])
    await limited.ask("GET", "/channels/kims")
    assert (await boss.run("extract", "kims")).is_success
    await phone.ask("GET", "/channels/kims")
    margin = (await kim.ask("GET", "/margin/kims")).text
    assert margin.count("boss · fetch") == read
    assert margin.count("boss · extract") == margin.count("auditor · fetch") == 1
    assert "kim ·" not in margin
    assert "kim-phone" not in margin
    await kim.run("share", "kims", **{"with": "team"})
    assert "boss ·" not in (await lee.ask("GET", "/margin/kims")).text


async def test_only_an_admin_empties_the_trash(hire: Hire) -> None:
    kim, lee = await hire("kim"), await hire("lee")
    await lee.log("lees", "hello")
    await lee.ask("POST", "/deletions", data={"channel": "lees"})
    for named in ({}, {"channel": "lees"}, {"channel": "nobodys"}):
        assert (await kim.ask("POST", "/removals", data=named)).status_code == 401
    assert "lees" in (await lee.ask("GET", "/settings/trash")).text


async def erase(person: Person, **named: Any) -> httpx.Response:
    query = {"soft": False, **{name: value for name, value in named.items() if name != "channel"}}
    return await person.ask(
        "POST", "/bo/ao/run", json={"operation": "delete", "channel": named.get("channel"), "query": query}
    )


async def test_a_person_erases_own_chats_with_everything_derived_from_them(
    hire: Hire, orchestrator: Orchestrator
) -> None:
    kim, lee, boss = await hire("kim"), await hire("lee"), await hire("boss", Level.ADMIN)
    await kim.log("kims", "the quokkalike report", project="/srv/shop")
    await kim.log("more", "more of the quokkalike")
    await lee.log("lees", "the wombat report")
    await boss.run("extract", "kims", text="quokkalike report")
    briefing = {"operation": "daily_briefing", "query": {"date": "today"}}
    assert "quokkalike" in (await boss.ask("POST", "/bo/ao/run", json=briefing)).text
    await boss.ask("POST", "/views", data={"name": "report", "address": "/?q=report"})
    would = (await erase(kim, owner="kim", dry_run=True)).json()["receipt"]
    assert (would["channels"], would["messages"], would["is_dry_run"]) == (2, 2, True)
    assert await kim.sees() == ["kims", "more"]
    done = (await erase(kim, owner="kim")).json()["receipt"]
    assert (done["channels"], done["messages"], done["id"][:4]) == (2, 2, "fgt_")
    assert done["results"] >= 2  # what the admin's extract and the briefing delivered
    assert done["views"] == 0
    assert (await kim.sees(), await boss.sees()) == ([], ["lees"])
    assert "quokkalike" not in "\n".join(rows_of(orchestrator.registry))
    audited = (await boss.ask("GET", "/bo/ao/executions?operation=delete")).json()["items"]
    assert [one["token"] for one in audited] == ["kim", "kim"]
    again = problem_of(await erase(kim, owner="kim"), 404)
    assert again["message"] == "Nothing to forget."


async def test_a_chat_that_one_person_erases_stays_another_persons(hire: Hire) -> None:
    kim, lee = await hire("kim"), await hire("lee")
    await kim.log("basket", "why does it lose items?", "the session expires")
    await lee.log("basket", "why does it lose items?", "the session expires")
    [own] = await lee.sees()
    assert (await erase(kim, owner="kim")).json()["receipt"]["messages"] == 2
    more = await lee.log("basket", "why does it lose items?", "the session expires", "and now?")
    assert (more["channel"], more["new_count"], more["duplicate_count"]) == (own, 1, 2)
    assert await lee.sees() == [own]


async def test_a_record_of_one_of_many_erased_messages_loses_its_words(hire: Hire, orchestrator: Orchestrator) -> None:
    kim, lee, boss = await hire("kim"), await hire("lee"), await hire("boss", Level.ADMIN)
    await kim.log("kims", *(f"report {number} of the harbour" for number in range(201)))
    await lee.log("lees", "the wombat report")
    for words in ("report+harbour", "wombat"):
        assert (await boss.ask("GET", f"/bo/search?q={words}")).json()["items"]
    assert (await erase(kim, owner="kim")).json()["receipt"]["messages"] == 201
    runs = (await boss.ask("GET", "/bo/ao/executions?operation=search")).json()["items"]
    assert [one["asked"] for one in runs] == ["wombat", None]
    assert "harbour" not in "\n".join(rows_of(orchestrator.registry))


@pytest.mark.both_databases
async def test_a_person_erases_nothing_that_is_only_shared_or_has_no_owner(hire: Hire, log: Log) -> None:
    await log("ours", "hello")
    kim, lee = await hire("kim"), await hire("lee")
    await kim.log("kims", "hello")
    [said] = (await lee.log("lees", "hello"))["stored_ids"]
    await lee.run("share", "lees", **{"with": "team"})
    assert await kim.sees() == ["kims", "lees", "ours"]
    for named in ({"channel": "lees"}, {"channel": "ours"}, {"id": said}, {"project": "/srv/none"}):
        problem_of(await erase(kim, owner="kim", **named), 404)
    assert "lees" not in problem_of(await erase(kim, owner="kim", channel="lee"), 404)["details"]
    assert (await erase(kim, owner="kim")).json()["receipt"]["channels"] == 1
    assert await lee.sees() == ["lees", "ours"]


async def test_only_an_admin_erases_chats_of_another_person(hire: Hire) -> None:
    kim, lee, boss = await hire("kim"), await hire("lee"), await hire("boss", Level.ADMIN)
    phone = await hire("kim-phone", Level.READ, owner="kim")
    limited = await hire("kim-shop", owner="kim", projects=["/srv/shop"])
    await kim.log("kims", "hello")
    await lee.log("lees", "hello")
    for person, named in (
        (lee, {"owner": "kim"}),
        (lee, {"owner": "kim", "channel": "kims"}),
        (phone, {"owner": "kim"}),
        (limited, {"owner": "kim"}),
        (kim, {"channel": "kims"}),
        (kim, {"before": "2100-01-01"}),
    ):
        problem_of(await erase(person, **named), 401)
    problem_of(await erase(kim, owner="kim", matching="hello"), 400)
    assert await boss.sees() == ["kims", "lees"]
    assert (await erase(boss, owner="kim")).json()["receipt"]["channels"] == 1
    assert await boss.sees() == ["lees"]


async def test_erasing_a_chat_with_a_common_name_changes_no_records_of_others(hire: Hire) -> None:
    kim, lee = await hire("kim"), await hire("lee")
    await kim.log("e", "hello")
    await lee.log("lees", "the wombat report")
    await lee.run("extract", "lees", text="wombat report")
    assert (await erase(kim, owner="kim")).json()["receipt"]["channels"] == 1
    [run] = (await lee.ask("GET", "/bo/ao/executions?operation=extract")).json()["items"]
    assert (run["channel"], run["asked"]) == ("lees", "wombat report")


async def test_the_page_lets_a_person_erase_own_chats(hire: Hire) -> None:
    kim, lee = await hire("kim"), await hire("lee")
    await kim.log("kims", "hello")
    await lee.log("lees", "hello")
    assert "To be deleted forever" in (await kim.ask("GET", "/settings/forget?owner=kim")).text
    assert "To be deleted forever" not in (await kim.ask("GET", "/settings/forget?owner=lee")).text
    assert "Deleted forever" in (await kim.ask("POST", "/settings/forget", data={"owner": "kim"})).text
    assert (await kim.sees(), await lee.sees()) == ([], ["lees"])


@pytest.mark.both_databases
async def test_a_person_gets_exactly_own_chats_in_a_zip(hire: Hire, log: Log) -> None:
    await log("ours", "the wombat report")
    kim, lee, boss = await hire("kim"), await hire("lee"), await hire("boss", Level.ADMIN)
    phone = await hire("kim-phone", Level.READ, owner="kim")
    await kim.log("kims", "the harbour report", project="/srv/shop")
    await kim.log("deleted", "hello")
    await kim.ask("DELETE", "/bo/channels/deleted")
    await lee.log("lees", "the wombat report")
    await lee.run("share", "lees", **{"with": "team"})
    for person in (kim, phone, boss):
        answer = await person.ask("GET", "/bo/export?owner=kim")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
        file = ZipFile(BytesIO(answer.content))
        documents = [json.loads(file.read(name)) for name in file.namelist() if name.startswith("conversations/")]
        assert [(one["session"]["channel"], len(one["messages"])) for one in documents] == [("kims", 1)]
        assert "wombat" not in "".join(file.read(name).decode() for name in file.namelist())
    limited = await hire("kim-shop", owner="kim", projects=["/srv/shop"])
    for person, owner in ((lee, "kim"), (limited, "kim"), (kim, "lee")):
        problem_of(await person.ask("GET", f"/bo/export?owner={owner}"), 401)
    problem_of(await boss.ask("GET", "/bo/export?owner=pat"), 404)
    problem_of(await boss.ask("GET", "/bo/export"))
    margin = (await kim.ask("GET", "/margin/kims")).text
    assert margin.count("boss · fetch") == 1
    assert "kim-phone" not in margin


async def test_an_admin_sees_everybody_and_revokes_a_token_on_the_page(hire: Hire, orchestrator: Orchestrator) -> None:
    kim, lee, boss = await hire("kim"), await hire("lee"), await hire("boss", Level.ADMIN)
    await kim.log("kims", "the harbour report", "is done")
    await kim.ask("POST", "/login", data={"token": kim.headers["authorization"].removeprefix("Bearer ")})
    rows = [[row[0], row[1], row[2], row[4], row[5]] for row in await _people(boss)]
    assert rows == [["kim", "1", "2", "1", "1"], ["boss", "0", "0", "1", "0"], ["lee", "0", "0", "1", "0"]]
    assert [row[0] for row in await _people(lee)] == ["lee"]
    assert "/bo/export?owner=lee" in (await lee.ask("GET", "/settings/access")).text
    ending = {"data": {"name": "kim"}}
    assert (await lee.ask("POST", "/settings/revocations", **ending)).status_code == 401
    assert (await kim.ask("GET", "/bo/channels")).status_code == 200
    assert (await boss.ask("POST", "/settings/revocations", **ending)).status_code == 303
    assert (await kim.ask("GET", "/bo/channels")).status_code == 401
    await orchestrator.settle()
    acts = (await boss.ask("GET", "/bo/ao/executions?operation=revoke_token&status=succeeded")).json()["items"]
    assert [act["token"] for act in acts] == ["boss"]


async def _people(person: Person) -> list[list[str]]:
    page = (await person.ask("GET", "/settings/access")).text
    table = re.findall(r"<tr data-row>(.*?)</tr>", page.partition('id="tokens"')[0], re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>([^<]*)", row) for row in table]


async def test_words_that_a_person_erased_are_refused_for_that_person_and_the_channel_name_stays_free(
    hire: Hire, orchestrator: Orchestrator
) -> None:
    kim, lee, boss = await hire("kim"), await hire("lee"), await hire("boss", Level.ADMIN)
    asked = ["how do we deploy the shop to production?", "how do we roll the deployment back again?"]
    await kim.log("notes", asked[0])
    await kim.log("general", asked[1])
    together = ["why does the parser drop the last line of a file?", "where is the parser's buffer flushed to disk?"]
    await kim.log("parser", *together)
    await erase(kim, owner="kim")
    assert (await kim.log("parser again", *together))["not_kept"]
    for _ in range(2):  # stored under a name of its own if the name is another person's
        again = await kim.log("general", "hello again")
        assert again["not_kept"] == "This conversation is not stored: it was forgotten."
        kept = await lee.log("general", *asked)  # erased from two of kim's conversations, kept in others
        assert (kept["channel"], len(kept["stored_ids"])) == ("general", 2)
        kept = await lee.log("tuesday", *together)
        assert (kept["channel"], len(kept["stored_ids"])) == ("tuesday", 2)
    said = {"operation": "conversation_log", "channel": "notes", "messages": [{"role": "user", "text": "hi"}]}
    assert (await orchestrator.run(said))["not_kept"]  # as when kim's own zip is imported in the server's terminal
    assert await boss.sees() == ["general", "tuesday"]
    await kim.log("ours", "where do the herons sleep?")
    await lee.log("ours", "where do the otters sleep?")
    await erase(lee, owner="lee")
    await erase(kim, owner="kim")
    assert (await lee.log("ours", "and in winter?"))["not_kept"]  # the name was kim's, so it had another one
