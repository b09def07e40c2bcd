"""Calling an actuator over HTTP: what is answered when, and what a repeat or a cut does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from httpx2 import AsyncClient

from onefold.actuators.receipt import Trouble
from onefold.serve import Front
from onefold.serve.tools import csv_of
from onefold.terms.errors import StoreUnavailable
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import Outcome, waiting_for_manager
from tests.serve.raw import Asgi

ORDER = {"order_id": "7", "amount": "40"}


async def test_a_finished_call_is_200_with_the_receipt(client: AsyncClient) -> None:
    told = await client.post("/tools/refund_order", json=ORDER)
    assert told.status_code == 200
    assert told.json()["result"] == {"type": "Refunded", "refund_id": "re_1"}
    assert "onefold-replayed" not in told.headers


async def test_a_waiting_call_is_202_and_says_where_and_when_to_ask(host: FakeHost, client: AsyncClient) -> None:
    host.outcomes["refund_order"] = lambda _: waiting_for_manager()
    told = await client.post("/tools/refund_order", json=ORDER)
    assert told.status_code == 202
    assert told.headers["location"] == f"/runs/{told.json()['run_id']}"
    assert told.headers["retry-after"] == "20"
    assert told.json()["waits"][0]["until"] == "2026-05-29T20:26:40Z"
    assert host.waiting == 0


async def test_a_repeat_gives_the_first_answer_and_says_so(host: FakeHost, client: AsyncClient) -> None:
    first = await client.post("/tools/refund_order", json=ORDER, headers={"idempotency-key": "order-7"})
    again = await client.post("/tools/refund_order", json=ORDER, headers={"idempotency-key": '"order-7"'})
    assert again.headers["onefold-replayed"] == "true"
    assert again.json() == first.json()
    assert len(host.acted) == 1


async def test_the_same_key_with_other_content_is_refused(host: FakeHost, client: AsyncClient) -> None:
    await client.post("/tools/refund_order", json=ORDER, headers={"idempotency-key": "k"})
    told = await client.post("/tools/refund_order", json=ORDER | {"amount": "41"}, headers={"idempotency-key": "k"})
    assert told.status_code == 422
    assert told.json()["code"] == "key_conflict"
    assert len(host.acted) == 1


@pytest.mark.parametrize("key", ["", " ", '""', '"open'])
async def test_an_empty_or_broken_key_starts_nothing(host: FakeHost, client: AsyncClient, key: str) -> None:
    told = await client.post("/tools/refund_order", json=ORDER, headers={"idempotency-key": key})
    assert told.status_code == 422
    assert told.json()["errors"][0]["field"] == "Idempotency-Key"
    assert host.acted == []


async def test_two_keys_start_nothing(host: FakeHost, client: AsyncClient) -> None:
    headers = [("idempotency-key", "a"), ("idempotency-key", "b")]
    assert (await client.post("/tools/refund_order", json=ORDER, headers=headers)).status_code == 422
    assert host.acted == []


async def test_bad_arguments_are_told_field_by_field(host: FakeHost, client: AsyncClient) -> None:
    told = await client.post("/tools/refund_order", json={"order_id": "7", "amount": 900})
    assert told.status_code == 422
    assert told.headers["content-type"] == "application/problem+json"
    assert told.json() == {
        "type": "urn:onefold:bad_arguments",
        "title": "Bad arguments",
        "status": 422,
        "code": "bad_arguments",
        "retry": "never",
        "instance": "/tools/refund_order",
        "detail": "Nothing was started. amount: must be at most 500; sent 900.",
        "errors": [{"field": "amount", "problem": "must be at most 500", "got": 900}],
    }
    assert host.acted == []


@pytest.mark.parametrize(
    "outcome,status,code",
    [
        (Outcome("failed", error=Trouble("step_failed", "HTTPError: 502", "pay_back", 5)), 500, "run_failed"),
        (Outcome("cancelled"), 409, "run_cancelled"),
        (Outcome("parked", error=Trouble("diverged", "step b where a was")), 409, "run_parked"),
    ],
)
async def test_a_run_that_ended_badly_is_a_problem_with_its_id(
    host: FakeHost, client: AsyncClient, outcome: Outcome, status: int, code: str
) -> None:
    host.outcomes["refund_order"] = lambda _: outcome
    told = await client.post("/tools/refund_order", json=ORDER)
    assert told.status_code == status
    assert (told.json()["code"], told.json()["run_id"]) == (code, next(iter(host.runs)))


async def test_a_failed_run_names_step_and_error(host: FakeHost, client: AsyncClient) -> None:
    host.outcomes["refund_order"] = lambda _: Outcome("failed", error=Trouble("step_failed", "Timeout: 30 s", "pay", 5))
    told = (await client.post("/tools/refund_order", json=ORDER)).json()
    assert told["detail"] == f"Run {told['run_id']} failed in step 'pay': Timeout: 30 s"


async def test_an_unknown_tool_is_404_with_the_nearest_name(client: AsyncClient) -> None:
    told = await client.post("/tools/refund_ordr", json=ORDER)
    assert told.status_code == 404
    assert "Did you mean 'refund_order'?" in told.json()["detail"]


async def test_a_running_call_is_held_until_it_ends(host: FakeHost, client: AsyncClient) -> None:
    host.outcomes["refund_order"] = lambda _: Outcome("running")
    call = asyncio.create_task(client.post("/tools/refund_order", json=ORDER))
    await host.waited.wait()
    host.end(next(iter(host.runs)), {"type": "Refunded", "refund_id": "re_9"})
    told = await call
    assert (told.status_code, told.json()["result"]["refund_id"]) == (200, "re_9")


@pytest.mark.parametrize("prefer", ["wait=0", "respond-async", "respond-async, handling=lenient"])
async def test_who_prefers_not_to_wait_is_answered_at_once(host: FakeHost, client: AsyncClient, prefer: str) -> None:
    host.outcomes["refund_order"] = lambda _: Outcome("running")
    told = await client.post("/tools/refund_order", json=ORDER, headers={"prefer": prefer})
    assert (told.status_code, told.headers["retry-after"]) == (202, "2")


async def test_a_client_that_goes_away_ends_the_wait_and_not_the_run(host: FakeHost, front: Front) -> None:
    host.outcomes["refund_order"] = lambda _: Outcome("running")
    call = Asgi(front, "POST", "/tools/refund_order", body=b'{"order_id":"7","amount":"40"}')
    await call.until(lambda: host.waiting == 1)
    call.leave()
    await call.ended()
    assert host.waiting == 0
    assert [run.receipt.status for run in host.runs.values()] == ["running"]
    assert call.sent == []


async def test_a_process_that_leaves_answers_whoever_waits(host: FakeHost, front: Front) -> None:
    host.outcomes["refund_order"] = lambda _: Outcome("running")
    call = Asgi(front, "POST", "/tools/refund_order", body=b'{"order_id":"7","amount":"40"}')
    await call.until(lambda: host.waiting == 1)
    front.drain()
    await call.ended()
    assert call.status == 202


async def test_a_callback_goes_with_the_call(host: FakeHost, client: AsyncClient) -> None:
    headers = {"onefold-callback": "https://example.com/done"}
    told = await client.post("/tools/refund_order", json=ORDER, headers=headers)
    assert told.status_code == 200
    assert host.callbacks == {told.json()["run_id"]: "https://example.com/done"}


async def test_a_callback_that_could_never_be_told_starts_nothing(host: FakeHost, client: AsyncClient) -> None:
    for url in ("http://example.com/done", "", "https://10.0.0.1/x", "https://a.example.com/x#y"):
        told = await client.post("/tools/refund_order", json=ORDER, headers={"onefold-callback": url})
        assert (told.status_code, told.json()["errors"][0]["field"]) == (422, "Onefold-Callback"), url
    assert host.acted == []


async def test_tables_are_json_or_csv_by_accept(client: AsyncClient) -> None:
    assert (await client.get("/tools/refund_order/tables")).json() == ["refunds"]
    rows = await client.get("/tools/refund_order/tables/refunds", params={"limit": 1})
    assert rows.json() == {"columns": ["order_id", "amount"], "rows": [["7", "40"]], "next": None}
    csv = await client.get("/tools/refund_order/tables/refunds", headers={"accept": "text/csv"})
    assert csv.headers["content-type"] == "text/csv; charset=utf-8"
    assert csv.text == 'order_id,amount\r\n7,40\r\n"\'=HYPERLINK(""http://evil.test"")",\r\n'


async def test_a_table_that_is_none_is_404(client: AsyncClient) -> None:
    assert (await client.get("/tools/refund_order/tables/secrets")).status_code == 404


async def test_csv_is_the_whole_table_and_a_page_of_it_says_where_it_goes_on(
    host: FakeHost, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def paged(
        name: str, table: str, *, limit: int = 100, after: str | None = None, caller: object
    ) -> tuple[list[str], list[list[Any]], str | None]:
        start = int(after or 0)
        rows = [[number] for number in range(start, min(start + limit, 2500))]
        return ["number"], rows, str(start + limit) if start + limit < 2500 else None

    monkeypatch.setattr(host, "table_rows", paged)
    whole = await client.get("/tools/refund_order/tables/refunds", headers={"accept": "text/csv"})
    assert whole.text.split() == ["number", *map(str, range(2500))]
    assert whole.headers["content-length"] == str(len(whole.content))
    page = await client.get("/tools/refund_order/tables/refunds?limit=2&after=4", headers={"accept": "text/csv"})
    assert page.text.split() == ["number", "4", "5"]
    assert page.links["next"]["url"] == "/tools/refund_order/tables/refunds?limit=2&after=6"


async def test_a_table_that_ends_in_a_fault_is_a_problem_and_not_half_a_table(
    host: FakeHost, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(
        name: str, table: str, *, limit: int = 100, after: str | None = None, caller: object
    ) -> tuple[list[str], list[list[Any]], str | None]:
        if after is not None:
            raise StoreUnavailable("refund_order", "its disk reported an error")
        return ["number"], [[1]], "1"

    monkeypatch.setattr(host, "table_rows", failing)
    told = await client.get("/tools/refund_order/tables/refunds", headers={"accept": "text/csv"})
    assert (told.status_code, told.json()["code"]) == (503, "store_unavailable")


@pytest.mark.parametrize(
    "query, media, body, name",
    [
        ("", "application/sql; charset=utf-8", b"COMMIT;\n", "refund_order.sql"),
        ("?as=sql", "application/sql; charset=utf-8", b"COMMIT;\n", "refund_order.sql"),
        ("?as=sqlite", "application/vnd.sqlite3", b"SQLite format 3\0", "refund_order.sqlite"),
    ],
)
async def test_an_export_is_a_file_of_either_kind(
    host: FakeHost, client: AsyncClient, query: str, media: str, body: bytes, name: str
) -> None:
    told = await client.get(f"/tools/refund_order/export{query}")
    assert (told.status_code, told.content, told.headers["content-type"]) == (200, body, media)
    assert told.headers["content-length"] == str(len(body))
    assert told.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert host.exported.closed


async def test_a_look_at_an_exports_head_closes_it_too(host: FakeHost, client: AsyncClient) -> None:
    told = await client.head("/tools/refund_order/export")
    assert (told.headers["content-length"], told.content) == ("8", b"")
    assert host.exported.closed


async def test_an_export_of_another_kind_is_refused(client: AsyncClient) -> None:
    told = await client.get("/tools/refund_order/export?as=csv")
    assert told.status_code == 422
    assert told.json()["errors"] == [{"field": "as", "problem": "must be sql or sqlite", "got": "csv"}]


def test_bytes_and_infinities_of_a_table_are_cells_like_others() -> None:
    assert csv_of(["a", "b"], [[b"\xff\x00", float("inf")]]) == b"a,b\r\n/wA=,\r\n"


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "\uff1d1+1"])
def test_no_cell_is_a_formula(cell: Any) -> None:
    assert csv_of(["a"], [[cell]]).decode().partition("\r\n")[2].strip('"').startswith("'")
