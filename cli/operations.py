"""One operation on the configured registry, as the commands that need just one run it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from registry.errors import InvalidRequest, NotFound, OperationTimeout, RegistryError, StorageError, Unauthorized
from registry.settings import Settings, read_settings

if TYPE_CHECKING:
    from registry.storage.executions import Execution

_ERRORS: dict[str, type[RegistryError]] = {
    kind.code: kind for kind in (InvalidRequest, Unauthorized, NotFound, StorageError, OperationTimeout)
}


def run_operation(request: Mapping[str, Any], observe: Callable[[Execution], None] | None = None) -> dict[str, Any]:
    """The outcome of a request; its failure is raised as the RegistryError of that code.

    `observe` is told of the run when it has ended, failed or not.
    """
    outcome = asyncio.run(_run(read_settings(), request, observe))
    if outcome["success"]:
        return outcome
    error = outcome["error"]
    raise _ERRORS[error["code"]](error["message"], error["details"])


async def _run(
    settings: Settings, request: Mapping[str, Any], observe: Callable[[Execution], None] | None
) -> dict[str, Any]:
    from orchestrator.service import open_orchestrator  # half a second that `ctxr -h` does not need

    async with open_orchestrator(settings) as orchestrator:
        if observe:
            orchestrator.observers.append(observe)
        return await orchestrator.run(request, f"ctxr {version('context-registry')}")
