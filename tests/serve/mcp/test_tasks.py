"""A run as a task, for clients that say they can hold one."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from onefold.actuators.receipt import Trouble, WaitShown
from tests.serve.conftest import AGENT_KEY, READER_KEY, Keyed
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import DAY, NOW, Outcome, waiting_for_manager
from tests.serve.mcp.wire import TASKS, call, error, post, result

ORDER = {"order_id": "8", "amount": 150}


def asleep(until: int | None, kind: str = "sleep") -> Outcome:
    return Outcome("waiting", waits=(WaitShown(kind, "nap", NOW, "c", until),))


async def started(host: FakeHost, client: AsyncClient, outcome: Outcome) -> str:
    host.outcomes["slow_report"] = lambda _: outcome
    told = await call(client, "slow_report", {}, capabilities=TASKS)
    assert told["resultType"] == "task"
    return str(told["taskId"])


async def get(client: AsyncClient, id: str) -> dict[str, Any]:
    return await result(client, "tasks/get", {"taskId": id}, capabilities=TASKS)


async def test_a_task_is_flat_and_its_id_is_the_runs(host: FakeHost, client: AsyncClient) -> None:
    host.outcomes["slow_report"] = lambda _: Outcome("running")
    told = await call(client, "slow_report", {}, capabilities=TASKS)
    id = next(iter(host.runs))
    told.pop("_meta")
    assert told == {
        "resultType": "task",
        "taskId": id,
        "status": "working",
        "statusMessage": "slow_report is still running",
        "createdAt": "2026-05-28T20:26:40Z",
        "lastUpdatedAt": "2026-05-28T20:26:40Z",
        "ttlMs": None,
        "pollIntervalMs": 2000,
    }


async def test_nobody_gets_a_task_who_did_not_ask(host: FakeHost, client: AsyncClient) -> None:
    host.outcomes["slow_report"] = lambda _: asleep(NOW + DAY)
    other: list[dict[str, Any]] = [{}, {"modern": False}, {"capabilities": {"extensions": {"other/thing": {}}}}]
    for more in other:
        told = await call(client, "slow_report", {}, **more)
        assert told.get("resultType", "complete") == "complete"
        assert told["structuredContent"]["status"] == "waiting"


@pytest.mark.parametrize(
    "outcome,kind",
    [
        (asleep(NOW + 5 * 60_000), "task"),
        (asleep(NOW + 5 * 60_000 + 1), "complete"),
        (asleep(None, "event"), "complete"),
        (waiting_for_manager(), "complete"),
        (Outcome(result={"type": "Refunded", "refund_id": "r"}), "complete"),
    ],
)
async def test_auto_gives_a_task_for_a_short_wait_and_a_receipt_for_a_long_one(
    host: FakeHost, client: AsyncClient, outcome: Outcome, kind: str
) -> None:
    host.outcomes["refund_order"] = lambda _: outcome
    assert (await call(client, "refund_order", ORDER, capabilities=TASKS))["resultType"] == kind


async def test_a_task_that_ends_holds_the_calls_own_result(host: FakeHost, client: AsyncClient) -> None:
    id = await started(host, client, Outcome("running"))
    assert (await get(client, id))["status"] == "working"
    host.end(id, "the report")
    for _ in range(2):  # looking consumes nothing
        told = await get(client, id)
        assert (told["resultType"], told["status"]) == ("complete", "completed")
        assert told["result"]["structuredContent"]["result"] == "the report"
        assert "error" not in told


async def test_an_approval_by_somebody_else_stays_work_in_progress(host: FakeHost, client: AsyncClient) -> None:
    id = await started(host, client, waiting_for_manager())
    told = await get(client, id)
    assert told["status"] == "working"
    assert told["statusMessage"] == ('slow_report is waiting for approval "manager" until 2026-05-29T20:26:40Z')
    assert "inputRequests" not in told


@pytest.mark.parametrize("status", ["failed", "parked"])
async def test_a_run_that_went_wrong_is_a_completed_task_with_a_fault(
    host: FakeHost, client: AsyncClient, status: Any
) -> None:
    id = await started(host, client, Outcome(status, error=Trouble("run_failed", "ValueError: no", None, None)))
    told = await get(client, id)
    assert (told["status"], told["result"]["isError"]) == ("completed", True)
    assert "ValueError: no" in told["result"]["content"][0]["text"]


async def test_cancel_is_acknowledged_again_and_again(host: FakeHost, client: AsyncClient) -> None:
    id = await started(host, client, Outcome("running"))
    for _ in range(2):
        told = await result(client, "tasks/cancel", {"taskId": id}, capabilities=TASKS)
        told.pop("_meta")
        assert told == {"resultType": "complete"}
    assert (await get(client, id))["status"] == "cancelled"
    assert len([one for one in host.acted if one[0] == "cancel"]) == 1


async def test_what_a_task_did_not_ask_for_is_acknowledged(host: FakeHost, client: AsyncClient) -> None:
    id = await started(host, client, Outcome("running"))
    params: dict[str, Any] = {"taskId": id, "inputResponses": {"x": {"action": "accept"}}}
    told = await result(client, "tasks/update", params, capabilities=TASKS)
    assert told["resultType"] == "complete"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_a_task_is_for_those_who_declared_tasks(host: FakeHost, client: AsyncClient, method: str) -> None:
    id = await started(host, client, Outcome("running"))
    told = await error(client, method, {"taskId": id})
    assert told["code"] == -32021
    assert told["data"] == {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    unknown = await error(client, method, {"taskId": "run_nobodys"}, capabilities=TASKS)
    assert unknown["code"] == -32602
    assert (await error(client, method, {}, capabilities=TASKS))["code"] == -32602
    assert (await error(client, method, {"taskId": id}, modern=False))["code"] == -32601


async def test_a_header_that_names_another_task_is_refused_and_a_missing_one_is_not(
    host: FakeHost, client: AsyncClient
) -> None:
    id = await started(host, client, Outcome("running"))
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        told = await error(client, method, {"taskId": id}, capabilities=TASKS, headers={"mcp-name": "run_other"})
        assert told["code"] == -32020
    assert host.runs[id].receipt.status == "running"
    same = await post(client, "tasks/get", {"taskId": id}, capabilities=TASKS, headers={"mcp-name": id})
    assert same.json()["result"]["taskId"] == id


@pytest.mark.parametrize("method", ["tasks/list", "tasks/result"])
async def test_there_is_no_other_method(client: AsyncClient, method: str) -> None:
    assert (await error(client, method, {"taskId": "x"}, capabilities=TASKS))["code"] == -32601


async def test_whoever_may_only_read_cancels_no_task(locked: FakeHost, holding: Keyed) -> None:
    locked.outcomes["slow_report"] = lambda _: asleep(NOW + DAY)
    async with holding(AGENT_KEY) as agent:
        await call(agent, "slow_report", {}, capabilities=TASKS)
    id = next(iter(locked.runs))
    async with holding(READER_KEY) as reader:
        told = await error(reader, "tasks/cancel", {"taskId": id}, capabilities=TASKS)
        assert "right" in told["message"]
        assert (await get(reader, id))["status"] == "working"
    async with holding(AGENT_KEY) as agent:
        await result(agent, "tasks/cancel", {"taskId": id}, capabilities=TASKS)
        assert (await get(agent, id))["status"] == "cancelled"
