"""serve.mcp.calls - what happens when an agent calls a tool.

For: an actuator started under its key and waited for a while; the four tools for runs.
Never: waits longer than 25 seconds; sends the result of a run to somebody whose stream has closed;
takes the JSON-RPC id for a key.
Was wrong once: arguments answered as protocol errors. No model ever saw them, so none ever corrected
one. A fault is a result, in words.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from onefold.actuators.schema import STATUSES
from onefold.serve import bodies
from onefold.serve.access import require
from onefold.serve.door import Caller, Host, Json
from onefold.serve.mcp import telling
from onefold.serve.mcp.cells import CellTools
from onefold.serve.mcp.listing import LIST_LIMIT, LIST_MOST, POLL, WAIT_MOST
from onefold.serve.problems import Unexpected
from onefold.serve.receipts import GOING, POLL_SECONDS, soonest_end_ms, worth_waiting
from onefold.serve.routes import idempotency_key
from onefold.serve.version import version
from onefold.terms.codec import parse
from onefold.terms.errors import BadArguments, Fault, OnefoldError
from onefold.terms.ids import nearest
from onefold.terms.limits import MAX_FAULTS

log = logging.getLogger("onefold.serve")

KEY: Final = "onefold/idempotencyKey"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
EXTENSION: Final = "io.modelcontextprotocol/tasks"
CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
HELD_S: Final = 20  # a call is held this long for its result; clients cut theirs at 30 to 60
SHORT_MS: Final = 5 * 60_000  # a longer wait is told, not held: clients that do tasks hide them and block
_CALL, _LOOK, _ONE = frozenset({"call"}), frozenset({"read", "operate"}), frozenset({"call", "read", "operate"})
CANCEL: Final = frozenset({"call", "operate"})

Arguments = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Request:
    """One call, as far as a tool must know it. `tasks`: the client said that it can hold a task."""

    caller: Caller
    arguments: Arguments
    meta: Mapping[str, Any]
    header_keys: tuple[bytes, ...]
    receive: Any
    tasks: bool = False
    only: str | None = None

    def key(self) -> str | None:
        """The caller's key: `_meta` goes before the header. Raises: BadArguments for an empty one."""
        given = self.meta.get(KEY)
        if given is None:
            return idempotency_key(self.header_keys) if self.header_keys else None
        if not isinstance(given, str) or not given:
            raise BadArguments([Fault(f"_meta.{KEY}", "must be a text that is not empty", given)])
        return given


def declared(meta: Mapping[str, Any]) -> bool:
    """Whether this very request says that its client can hold tasks."""
    capabilities = meta.get(CAPABILITIES)
    extensions = capabilities.get("extensions") if isinstance(capabilities, Mapping) else None
    return isinstance(extensions, Mapping) and EXTENSION in extensions


