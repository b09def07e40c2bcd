"""The doors over the application itself, so that the fake host cannot promise what the real one does not keep."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from httpx2 import AsyncClient
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel, Field

from onefold.actuators.declare import actuator
from onefold.actuators.outcomes import Approved, Expired, Rejected
from onefold.actuators.run import Run
from onefold.host.config import settle
from onefold.host.opening import open_host
from onefold.kernel.module import Module
from onefold.kernel.words import Decision
from onefold.serve import asgi_app
from tests.serve.conftest import LOCAL, client_of
from tests.serve.test_approvals import nonce, tap


class Order(BaseModel):
    id: str
    amount: Decimal = Field(gt=0, le=500)


@actuator(dedupe_by=["id"])
async def refund(run: Run, order: Order) -> str:
    """Pay an order back. Above 100 a manager must agree."""
    if order.amount > 100:
        match await run.wait_for_approval("manager", f"Pay back {order.amount}?", notify="ada", timeout="24 hours"):
            case Rejected(reason=reason):
                return f"rejected: {reason}"
            case Expired():
                return "expired"
            case Approved():
                pass
    return f"paid {order.amount}"


@actuator
async def refund_twice(run: Run, order: Order) -> list[str]:
    """Two children, one after the other."""
    return [await run.call(refund, order.model_copy(update={"id": order.id + part})) for part in "ab"]


@dataclass(frozen=True)
class Add:
    id: str
    counter: str


@dataclass(frozen=True)
class Added:
    pass


@dataclass(frozen=True)
class Counted:
    total: int


def decide(total: int, event: Add, now: datetime) -> Decision[Added, Counted]:
    return Decision(facts=[Added()], reply=Counted(total + 1))


def evolve(total: int, fact: Added) -> int:
    return total + 1


def view(total: int) -> Counted:
    return Counted(total)


def key(event: Add) -> str:
    return event.counter


counter = Module("counter", initial=0, key=key, decide=decide, evolve=evolve, view=view)


@dataclass
class Opened:
    client: AsyncClient
    said: list[str]

    async def links(self) -> dict[str, str]:
        """The two tokens of the notice, once it has been said."""
        while not (found := re.findall(r"/approve/([\w.-]+)", "\n".join(self.said))):  # noqa: ASYNC110 - sent by the driver
            await asyncio.sleep(0.01)
        pages = {token: (await self.client.get(f"/approve/{token}")).text for token in found[-2:]}
        return {re.findall(r'name="choice" value="(\w+)"', text)[0]: token for token, text in pages.items()}


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    said: list[str] = []
    config = settle(code={"store": "memory:", "people": {"ada": {"notify": ["mailto:ada@example.com"]}}})
    host = await open_host(config, [refund, refund_twice, counter], say=said.append, show_links=True)
    front = asgi_app(host)
    async with client_of(front) as client:
        yield Opened(client, said)
    await front.aclose()
    await host.close()


async def start(opened: Opened, amount: int, key: str = "k") -> Any:
    body = {"id": key, "amount": amount}
    return await opened.client.post("/tools/refund", json=body, headers={"idempotency-key": key})


async def test_a_small_refund_is_done_and_a_repeat_is_the_same(opened: Opened) -> None:
    first, again = await start(opened, 40), await start(opened, 40)
    assert (first.status_code, first.json()["result"]) == (200, "paid 40")
    assert (again.json(), again.headers["onefold-replayed"]) == (first.json(), "true")
    assert (await start(opened, 41)).json()["code"] == "key_conflict"


async def test_a_call_waits_for_the_children_of_its_run(opened: Opened) -> None:
    called = await opened.client.post("/tools/refund_twice", json={"id": "k", "amount": 40})
    assert (called.status_code, called.json()["result"]) == (200, ["paid 40", "paid 40"])


async def test_a_call_is_not_held_for_a_child_that_waits_for_a_person(opened: Opened) -> None:
    async with asyncio.timeout(10):  # half of what a call may be held
        called = await opened.client.post("/tools/refund_twice", json={"id": "k", "amount": 150})
    assert (called.status_code, [wait["kind"] for wait in called.json()["waits"]]) == (202, ["child"])


async def test_a_person_approves_by_link_once(opened: Opened) -> None:
    waiting = await start(opened, 150)
    assert (waiting.status_code, waiting.json()["waits"][0]["name"]) == (202, "manager")
    links = await opened.links()
    page = await opened.client.get(f"/approve/{links['approve']}")
    assert "Pay back 150?" in page.text
    assert "150" in page.text
    assert (await tap(opened.client, links["approve"], "approve", nonce(page))).status_code == 200
    for token, choice in ((links["approve"], "approve"), (links["reject"], "reject")):
        late = await tap(opened.client, token, choice, nonce(page))
        assert (late.status_code, "already decided" in late.text) == (410, True)
    done = await opened.client.get(waiting.headers["location"], params={"wait": 20})
    assert done.json()["result"] == "paid 150"


async def test_a_rejections_reason_reaches_the_program(opened: Opened) -> None:
    waiting = await start(opened, 150)
    links = await opened.links()
    page = await opened.client.get(f"/approve/{links['reject']}")
    await tap(opened.client, links["reject"], "reject", nonce(page), reason="no receipt")
    done = await opened.client.get(waiting.headers["location"], params={"wait": 20})
    assert done.json()["result"] == "rejected: no receipt"


async def test_the_link_of_a_cancelled_run_is_dead(opened: Opened) -> None:
    waiting = await start(opened, 150)
    links = await opened.links()
    await opened.client.post(f"{waiting.headers['location']}/cancel", json={"reason": "twice"})
    page = await opened.client.get(f"/approve/{links['approve']}")
    assert (page.status_code, "withdrawn" in page.text) == (410, True)


async def test_the_inbox_and_the_console_show_and_decide(opened: Opened) -> None:
    waiting = await start(opened, 150)
    inbox = (await opened.client.get("/approve")).text
    seen = re.findall(r'name="shown" value="(\w+)"', inbox)[0]
    id = waiting.json()["run_id"]
    data = {"choice": "approve", "shown": seen, "reason": ""}
    told = await opened.client.post(f"/console/approvals/{id}/manager", data=data, headers={"origin": LOCAL})
    assert (told.status_code, "You approved this" in told.text) == (200, True)
    await opened.client.get(waiting.headers["location"], params={"wait": 20})
    page = (await opened.client.get(f"/console/runs/{id}")).text
    assert "paid 150" in page
    journal = (await opened.client.get(f"/runs/{id}/journal")).json()["items"]
    assert [(row["step"], row["kind"], row["result"]["by"]) for row in journal] == [("manager", "approved", ["local"])]
    assert id in (await opened.client.get("/console")).text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_gets_a_receipt_and_later_the_result(opened: Opened, mode: str) -> None:
    transport = streamable_http_client(f"{LOCAL}/mcp", http_client=opened.client)
    async with Client(transport, mode=mode) as agent:
        assert (await agent.list_tools()).tools[0].name == "refund"
        small = await agent.call_tool("refund", {"id": "s", "amount": "40"})
        assert small.structured_content["result"] == "paid 40"
        large = await agent.call_tool("refund", {"id": "l", "amount": 150})
        assert large.structured_content["status"] == "waiting"
        links = await opened.links()
        page = await opened.client.get(f"/approve/{links['approve']}")
        await tap(opened.client, links["approve"], "approve", nonce(page))
        done = await agent.call_tool("get_run", {"run_id": large.structured_content["run_id"]})
        assert done.structured_content["result"] == "paid 150"
        wrong = await agent.call_tool("refund", {"id": "w", "amount": 900})
        assert wrong.is_error


async def test_events_views_facts_and_actors(opened: Opened) -> None:
    totals = []
    for id in ("e1", "e1", "e2"):
        told = await opened.client.post("/modules/counter/events", json={"type": "Add", "id": id, "counter": "a/b"})
        totals.append(told.json())
    assert totals == [{"reply": {"total": total}} for total in (1, 1, 2)]
    assert (await opened.client.get("/modules/counter/a%2Fb")).json()["view"] == {"total": 2}
    assert len((await opened.client.get("/modules/counter/a%2Fb/facts")).json()["items"]) == 2
    assert (await opened.client.get("/modules/counter?prefix=a")).json()["items"] == [{"key": "a/b"}]
    other = await opened.client.post(
        "/modules/counter/events", json={"type": "Add", "id": "e1", "counter": "a/b", "x": 1}
    )
    assert other.status_code == 422
    assert (await opened.client.post("/modules/counter/events", content=b"{")).status_code == 400


@pytest.mark.parametrize(
    "path", ["/runs?after=x", "/runs?program=none", "/runs/run_none", "/parked", "/readyz", "/metrics"]
)
async def test_what_is_asked_strangely_is_never_a_fault_of_ours(opened: Opened, path: str) -> None:
    assert (await opened.client.get(path)).status_code < 500
