"""/flow/try and /flow/cases: the playground and the test cases."""

import re
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from backoffice.dependencies import SOURCE, CurrentClient
from backoffice.pages.rendering import opened, render, see_other
from backoffice.queries import Word
from orchestrator.operations import operations
from orchestrator.recording.evaluation import SEARCH_OPERATIONS, evaluate, hit_rates, repeatable_request
from orchestrator.requests.field_types import Mode, RoleName
from orchestrator.views import runs as views
from registry.domain import new_id
from registry.errors import InvalidRequest

router = APIRouter(prefix="/flow", default_response_class=HTMLResponse)

NUMBERS = ("limit", "max_tokens")
_MESSAGE = re.compile(r"(?:conv|snap)_[0-9a-z]+")

Text = Annotated[str, Form()]


@router.get("/try")
async def try_page(
    request: Request, client: CurrentClient, run: Annotated[Word | None, Query()] = None
) -> HTMLResponse:
    """Show the form, filled in with the request of `run` if one is named."""
    filled_in: dict[str, Any] = {}
    if run:
        filled_in = repeatable_request(await client.view(views.get_execution, run))
    return render(
        request,
        "flow/try.html",
        of=run,
        operation=filled_in.get("operation", "extract"),
        channel=filled_in.get("channel", ""),
        query=filled_in.get("query", {}),
        operations=SEARCH_OPERATIONS,
        modes=get_args(Mode),
        roles=get_args(RoleName),
    )


@router.post("/try")
async def try_it(request: Request, client: CurrentClient) -> RedirectResponse:
    """Run the request and show the run."""
    async with request.form() as form:
        given: dict[str, Any] = {name: value for name, value in form.items() if value and isinstance(value, str)}
        given["roles"] = [role for role in form.getlist("roles") if isinstance(role, str)]
    given["also"] = [line.strip() for line in str(given.get("also", "")).splitlines() if line.strip()]
    operation = str(given.get("operation"))
    _check_searches(operation)
    shape: Any = operations()[operation].request.model_fields["query"].annotation
    names = [field.alias or name for name, field in shape.model_fields.items()]
    query = {name: _number(name, given[name]) for name in names if given.get(name)}
    body = {"operation": operation, "channel": given.get("channel", "").strip() or None, "query": query}
    execution_id = new_id("exec")
    await client.answer({**body, "source": SOURCE}, execution_id)  # a failure is shown as the run's page shows it
    return see_other(f"/flow/{execution_id}")


def _check_searches(operation: str) -> None:
    if operation not in SEARCH_OPERATIONS:
        allowed = ", ".join(SEARCH_OPERATIONS)
        raise InvalidRequest("Nothing was searched for.", f"operation: given {operation!r}; allowed: {allowed}")


def _number(name: str, given: Any) -> Any:
    return int(given) if name in NUMBERS and given.isascii() and given.isdecimal() else given


@router.post("/{execution_id}/expected")
async def expect(
    request: Request, client: CurrentClient, execution_id: Annotated[Word, Path()], message: Text
) -> RedirectResponse:
    """Keep the message a run should have found as a test case, and show at which step it was lost."""
    match = _MESSAGE.search(message)
    if match is None:
        raise InvalidRequest(
            "That is not a message's id or address.", f"message: given {message!r}; allowed: its id or its address"
        )
    run = await client.view(views.get_execution, execution_id)
    _check_searches(run["operation"])
    await client.change(views.save_case, run, match[0])
    return see_other(opened(request, f"/flow/{execution_id}", expected=match[0]) + "#expected")


@router.get("/cases")
async def cases_page(request: Request, client: CurrentClient) -> HTMLResponse:
    cases = await client.view(views.list_expectations)
    return render(request, "flow/cases.html", rows=cases, rates=None)


@router.post("/cases/run")
async def run_cases(request: Request, client: CurrentClient) -> HTMLResponse:
    cases = await evaluate(client.orchestrator, client.name, client.access)
    return render(request, "flow/cases.html", rows=cases, rates=hit_rates(cases))


@router.post("/cases/{case_id}/deletion")
async def drop_case(client: CurrentClient, case_id: Annotated[Word, Path()]) -> RedirectResponse:
    await client.change(views.drop_expectation, case_id)
    return see_other("/flow/cases")