class Calls:
    """Tools by name. What they give is a result of the protocol, as a dict."""

    def __init__(self, host: Host, waits: bodies.Waits) -> None:
        self.host = host
        self._waits = waits
        self._runs: dict[str, Callable[[Request], Awaitable[dict[str, Any]]]] = {
            "get_run": self._get_run,
            "list_runs": self._list_runs,
            "cancel_run": self._cancel_run,
            "send_event": self._send_event,
        }
        self.cells = CellTools(host.catalog.cells)
        self._who = {"name": host.catalog.title, "version": version()}

    def signed(self, result: dict[str, Any]) -> dict[str, Any]:
        """With who we are, which the newest era wants in every result. The package would copy it anew for each."""
        return {**result, "_meta": {**result.get("_meta", {}), SERVER_INFO: self._who}}

    def knows(self, tool: str, only: str | None) -> bool:
        actuator = self.host.catalog.actuators.get(tool)
        if actuator is not None and actuator.tool:
            return only in (None, tool)
        return tool in self._runs or (tool in self.cells and only is None)

    def unknown(self, tool: str, names: list[str]) -> str:
        near = nearest(tool, names)
        return f"Unknown tool {tool[:64]!r}.{f' Did you mean {near!r}?' if near else ''}"

    async def call(self, tool: str, request: Request) -> dict[str, Any]:
        """The tool's result; every fault becomes one in words. Raises: ClientGone."""
        try:
            if tool in self._runs:
                return await self._runs[tool](request)
            if tool in self.cells:
                require(request.caller, _CALL, tool)
                return await self.cells.call(tool, request.arguments, request.key(), self.host.cells, request.caller)
            return await self._start(tool, request)
        except bodies.ClientGone:
            raise
        except OnefoldError as error:
            return telling.fault(tool, error)
        except Exception as error:
            log.error("unexpected %s in tool %s", type(error).__name__, tool, exc_info=error)
            return telling.fault(tool, Unexpected(type(error).__name__, "tools/call"))

    # --- actuators -----------------------------------------------------------------------------------

    async def _start(self, tool: str, request: Request) -> dict[str, Any]:
        require(request.caller, _CALL, tool)
        actuator = self.host.catalog.actuators.get(tool)
        started = await self.host.start(tool, dict(request.arguments), key=request.key(), caller=request.caller)
        receipt = started.receipt.to_json()
        long_wait = "auto" if actuator is None else actuator.long_wait
        if request.tasks and long_wait == "task":
            return task_of(receipt)
        if worth_waiting(receipt, HELD_S * 1000, self.host.clock.now()):
            receipt = await self._wait(receipt["run_id"], HELD_S, request, started.receipt)
        if request.tasks and long_wait == "auto" and receipt["status"] in GOING and self._soon(receipt):
            return task_of(receipt)
        return telling.called(receipt)

    async def _wait(self, run_id: str, seconds: int, request: Request, seen: Any = None) -> dict[str, Any]:
        latest = None
        if seconds:
            looking = self.host.receipt(run_id, wait_ms=seconds * 1000, seen=seen, caller=request.caller)
            latest = await self._waits.on(looking, request.receive)
        if latest is None:
            latest = await self.host.receipt(run_id, wait_ms=0, caller=request.caller)
        return latest.to_json()

    def _soon(self, receipt: Mapping[str, Any]) -> bool:
        left = soonest_end_ms(receipt, self.host.clock.now())
        return left is not None and left <= SHORT_MS

    # --- the four for runs -----------------------------------------------------------------------------

    async def _get_run(self, request: Request) -> dict[str, Any]:
        require(request.caller, _ONE, "get_run")
        given = _Given(request.arguments, "run_id", "wait_seconds")
        run_id = given.text("run_id", needed=True)
        seconds = given.whole("wait_seconds", POLL, 0, WAIT_MOST)
        given.check("looked up")
        return telling.looked_at(await self._wait(run_id or "", seconds, request))

    async def _list_runs(self, request: Request) -> dict[str, Any]:
        require(request.caller, _LOOK, "list_runs")
        given = _Given(request.arguments, "program", "status", "limit")
        program = given.text("program") or request.only
        status = given.text("status", among=STATUSES)
        limit = given.whole("limit", LIST_LIMIT, 1, LIST_MOST)
        given.check("looked up")
        page = await self.host.runs_list(program=program, status=status, limit=limit, caller=request.caller)
        return telling.listed([receipt.to_json() for receipt in page.items], page.next)

    async def _cancel_run(self, request: Request) -> dict[str, Any]:
        require(request.caller, CANCEL, "cancel_run")
        given = _Given(request.arguments, "run_id", "reason")
        run_id, reason = given.text("run_id", needed=True), given.text("reason")
        given.check("cancelled")
        receipt = await self.host.run_cancel(run_id or "", reason, caller=request.caller)
        return telling.looked_at(receipt.to_json())

    async def _send_event(self, request: Request) -> dict[str, Any]:
        require(request.caller, _CALL, "send_event")
        given = _Given(request.arguments, "run_id", "event", "body", "key")
        run_id, event = given.text("run_id", needed=True), given.text("event", needed=True)
        body, key = given.fields("body"), given.text("key")
        given.check("sent")
        receipt = await self.host.run_send(
            run_id or "", event or "", body, key=key or request.key(), caller=request.caller
        )
        return telling.looked_at(receipt.to_json())


class _Given:
    """The arguments of one of our own tools, with every fault collected before the first is told."""

    def __init__(self, arguments: Arguments, *known: str) -> None:
        self._arguments = arguments
        self._faults: list[Fault] = []
        for name in arguments:
            if name not in known:
                near = nearest(name, known if len(self._faults) < MAX_FAULTS else ())
                hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
                self._faults.append(Fault(name, f"is not an argument here; {hint}"))

    def text(self, name: str, *, needed: bool = False, among: Sequence[str] = ()) -> str | None:
        value = self._arguments.get(name)
        if value is None or value == "":
            if needed:
                self._faults.append(Fault(name, "is missing"))
            return None
        if not isinstance(value, str):
            self._faults.append(Fault(name, "must be text", value))
            return None
        if among and value not in among:
            self._faults.append(Fault(name, f"must be one of {', '.join(among)}", value))
        return value

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        value = self._arguments.get(name)
        if value is None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self._faults.append(Fault(name, f"must be a whole number from {least} to {most}", value))
            return default
        return value

    def fields(self, name: str) -> dict[str, Any]:
        """An object. Some clients send it as the JSON text of one; that is read once."""
        value = self._arguments.get(name)
        if isinstance(value, str):
            try:
                value = parse(value.encode("utf-8", "surrogatepass"), name)
            except BadArguments:
                value = self._arguments.get(name)
        if not isinstance(value, dict):
            self._faults.append(Fault(name, "must be an object with the event's fields", value))
            return {}
        return value

    def check(self, nothing_was: str) -> None:
        if self._faults:
            raise BadArguments(self._faults, nothing_was=nothing_was)


def task_of(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """The receipt as a task handle. The run is committed by now, so asking for it works at once."""
    return {"resultType": "task", **task_fields(receipt), "_meta": {telling.RUN_ID: receipt["run_id"]}}


def task_fields(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """What every shape of a task has. A person's approval is work in progress: nobody at this client decides it."""
    status = {"running": "working", "waiting": "working", "cancelled": "cancelled"}.get(receipt["status"], "completed")
    told: dict[str, Any] = {
        "taskId": receipt["run_id"],
        "status": status,
        "createdAt": receipt["started_at"],
        "lastUpdatedAt": receipt["updated_at"],
        "ttlMs": None,
        "pollIntervalMs": int(receipt.get("poll_after_seconds", POLL_SECONDS)) * 1000,
    }
    if receipt["status"] != "done":
        told["statusMessage"] = telling.standing(receipt) if status == "working" else telling.opening(receipt)
    return told
