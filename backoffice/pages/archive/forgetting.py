"""/forget: say what shall be forgotten, see how much it is, forget it for good, and keep the receipt."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from backoffice.dependencies import SOURCE, Asking
from backoffice.pages.rendering import render
from registry.errors import ErrorCode

router = APIRouter(default_response_class=HTMLResponse)


class Named(BaseModel):
    """The fields of the form; all that are filled in must hold."""

    id: Annotated[str, Field(max_length=40)] = ""
    channel: Annotated[str, Field(max_length=4000)] = ""
    project: Annotated[str, Field(max_length=4000)] = ""
    before: Annotated[str, Field(max_length=4000)] = ""
    matching: Annotated[str, Field(max_length=4000)] = ""

    def given(self) -> dict[str, str]:
        """Return the fields that are filled in."""
        return {name: value.strip() for name, value in self if value.strip()}


@router.get("/forget")
async def forget_page(request: Request, client: Asking, asked: Annotated[Named, Query()]) -> HTMLResponse:
    """Show the form and, where something is named, how much would be forgotten."""
    named = asked.given()
    if not named:
        return _page(request, named)
    answer = await client.answer(_request(named, dry_run=True))
    if answer["success"]:
        return _page(request, named, receipt=answer["receipt"])
    return _page(request, named, problem=answer["error"])


@router.post("/forget")
async def forget(request: Request, client: Asking, asked: Annotated[Named, Form()]) -> HTMLResponse:
    """Forget it, and show the receipt: it stands nowhere else."""
    done = await client.run(_request(asked.given()))
    return _page(request, {}, receipt=done["receipt"])


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
        named={name: named.get(name, "") for name in Named.model_fields},
        receipt=receipt,
        problem=None if is_nothing else problem,
        is_nothing=is_nothing,
    )
