"""/forget: say what shall be forgotten, see how much it is, forget it for good, and keep the receipt."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse

from backoffice.dependencies import SOURCE, Asking
from backoffice.pages.rendering import render
from registry.errors import ErrorCode

router = APIRouter(default_response_class=HTMLResponse)

NAMED = ("id", "channel", "project", "before", "matching")
"""What can be named, as the address and the form have it; all that is named must hold."""

Asked = Annotated[str, Query(max_length=4000)]
Given = Annotated[str, Form(max_length=4000)]


@router.get("/forget")
async def forget_page(
    request: Request,
    client: Asking,
    message_id: Annotated[str, Query(alias="id", max_length=40)] = "",
    channel: Asked = "",
    project: Asked = "",
    before: Asked = "",
    matching: Asked = "",
) -> HTMLResponse:
    """What shall be forgotten; where something is named, how much that would be."""
    named = _named(message_id, channel, project, before, matching)
    if not named:
        return _page(request, named)
    answer = await client.answer(_request(named, dry_run=True))
    if answer["success"]:
        return _page(request, named, receipt=answer["receipt"])
    return _page(request, named, problem=answer["error"])


@router.post("/forget")
async def forget(
    request: Request,
    client: Asking,
    message_id: Annotated[str, Form(alias="id", max_length=40)] = "",
    channel: Given = "",
    project: Given = "",
    before: Given = "",
    matching: Given = "",
) -> HTMLResponse:
    """Forget it, and show the receipt: it stands nowhere else."""
    done = await client.run(_request(_named(message_id, channel, project, before, matching)))
    return _page(request, {}, receipt=done["receipt"])


def _named(*given: str) -> dict[str, str]:
    return {name: value.strip() for name, value in zip(NAMED, given, strict=True) if value.strip()}


def _request(named: dict[str, str], *, dry_run: bool = False) -> dict[str, Any]:
    query: dict[str, Any] = {name: value for name, value in named.items() if name != "channel"}
    query |= {"soft": False, **({"dry_run": True} if dry_run else {})}
    return {"operation": "delete", "channel": named.get("channel"), "query": query, "source": SOURCE}


def _page(
    request: Request,
    named: dict[str, str],
    *,
    receipt: dict[str, Any] | None = None,
    problem: dict[str, Any] | None = None,
) -> HTMLResponse:
    is_nothing = problem is not None and problem["code"] == ErrorCode.NOT_FOUND
    return render(
        request,
        "forget.html",
        section="registry",
        named={name: named.get(name, "") for name in NAMED},
        receipt=receipt,
        problem=None if is_nothing else problem,
        is_nothing=is_nothing,
    )
