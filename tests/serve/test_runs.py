"""Looking at runs, and what may be said to one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from httpx2 import AsyncClient

from onefold.serve import Front
from onefold.terms.instant import moment
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import NOW, JournalRow, OpenApproval, Outcome, ParkedItem, waiting_for_manager
from tests.serve.raw import Asgi


async def started(client: AsyncClient, key: str = "k") -> str:
    body = {"order_id": key, "amount": "40"}
    told = await client.post("/tools/refund_order", json=body, headers={"idempotency-key": key, "prefer": "wait=0"})
    return str(told.json()["run_id"])


async def test_a_list_pages_by_after(client: AsyncClient) -> None:
    ids = [await started(client, key) for key in "abc"]
    first = (await client.get("/runs", params={"limit": 2})).json()
    rest = (await client.get("/runs", params={"limit": 2, "after": first["next"]})).json()
    assert [one["run_id"] for one in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next"] is None


async def test_a_list_is_filtered_by_program_status_and_key(client: AsyncClient) -> None:
    await started(client, "a")
    for query, count in (({"key": "a"}, 1), ({"status": "failed"}, 0), ({"program": "nightly"}, 0)):
        assert len((await client.get("/runs", params=query)).json()["items"]) == count


@pytest.mark.parametrize(
    "query", ["status=gone", "status=", "limit=", "limit=0", "limit=1001", "limit=x", "statsu=done", "key=a&key=b"]
)
async def test_a_query_that_means_nothing_is_refused(client: AsyncClient, query: str) -> None:
    told = await client.get(f"/runs?{query}")
    assert told.status_code == 422
    assert told.json()["errors"][0]["field"] == query.partition("=")[0]


async def test_a_query_that_is_no_utf8_is_400(client: AsyncClient) -> None:
    assert (await client.get("/runs?key=%FF")).status_code == 400


async def test_a_receipt_is_200_in_any_status(host: FakeHost, client: AsyncClient) -> None:
    for status in ("running", "waiting", "done", "failed", "cancelled", "parked"):
        host.outcomes["refund_order"] = lambda _, status=status: Outcome(status)  # type: ignore[misc]
        id = await started(client, status) if status in ("running", "waiting", "done") else None
        if id is None:
            await client.post("/tools/refund_order", json={"order_id": status, "amount": 1})
            id = list(host.runs)[-1]
        told = await client.get(f"/runs/{id}")
        assert (told.status_code, told.json()["status"]) == (200, status)


async def test_somebody_elses_run_is_not_there(client: AsyncClient) -> None:
    told = await client.get("/runs/run_none")
    assert (told.status_code, told.json()["code"]) == (404, "not_found")


async def test_a_look_may_wait_and_consumes_nothing(host: FakeHost, client: AsyncClient) -> None:
    host.outcomes["refund_order"] = lambda _: Outcome("running")
    id = await started(client)
    look = asyncio.create_task(client.get(f"/runs/{id}", params={"wait": 25}))
    await host.waited.wait()
    host.end(id, {"type": "Refunded", "refund_id": "re_2"})
    assert (await look).json()["result"]["refund_id"] == "re_2"
    assert (await client.get(f"/runs/{id}")).json()["result"]["refund_id"] == "re_2"


async def test_a_looker_that_leaves_ends_only_the_look(host: FakeHost, front: Front, client: AsyncClient) -> None:
    host.outcomes["refund_order"] = lambda _: Outcome("running")
    id = await started(client)
    look = Asgi(front, "GET", f"/runs/{id}?wait=25")
    await look.until(lambda: host.waiting == 1)
    look.leave()
    await look.ended()
    assert host.waiting == 0
    assert host.runs[id].receipt.status == "running"


@pytest.mark.parametrize("wait", ["26", "-1", "x", "\uff11", "0" * 20 + "99", "0" * 5_000])
async def test_a_wait_beyond_25_seconds_is_refused(client: AsyncClient, wait: str) -> None:
    assert (await client.get("/runs/run_x", params={"wait": wait})).status_code == 422


async def test_a_journal_is_read_by_pages_too(host: FakeHost, client: AsyncClient) -> None:
    id = await started(client)
    host.journals[id] = [JournalRow(n, "", f"s{n}", "step", 1, moment(NOW), result=n) for n in range(1, 6)]
    seen: list[int] = []
    after: str | None = "0"
    while after is not None:
        page = (await client.get(f"/runs/{id}/journal", params={"limit": 2, "after": after})).json()
        seen += [item["seq"] for item in page["items"]]
        after = page["next"]
        assert "history" not in page
    assert seen == [1, 2, 3, 4, 5]
    whole = (await client.get(f"/runs/{id}/journal")).json()
    assert (len(whole["items"]), whole["next"], whole["history"]) == (5, None, {"run_id": id})
    assert (await client.get(f"/runs/{id}/journal?after=9")).json()["items"] == []
    for wrong, status in (("limit=0", 422), ("limit=x", 422), ("after=x", 404)):
        assert (await client.get(f"/runs/{id}/journal?{wrong}")).status_code == status


async def test_the_journal_tells_result_or_error(host: FakeHost, client: AsyncClient) -> None:
    id = await started(client)
    host.journals[id] = [
        JournalRow(1, "", "pay_back", "step", 1, moment(NOW), error={"kind": "Timeout", "message": "30 s"}),
        JournalRow(2, "", "pay_back", "step", 2, moment(NOW + 1500), result=None),
    ]
    items = (await client.get(f"/runs/{id}/journal")).json()["items"]
    assert items == [
        {
            "seq": 1,
            "path": "",
            "step": "pay_back",
            "kind": "step",
            "attempt": 1,
            "at": "2026-05-28T20:26:40Z",
            "error": {"kind": "Timeout", "message": "30 s"},
        },
        {
            "seq": 2,
            "path": "",
            "step": "pay_back",
            "kind": "step",
            "attempt": 2,
            "at": "2026-05-28T20:26:41.500Z",
            "result": None,
        },
    ]


async def test_an_event_goes_to_its_run_with_its_key(host: FakeHost, client: AsyncClient) -> None:
    id = await started(client)
    told = await client.post(f"/runs/{id}/events/Paid", json={"sum": 1}, headers={"idempotency-key": "e1"})
    assert told.status_code == 200
    assert host.acted[-1] == ("send", id, "Paid", {"sum": 1}, "e1")


async def test_cancel_is_idempotent_and_keeps_the_reason(host: FakeHost, client: AsyncClient) -> None:
    host.outcomes["refund_order"] = lambda _: waiting_for_manager()
    id = await started(client)
    for body in (b'{"reason": "twice ordered"}', b""):
        told = await client.post(f"/runs/{id}/cancel", content=body)
        assert (told.status_code, told.json()["status"]) == (200, "cancelled")
    assert [one for one in host.acted if one[0] == "cancel"] == [("cancel", id, "twice ordered")]


@pytest.mark.parametrize("body", [b"[]", b'{"why": "x"}', b'{"reason": 1}'])
async def test_a_body_with_fields_that_mean_nothing_is_refused(client: AsyncClient, body: bytes) -> None:
    assert (await client.post("/runs/run_x/cancel", content=body)).status_code == 422


async def test_retry_gives_the_receipt(host: FakeHost, client: AsyncClient) -> None:
    id = await started(client)
    assert (await client.post(f"/runs/{id}/retry")).json()["run_id"] == id
    assert host.acted[-1] == ("retry", id)


async def test_a_fork_names_its_step_and_takes_a_key(host: FakeHost, client: AsyncClient) -> None:
    id = await started(client)
    told = await client.post(f"/runs/{id}/fork", json={"from": "pay"}, headers={"idempotency-key": "k"})
    assert (told.status_code, told.json()["run_id"]) == (200, id)
    assert host.acted[-1] == ("run_fork", id, "pay", "k")
    assert (await client.post(f"/runs/{id}/fork", json={})).status_code == 422


async def test_an_approval_is_decided_by_the_callers_name(host: FakeHost, client: AsyncClient) -> None:
    host.approvals["run_1", "manager"] = OpenApproval("run_1", "refund_order", "manager", "?", moment(NOW), None, {})
    body: dict[str, Any] = {"approve": False, "reason": "no receipt"}
    told = await client.post("/runs/run_1/approvals/manager", json=body)
    assert told.json() == {"outcome": "decided", "by": "local", "at": "2026-05-28T20:26:40Z"}
    assert host.acted == [("decided", "run_1", "manager", False, "local", "no receipt", None, None)]
    again = await client.post("/runs/run_1/approvals/manager", json={"approve": True})
    assert (again.status_code, again.json()["outcome"]) == (200, "already_decided")
    assert len(host.acted) == 1


@pytest.mark.parametrize("approve", [None, "yes", 1, "true"])
async def test_only_true_and_false_decide(host: FakeHost, client: AsyncClient, approve: Any) -> None:
    host.approvals["run_1", "manager"] = OpenApproval("run_1", "refund_order", "manager", "?", moment(NOW), None, {})
    told = await client.post("/runs/run_1/approvals/manager", json={"approve": approve})
    assert (told.status_code, host.acted) == (422, [])
    assert told.json()["detail"].startswith("Nothing was decided.")


async def test_the_list_of_what_is_parked_pages_like_any_other(host: FakeHost, client: AsyncClient) -> None:
    for n, id in enumerate("abcde"):
        host.parked[id] = ParkedItem(id, "owed", "refund_order", "502", moment(NOW + n // 2))
    seen: list[str] = []
    query = {"limit": "2"}
    while query.get("after") != "":
        told = (await client.get("/parked", params=query)).json()
        seen += [item["id"] for item in told["items"]]
        host.parked.pop(seen[-1], None)  # dealt with meanwhile: the next page begins behind it all the same
        query["after"] = told["next"] or ""
    assert seen == list("abcde")
    for wrong in ("limit=0", "limit=x", "limt=2"):
        assert (await client.get(f"/parked?{wrong}")).status_code == 422
    for nowhere in ("x", "1", "-1.a", "9" * 400 + ".a"):
        assert (await client.get("/parked", params={"after": nowhere})).status_code == 404


async def test_parked_items_are_listed_retried_and_dropped_with_a_reason(host: FakeHost, client: AsyncClient) -> None:
    for id in ("p/1", "p2"):
        host.parked[id] = ParkedItem(id, "owed", "refund_order", "502 for an hour", moment(NOW))
    assert (await client.get("/parked")).json()["items"][0] == {
        "id": "p/1",
        "kind": "owed",
        "program": "refund_order",
        "cause": "502 for an hour",
        "since": "2026-05-28T20:26:40Z",
    }
    shown = (await client.get("/parked/p%2F1")).json()
    assert (shown["key"], shown["body"], shown["retry"]) == ("order-7", {"amount": 7}, "sends it again")
    assert (await client.get("/parked/nothing")).status_code == 404
    assert (await client.post("/parked/p%2F1/retry")).status_code == 204
    assert (await client.post("/parked/p2/drop", json={})).status_code == 422
    assert (await client.post("/parked/p2/drop", json={"reason": "paid by hand"})).status_code == 204
    assert host.acted == [("parked_retry", "p/1"), ("parked_drop", "p2", "paid by hand")]
    assert (await client.post("/parked/p2/retry")).status_code == 404
