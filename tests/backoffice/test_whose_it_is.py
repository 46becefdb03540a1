"""Test that imports belong to their person, and that a change never applies to another chat of the same name."""

from __future__ import annotations

import json
import re
from io import BytesIO
from zipfile import ZipFile

import anyio
import pytest

from registry.access import Level
from tests.backoffice.conftest import Hire, problem_of

pytestmark = [pytest.mark.anyio, pytest.mark.both_databases]


async def test_an_edit_of_a_shared_chat_does_not_change_ones_own(hire: Hire) -> None:
    kim, lee = await hire("kim"), await hire("lee")
    await lee.log("basket-two", "mine")
    await lee.log("plans-two", "mine, too")
    await kim.log("basket", "the session expires")
    await kim.run("tag", "basket", nickname="plans")
    await kim.run("share", "basket", **{"with": "team"})
    for meant in ("basket", "plans", "#1"):
        for answer in (
            await lee.run("tag", meant, title="hers"),
            await lee.run("share", meant, **{"with": "team"}),
            await lee.run("delete", meant, soft=False, owner="lee"),
        ):
            assert answer.status_code in (401, 404), answer.text
    own = [one for one in (await lee.ask("GET", "/bo/channels")).json()["items"] if one["owner"] == "lee"]
    assert [(one["title"], one.get("shared_with")) for one in own] == [(None, None)] * 2


async def test_an_uploaded_export_belongs_to_its_uploader(hire: Hire) -> None:
    boss, kim = await hire("boss", Level.ADMIN), await hire("kim")
    said = {"uuid": "a", "sender": "human", "text": "my salary", "created_at": "2026-03-02T10:00:00Z"}
    chat = {"uuid": "b", "name": "Pay", "created_at": said["created_at"], "updated_at": said["created_at"]}
    export = BytesIO()
    with ZipFile(export, "w") as file:
        file.writestr("conversations.json", json.dumps([{**chat, "chat_messages": [said]}]))
    sent = await boss.ask("POST", "/settings/imports", files={"file": ("data.zip", export.getvalue())})
    if "location" not in sent.headers:  # a registry on PostgreSQL takes no file
        assert "ctxr import FILE" in problem_of(sent)["details"]
        return
    with anyio.fail_after(20):
        while not await boss.sees():  # noqa: ASYNC110
            await anyio.sleep(0.05)
    assert await kim.sees() == []


async def test_a_person_without_access_to_the_machine_is_told_what_to_run(hire: Hire) -> None:
    page = (await (await hire("kim")).ask("GET", "/")).text
    assert ("ctxr sync" in page, "ctxr install" in page, 'href="/settings"' in page.split("<main")[1]) == (
        True,
        True,
        False,
    )


async def test_no_link_on_the_settings_page_of_a_person_is_refused(hire: Hire) -> None:
    kim, seen = await hire("kim"), set[str]()
    to_see = {"/"}
    while to_see - seen:
        seen.add(place := min(to_see - seen))
        page = await kim.ask("GET", place)
        assert page.status_code == 200, place
        to_see |= set(re.findall(r'href="(/settings[\w/]*)"', page.text))
    assert {"/settings/access", "/settings/trash", "/settings/forget"} <= seen
