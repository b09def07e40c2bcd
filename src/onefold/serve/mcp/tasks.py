"""serve.mcp.tasks - the tasks extension: a run as a task that its client polls.

For: tasks/get, tasks/update, tasks/cancel for clients that declare `io.modelcontextprotocol/tasks`.
Never: asks the client for input (an approval is somebody else's); forgets a result; lists tasks.
Was wrong once: a failed run as a failed task. That word is for the protocol's own errors; clients
showed "internal error" where the card had been declined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from onefold.serve.access import require
from onefold.serve.door import Caller, Host
from onefold.serve.mcp import telling
from onefold.serve.mcp.calls import CANCEL, EXTENSION, declared, task_fields
from onefold.terms.errors import NotFound, OnefoldError

MISSING_CAPABILITY: Final = -32021
OUR_FAULT: Final = -31000  # outside the protocol's own range; the sentence says which error


class TaskParams(RequestParams):
    """Which task."""

    task_id: str


class UpdateParams(TaskParams):
    """Answers to what a task asked for. Ours never ask, so whatever comes is acknowledged and dropped."""

    input_responses: dict[str, Any] | None = None


def admit(version: str, meta: Mapping[str, Any], method: str) -> None:
    """Raises: MCPError for an era without tasks, and for a client that did not declare them."""
    if version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=method)
    if not declared(meta):
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(code=MISSING_CAPABILITY, message="Missing required client capability", data=needed)


class Tasks:
    """The three methods. The caller's right to the run is checked by host at each of them."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def get(self, task_id: str, caller: Caller) -> dict[str, Any]:
        """The task as it stands, with the call's own result once there is one."""
        try:
            receipt = (await self._host.receipt(task_id, wait_ms=0, caller=caller)).to_json()
        except OnefoldError as error:
            raise _as_protocol(error) from None
        told = task_fields(receipt)
        if told["status"] == "completed":
            told["result"] = telling.called(receipt)
        return told | {"_meta": {telling.RUN_ID: receipt["run_id"]}}

    async def update(self, task_id: str, caller: Caller) -> dict[str, Any]:
        await self.get(task_id, caller)
        return {}

    async def cancel(self, task_id: str, caller: Caller) -> dict[str, Any]:
        """Acknowledged as often as it comes; a run that has ended stays as it ended. Raises: MCPError for who may not."""
        try:
            require(caller, CANCEL, "tasks/cancel")
            await self._host.run_cancel(task_id, "cancelled by its client", caller=caller)
        except OnefoldError as error:
            raise _as_protocol(error) from None
        return {}


def _as_protocol(error: OnefoldError) -> MCPError:
    code = INVALID_PARAMS if isinstance(error, NotFound) else OUR_FAULT
    return MCPError(code=code, message=str(error))
