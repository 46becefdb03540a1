"""/settings: clients and sources of this machine, backups, the trash, forgetting, access."""

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request, UploadFile
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from markupsafe import Markup
from pydantic import BaseModel, Field

from backoffice.connections import Connection, ConnectionPart
from backoffice.dependencies import CopyOf, CurrentClient, HttpClient, Local, without_parameters
from backoffice.pages.rendering import address, render, see_other
from backoffice.pages.viewer.channels import ROWS, given_query
from backoffice.pages.viewer.markdown import code_html
from backoffice.queries import PageQuery
from orchestrator.views import conversations
from orchestrator.views.tokens import list_people, list_tokens
from registry.errors import ErrorCode, NotFound
from sources.clients import CHATGPT, CLAUDE, CLIENTS, GEMINI
from sources.purging import LONG_ENOUGH_DAYS

router = APIRouter(default_response_class=HTMLResponse)


@router.get("/settings", dependencies=[without_parameters])
async def sources_page(request: Request, machine: Local, elsewhere: CopyOf) -> HTMLResponse:
    """Show the stores with their last sync, and the clients with their installed parts and the install command."""
    state = await machine.describe()
    clients: Sequence[Connection] = state.pop("clients")
    return render(
        request,
        "flow/sources.html",
        clients=[(client, *_parts_of(client)) for client in clients if client.is_here],
        absent=[client.client for client in clients if not client.is_here],
        elsewhere=elsewhere,
        most=20,
        names={client.source: client.name for client in CLIENTS},
        long=LONG_ENOUGH_DAYS,
        imported=(CLAUDE.source, CHATGPT.source, GEMINI.source),
        **state,
    )


def _parts_of(client: Connection) -> tuple[dict[str, list[ConnectionPart]], bool]:
    """Return a client's parts by kind, and whether it is connected; a rule may be in several projects."""
    by_kind = groupby(client.parts, key=lambda part: part.what)
    needed = [part.state for part in client.parts if part.what != "rule"]
    return {what: list(parts) for what, parts in by_kind}, all(one in ("installed", "untrusted") for one in needed)


@router.post("/settings/clients/{name}", response_model=None)
async def connect_client(
    request: Request, machine: Local, name: str, connects: Annotated[bool, Form()], shown: Annotated[str, Form()] = ""
) -> Response:
    """Show the changes that connect or disconnect a client; write them if these are the ones that were shown."""
    plan = await machine.plan(name, connects=connects)
    digest = sha256(plan.diff.encode()).hexdigest()
    if plan.diff and shown != digest:
        diff = Markup(code_html(plan.diff, "diff"))  # noqa: S704, sanitised by `markdown`
        return render(request, "flow/connect.html", plan=plan, diff=diff, digest=digest, name=name, connects=connects)
    if plan.diff:
        await asyncio.to_thread(plan.write)
    return see_other("/settings")


@router.get("/settings/clients/{name}")
async def leave_plan() -> RedirectResponse:
    """Redirect to the clients: the changes are shown in answer to a form, so reloading their address finds no page."""
    return see_other("/settings")


@router.post("/settings/sync")
async def start_sync(machine: Local) -> RedirectResponse:
    machine.start_sync()
    return see_other("/settings")


@router.post("/settings/imports")
async def import_export(machine: Local, client: CurrentClient, file: UploadFile) -> RedirectResponse:
    """Import the export of an account; the page shows how it goes."""
    machine.start_import(file.filename or "", file.file, client.access)
    return see_other("/settings#stores")


@router.get("/settings/backups", dependencies=[without_parameters])
async def backups_page(request: Request, client: CurrentClient, _here: Local) -> HTMLResponse:
    return render(request, "flow/backups.html", backups=await _backups(client))


async def _backups(client: HttpClient) -> dict[str, dict[str, Any]]:
    """Return the backups by the names of their files."""
    answer = await client.ask("list_backups", {}, is_recorded=False)
    return {PurePath(one["path"]).name: one for one in answer.get("backups", [])}


