"""Modules over HTTP: one event in, one reply out; and looking at actors."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from httpx2 import AsyncClient

from onefold.serve import Front
from tests.serve.fake_host import FakeHost
from tests.serve.raw import Asgi

EVENT = {"type": "Add", "id": "e1", "counter": "room/7"}


async def test_an_event_gets_its_reply_and_a_repeat_the_same(client: AsyncClient) -> None:
    first = await client.post("/modules/counter/events", json=EVENT)
    again = await client.post("/modules/counter/events", json=EVENT)
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json() == {"reply": {"type": "Counted", "total": 1}}


async def test_a_key_with_a_slash_is_one_part_of_the_path(client: AsyncClient) -> None:
    await client.post("/modules/counter/events", json=EVENT)
    key = quote("room/7", safe="")
    assert (await client.get(f"/modules/counter/{key}")).json() == {"key": "room/7", "view": {"total": 1}}
    facts = (await client.get(f"/modules/counter/{key}/facts")).json()
    assert [fact["seq"] for fact in facts["items"]] == [1]
    assert (await client.get("/modules/counter/room/7")).status_code == 404


async def test_an_actor_may_be_called_events(client: AsyncClient) -> None:
    await client.post("/modules/counter/events", json=EVENT | {"counter": "events"})
    assert (await client.get("/modules/counter/events")).json()["view"] == {"total": 1}


async def test_actors_are_listed_by_prefix(client: AsyncClient) -> None:
    for counter in ("a1", "a2", "b1"):
        await client.post("/modules/counter/events", json=EVENT | {"counter": counter})
    told = (await client.get("/modules/counter", params={"prefix": "a"})).json()
    assert told == {"items": [{"key": "a1"}, {"key": "a2"}], "next": None}
    assert len((await client.get("/modules/counter?prefix=")).json()["items"]) == 3


async def test_facts_page_by_number(client: AsyncClient) -> None:
    for id in ("e1", "e2", "e3"):
        await client.post("/modules/counter/events", json=EVENT | {"id": id, "counter": "c"})
    first = (await client.get("/modules/counter/c/facts", params={"limit": 2})).json()
    assert first["next"] == "2"
    rest = (await client.get("/modules/counter/c/facts", params={"after": first["next"]})).json()
    assert [fact["seq"] for fact in rest["items"]] == [3]
    assert (await client.get("/modules/counter/c/facts?after=x")).status_code == 422
    assert (await client.get("/modules/counter/none/facts")).status_code == 404


MALFORMED = {
    "no JSON": b"hello",
    "cut": b'{"id":',
    "a key twice": b'{"id":"e1","id":"e2","counter":"c"}',
    "NaN": b'{"id":"e1","counter":"c","n":NaN}',
    "infinity": b'{"id":"e1","counter":"c","n":1e400}',
    "a huge integer": b'{"id":"e1","counter":"c","n":99999999999999999999}',
    "half a surrogate pair": b'{"id":"e1","counter":"\\ud800"}',
    "NUL": b'{"id":"e1","counter":"\\u0000"}',
    "too deep": b"[" * 100 + b"]" * 100,
    "far too deep": b"[" * 100_000,
    "no UTF-8": b'{"id":"\xff"}',
    "two values": b"{} {}",
    "only a space": b" ",
}


async def test_a_tool_without_arguments_needs_no_body(client: AsyncClient) -> None:
    assert (await client.post("/tools/slow_report")).json()["result"] == "the report"
    assert (await client.post("/tools/refund_order")).status_code == 422


@pytest.mark.parametrize("kind", MALFORMED)
async def test_what_is_no_json_is_400_at_the_short_way_and_at_the_long_one(client: AsyncClient, kind: str) -> None:
    for path in ("/modules/counter/events", "/tools/refund_order", "/runs/run_x/events/Paid"):
        told = await client.post(path, content=MALFORMED[kind])
        assert (told.status_code, told.json()["code"]) == (400, "bad_arguments"), path
        assert told.json()["detail"].startswith("Nothing was ")


async def test_a_reply_that_was_given_before_says_so(client: AsyncClient) -> None:
    first, again = [await client.post("/modules/counter/events", json=EVENT) for _ in range(2)]
    assert (first.json(), "onefold-replayed" in first.headers) == (again.json(), False)
    assert again.headers["onefold-replayed"] == "true"


async def test_a_wrong_event_is_422_and_not_400(client: AsyncClient) -> None:
    told = await client.post("/modules/counter/events", json={"counter": "c"})
    assert (told.status_code, told.json()["errors"][0]["field"]) == (422, "id")


async def test_an_unknown_module_is_404(client: AsyncClient) -> None:
    for path in ("/modules/countr/events", "/modules/a/b/events", "/modules//events"):
        assert (await client.post(path, json=EVENT)).status_code == 404, path


async def test_below_a_mounted_path_the_short_way_is_the_same(host: FakeHost, front: Front) -> None:
    call = Asgi(
        front, "POST", "/onefold/modules/counter/events", body=b'{"id":"e","counter":"c"}', root_path="/onefold"
    )
    assert (await call.ended()).body == b'{"reply":{"total":1,"type":"Counted"}}'


async def test_a_host_that_breaks_is_500_without_its_words(
    host: FakeHost, client: AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*args: object, **named: object) -> bytes:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr(host, "deliver_raw", broken)
    told = await client.post("/modules/counter/events", json=EVENT)
    assert (told.status_code, told.json()["code"]) == (500, "broken")
    assert "hunter2" not in told.text
    assert "unexpected RuntimeError at POST /modules/{module}/events" in caplog.text
