"""SIGTERM: nothing more is claimed, what is on its way ends within the grace, the exit is 0, nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from onefold.terms.codec import canonical, parse
from tests.example.caller import Order, ask, look
from tests.example.ledger import Ledger, left
from tests.example.shop import PATIENCE_S, ROOT, Shop, shop

LATER = str(ROOT / "tests" / "example" / "later.py")


class Gate:
    """A provider that answers when it is let go."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.arrived = asyncio.Event()
        self.free = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        fields = dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
        body: Any = parse(await reader.readexactly(int(fields["content-length"])))
        self.calls.append((fields["idempotency-key"], body["bill"]))
        self.arrived.set()
        await self.free.wait()
        answer = canonical({"id": f"re_{len({key for key, _ in self.calls})}"})
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(answer), answer))
        writer.close()

    async def next_call(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.arrived.wait()
        self.arrived.clear()


@asynccontextmanager
async def gated(folder: Path, **more: Any) -> AsyncIterator[tuple[Shop, Gate]]:
    """A shop whose provider takes its time."""
    gate = Gate()
    server = await asyncio.start_server(gate.serve, "127.0.0.1", 0)
    try:
        async with shop(folder, **more) as one:
            one.environ["PAY_URL"] = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            await one.opens()
            yield one, gate
    finally:
        gate.free.set()
        server.close()
        await server.wait_closed()


async def test_what_is_on_its_way_ends_and_whoever_waits_is_answered(tmp_path: Path, ledger: Ledger) -> None:
    order = Order("1", "40")
    async with gated(tmp_path) as (one, gate):
        asking = asyncio.create_task(ask(one, ledger, order))
        await gate.next_call()
        one.app.process.terminate()
        assert (await asking)["status"] == "running"  # at once, with what there is
        with pytest.raises(httpx2.TransportError):
            async with httpx2.AsyncClient() as another:
                await another.get(f"{one.app.url}/healthz")
        gate.free.set()
        assert await one.app.ended() == 0, one.app.said
        assert left(one.store, order.key).facts[-1] == "Finished"
        await one.opens()
        assert (await ask(one, ledger, order))["result"] == {"type": "Refunded", "refund_id": "re_1"}
        assert len(gate.calls) == 1


async def test_what_takes_longer_than_the_grace_goes_on_at_the_next_start_under_its_key(
    tmp_path: Path, ledger: Ledger
) -> None:
    order = Order("1", "40")
    async with gated(tmp_path) as (one, gate):
        await one.app.grant(0.2)
        await ask(one, ledger, order, wait=0)
        await gate.next_call()
        one.app.process.terminate()
        assert await one.app.ended() == 0, one.app.said
        gate.free.set()
        await one.opens()
        await gate.next_call()
        assert (await look(one, ledger, order))["result"] == {"type": "Refunded", "refund_id": "re_1"}
        assert len(gate.calls) == 2
        assert len({key for key, _ in gate.calls}) == 1


async def test_nothing_that_comes_due_while_it_stops_is_begun(tmp_path: Path) -> None:
    due, seconds = datetime.now(UTC), 0
    async with gated(tmp_path, target=LATER) as (one, gate):
        await one.app.grant(PATIENCE_S)
        await asleep_until(one, "now", datetime.now(UTC))
        await gate.next_call()
        for seconds in (2, 10, 40):
            due = datetime.now(UTC) + timedelta(seconds=seconds)
            await asleep_until(one, f"after {seconds}", due)
            if datetime.now(UTC) < due - timedelta(seconds=seconds * 0.9):
                break  # so slow a machine gets a later one
        slow = await half_a_call(one)
        one.app.process.terminate()
        await asyncio.sleep((due - datetime.now(UTC)).total_seconds() + 0.3)
        begun = [bill for _, bill in gate.calls]
        slow.close()
        gate.free.set()
        assert await one.app.ended() == 0, one.app.said
        assert [bill for _, bill in gate.calls] == begun
        assert f"after {seconds}" not in begun
        gate.arrived.clear()
        await one.opens()
        await gate.next_call()  # nobody called
        assert gate.calls[-1][1] == f"after {seconds}"


async def half_a_call(shop: Shop) -> asyncio.StreamWriter:
    """A caller who takes so long to say what it wants that the stop must wait for it."""
    url = httpx2.URL(shop.app.url)
    _, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(f"POST /tools/later HTTP/1.1\r\nhost: {url.host}:{url.port}\r\ncontent-length: 99\r\n\r\n{{".encode())
    await writer.drain()
    await shop.app.http.get("/healthz")  # by now it has been heard
    return writer


async def asleep_until(shop: Shop, bill: str, at: datetime) -> None:
    """Start a run that pays the bill then; returns when it sleeps, or is past that."""
    http, when = shop.app.http, at.isoformat()
    receipt = (await http.post("/tools/later", json={"bill": bill, "at": when}, headers={"prefer": "wait=0"})).json()
    while datetime.now(UTC) < at and not receipt.get("waits"):
        receipt = (await http.get(f"/runs/{receipt['run_id']}", params={"wait": "0"})).json()


async def test_a_second_process_is_told_who_holds_the_folder_and_harms_nothing(open_shop: Shop, ledger: Ledger) -> None:
    first = open_shop.app
    second = await open_shop.begins()
    assert await second.ended() == 6
    assert f"process {first.process.pid} on " in "\n".join(second.said)
    answer = await first.http.post("/tools/refund_order", json=Order("1", "40").arguments)
    assert answer.json()["status"] == "done"
    await first.kill()
    await open_shop.opens()  # what a kill leaves holds nothing
    assert (await ask(open_shop, ledger, Order("2", "40")))["status"] == "done"