@router.post("/settings/backups")
async def make_backup(client: CurrentClient, _here: Local) -> RedirectResponse:
    await client.run("create_backup", {})
    return see_other("/settings/backups")


@router.get("/settings/backups/{name}")
async def download_backup(client: CurrentClient, _here: Local, name: str) -> FileResponse:
    backups = await _backups(client)
    if name not in backups:
        raise NotFound("No such backup", f"No backup {name!r} in this registry's folder")
    return FileResponse(backups[name]["path"], filename=name, media_type="application/zip")


@router.post("/settings/backups/{name}/restoration")
async def restore_backup(request: Request, client: CurrentClient, _here: Local, name: str) -> HTMLResponse:
    """Replace everything in the registry by a backup, and show what was restored and where the safety copy is."""
    restored = await client.run("restore_backup", {"path": name})
    return render(request, "flow/backups.html", backups=await _backups(client), restored={**restored, "name": name})


@router.get("/settings/trash")
async def trash_page(request: Request, client: CurrentClient) -> HTMLResponse:
    """List the deleted conversations, which can be looked at and restored."""
    query = given_query(request, PageQuery, limit=ROWS)
    found = await client.view(conversations.list_channels, {"deleted": True}, query.page)
    cursor = found["next_cursor"]
    more = address("/settings/trash", cursor=cursor) if cursor else None
    return render(request, "flow/deleted.html", found=found, more=more)


@router.get("/settings/access", dependencies=[without_parameters])
async def access_page(request: Request, client: CurrentClient) -> HTMLResponse:
    """List people and access tokens; below admin only the caller's own."""
    return render(
        request,
        "flow/access.html",
        people=await client.view(list_people, client.access),
        tokens=await client.view(list_tokens),
        is_open=client.access is None,
        is_admin=client.access is None or not client.access.is_restricted,
        asker=client.access.owner if client.access else None,
    )


@router.post("/settings/revocations")
async def revoke(client: CurrentClient, name: Annotated[str, Form(min_length=1, max_length=200)]) -> RedirectResponse:
    """End a token, or the sessions of a person."""
    await client.run("revoke_token", {"name": name})
    return see_other("/settings/access")


class ForgetFields(BaseModel):
    """The fields of the form; all that are filled in must match."""

    id: Annotated[str, Field(max_length=40)] = ""
    channel: Annotated[str, Field(max_length=4000)] = ""
    owner: Annotated[str, Field(max_length=4000)] = ""
    project: Annotated[str, Field(max_length=4000)] = ""
    before: Annotated[str, Field(max_length=4000)] = ""
    matching: Annotated[str, Field(max_length=4000)] = ""

    def given(self) -> dict[str, str]:
        return {name: value.strip() for name, value in self if value.strip()}


@router.get("/settings/forget")
async def forget_page(
    request: Request, client: CurrentClient, fields: Annotated[ForgetFields, Query()]
) -> HTMLResponse:
    """Show the form and, where something is named, how much would be deleted forever."""
    given = fields.given()
    answer = await client.ask("delete", _query_of(given) | {"dry_run": True}, given.get("channel")) if given else {}
    problem = answer.get("error")
    return render(
        request,
        "flow/forget.html",
        named={**dict.fromkeys(ForgetFields.model_fields, ""), **given},
        receipt=answer.get("receipt"),
        problem=problem,
        is_nothing=problem is not None and problem["code"] == ErrorCode.NOT_FOUND,
    )


@router.post("/settings/forget")
async def forget(request: Request, client: CurrentClient, fields: Annotated[ForgetFields, Form()]) -> HTMLResponse:
    """Delete it forever, and show the receipt, which is stored nowhere else."""
    given = fields.given()
    done = await client.run("delete", _query_of(given), given.get("channel"))
    return render(request, "flow/forget.html", receipt=done["receipt"])


def _query_of(given: dict[str, str]) -> dict[str, Any]:
    return {"soft": False, **{name: value for name, value in given.items() if name != "channel"}}
