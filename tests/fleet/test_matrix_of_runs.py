"""Runs, approvals, what is parked, blobs and automations answer alike, whichever node of the fleet is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from onefold.reflex import Reflexes, Signal, Write
from tests.fleet import shared
from tests.fleet.matrix import STORES, Side, assert_alike, fleet_on, having
from tests.fleet.nodes import Fleet, until
from tests.fleet.shared import Ask, Fed, asks, hears, once, provider, work
from tests.guarantees.shop import Deposit, PayOut, bank
from tests.host.automated import Effect, reflex

DAILY = {"clock": {"every": "day", "at": "04:30", "tz": "UTC"}}
RUNS = (work, hears, asks, once)


def fails(task: Any, input: Any) -> Any:
    if input == {"cents": 13}:
        raise LookupError("no such luck")
    return {"thanked": input}


effect = Effect(does=fails)
SET = [
    reflex(id="shop.thank", on={"fact": {"signal": "paid"}}, effect={"name": "thank", "input": {"cents": 1}}),
    reflex(id="shop.daily", on=DAILY, effect={"name": "thank", "input": {"cents": 2}}),
    reflex(
        id="shop.never",
        on={"fact": {"signal": "never"}},
        effect={"name": "thank", "input": {"cents": 13}},
        policy={"retry": {"max": 1, "backoff": "fixed", "baseMs": 1}},
    ),
]


@pytest.fixture(params=STORES)
async def fleet(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Fleet]:
    provider.paid.clear()
    provider.failing = []
    shared.failing.clear()
    parts = (*RUNS, bank, provider.neither(), Reflexes([], effects=[effect]))
    async with fleet_on(request.param, tmp_path, monkeypatch, *parts) as fleet:
        await fleet.nodes["a"].app.reflexes.load(SET)

        async def heard() -> bool:
            return all([len(await node.app.reflexes.list()) == len(SET) for node in fleet.nodes.values()])

        await until(heard)
        yield fleet


# --- runs -------------------------------------------------------------------------------------------


async def calls(side: Side) -> None:
    app = side.app
    key = side.call_key("work")
    await side.ask(app.call(work, Ask(n=3), key=key))
    await side.ask(app.call(work, Ask(n=3), key=key))
    await side.ask(app.start(work, Ask(n=4), key=key))
    receipt = await side.ask(app.start(work, Ask(n=3), key=key))
    await side.ask(app.receipt(receipt.run_id))
    await side.ask(receipt.result())
    await side.ask(receipt.refresh(wait="1s"))
    await side.ask(receipt.cancel("late"))
    await side.ask(receipt.send(Fed(n=1), key="e"))
    await side.ask(app.runs.journal(receipt.run_id))
    await side.ask(app.runs.retry(receipt.run_id))
    forked = await app.runs.fork(receipt.run_id, "counted", key=side.call_key("work"))
    await side.ask((await app.receipt(forked.run_id)).result())
    await side.ask(app.runs.fork(receipt.run_id, "nothing", key=side.call_key("work")))
    await side.ask(app.runs.list(program="work", key=key))
    for started in ({"n": 3}, {"n": "three"}, {}, {"n": 3, "more": 1}):
        await side.ask(app.host.start("work", started, key=key, caller=app.caller))
    await side.ask(app.host.start("works", {"n": 3}, key=key, caller=app.caller))
    await side.ask(app.runs.list(program="works"))
    for verb in (app.receipt, app.runs.journal, app.runs.cancel, app.runs.retry):
        await side.ask(verb(f"{receipt.run_id[:8]}nowhere"))
        await side.ask(verb("nowhere"))
    await side.ask(app.acting_as("studio").receipt(receipt.run_id))
    await side.ask(app.acting_as("studio").runs.fork(receipt.run_id, "counted"))


async def failures(side: Side) -> None:
    app = side.app
    shared.failing.add(5)
    key = side.call_key("work")
    receipt = await app.start(work, Ask(n=5), key=key)
    await side.ask(receipt.result())
    await side.ask(app.call(work, Ask(n=5), key=key))
    await side.ask(app.receipt(receipt.run_id))
    await side.ask(app.runs.journal(receipt.run_id))
    shared.failing.discard(5)
    await app.runs.retry(receipt.run_id)
    await side.ask(receipt.result())
    await side.ask(app.runs.list(status="done", key=key))


async def waits(side: Side) -> None:
    app = side.app
    for ends in (True, False):
        receipt = await app.start(hears, Ask(n=1), key=side.call_key("hears"))
        await until(partial(_waiting, app, receipt.run_id))
        await side.ask(app.receipt(receipt.run_id))
        await side.ask(app.host.run_send(receipt.run_id, "Nothing", {"n": 1}, key="n", caller=app.caller))
        if ends:
            await side.ask(receipt.send(Fed(n=7), key="e"))
            await side.ask(receipt.result())
            await side.ask(receipt.send(Fed(n=7), key="e"))
            await side.ask(receipt.send(Fed(n=8), key="e"))
        else:
            await side.ask(receipt.cancel("enough"))
            await side.ask(app.receipt(receipt.run_id))
            await side.ask(receipt.result())
            await side.ask(receipt.cancel("again"))
            await side.ask(receipt.send(Fed(n=7)))
        await side.ask(app.runs.journal(receipt.run_id))


async def _waiting(app: Any, run: str) -> bool:
    return bool((await app.receipt(run)).status == "waiting")


async def agreeing(side: Side) -> None:
    app, n = side.app, int(side.free()[1:-1])
    side._named(str(n), "number")
    first = await app.start(once, Ask(n=n))
    side.keep((await app.start(once, Ask(n=n))).run_id == first.run_id)
    await side.ask(app.start(once, Ask(n=n, after="1s")))
    await first.send(Fed(n=1))
    await side.ask(first.result())


async def approvals(side: Side) -> None:
    app = side.app
    for way in ("approve", "reject", "cancel"):
        receipt = await app.start(asks, Ask(n=1), key=side.call_key("asks"))
        run = receipt.run_id
        await until(partial(_waiting, app, run))
        side.keep([one for one in await app.approvals.list() if one.run_id == run])
        await side.ask(app.approvals.approve(run, "nothing", "ann"))
        if way == "approve":
            await side.ask(app.approvals.approve(run, "go", "ann", comment="fine"))
        elif way == "reject":
            await side.ask(app.approvals.reject(run, "go", "ann", "no"))
        else:
            await app.runs.cancel(run)
        await side.ask(app.approvals.reject(run, "go", "bob"))
        await side.ask(receipt.result())
        side.keep([one for one in await app.approvals.list() if one.run_id == run])
    await side.ask(app.approvals.approve("run_nowhere", "go", "ann"))


async def test_runs(fleet: Fleet) -> None:
    for scenario, actuator in ((calls, work), (failures, work), (waits, hears), (agreeing, once), (approvals, asks)):
        await assert_alike(fleet, scenario, owners=having(fleet, actuator.name))


# --- what is parked, blobs --------------------------------------------------------------------------


async def parked(side: Side) -> None:
    app, key = side.app, side.key("bank")
    provider.failing = [TimeoutError("no answer") for _ in range(2)]
    await app.deliver(bank, Deposit("d", key, 10))
    for name in ("p", "q"):
        await app.deliver(bank, PayOut(f"{name} {key}", key, 4))

    async def both() -> list[str]:
        found = [one.id for one in await app.parked.list()]
        return found if len(found) == 2 else []

    first, second = await until(both)
    for n, id in enumerate((first, second)):
        side._named(id, f"parked {n}")
    await side.ask(app.parked.list())
    await side.ask(app.parked.show(first))
    await side.ask(app.parked.drop(second, "enough"))
    await side.ask(app.parked.retry(first))
    await until(lambda: _settled(app, key))
    await side.ask(app.read(bank, key))
    for id in (first, second, "owed.main.0", "alarm.main.0", "nothing", "run_nowhere", "owed.nowhere.1"):
        await side.ask(app.parked.show(id))
        await side.ask(app.parked.retry(id))
        await side.ask(app.parked.drop(id, "again"))


async def _settled(app: Any, key: str) -> bool:
    return not (await app.read(bank, key)).held


async def blobs(side: Side) -> None:
    app = side.app
    digest = await side.ask(app.blobs.put(side.free().encode() * 10_000))
    side.keep(len(await app.blobs.get(digest)))
    await side.ask(app.acting_as("studio").blobs.get(digest))
    await side.ask(app.blobs.get("0" * 64))
    await side.ask(app.blobs.get("nothing"))


async def test_what_is_parked_and_blobs(fleet: Fleet) -> None:
    for scenario in (parked, blobs):
        await assert_alike(fleet, scenario)


# --- automations ------------------------------------------------------------------------------------


async def automations(side: Side) -> None:
    app, key = side.app, side.free()
    await side.ask(app.ingest(Signal("other", {"n": 1}, dedupe_key=key)))
    await side.ask(app.ingest(Signal("other", {"n": 1}, dedupe_key=key)))
    await side.ask(app.ingest(Write("orders", "insert", {"n": 1})))
    await side.ask(app.ingest(Write("orders", "mend", {"n": 1})))  # type: ignore[arg-type]
    fired = await app.reflexes.fire("shop.thank", input={"n": 1}, by="ann")

    async def ended(of: str, run: str) -> Any:
        found = [one for one in (await app.reflexes.runs(of)).items if run in repr(await app.reflexes.explain(one.id))]
        return found[0] if found and found[0].done + found[0].failed == found[0].total == 1 else None

    ran = await until(lambda: ended("shop.thank", fired.id))
    side._named(ran.id, "run")
    for task in (await app.reflexes.tasks(ran.id)).items:
        side._named(task.id, "task")
    side._named(fired.id, "fired")
    side.keep([(task.state, task.attempt, task.unit) for task in (await app.reflexes.tasks(ran.id)).items])
    side.keep([(cause.kind, cause.principal) for cause in await app.reflexes.explain(ran.id)])
    done = (await app.reflexes.tasks(ran.id)).items[0].id
    await side.ask(app.reflexes.retry(done))
    await side.ask(app.reflexes.explain(done))
    for wrong in ("nothing", "shop.nothing"):
        for verb in (app.reflexes.fire, app.reflexes.preview, app.reflexes.runs, app.reflexes.explain):
            await side.ask(verb(wrong))
        await side.ask(app.reflexes.tasks(wrong))
        await side.ask(app.reflexes.retry(wrong))
        await side.ask(app.reflexes.release(wrong))
    await side.ask(app.acting_as("studio").reflexes.fire("shop.thank"))
    await side.ask(app.acting_as("studio").reflexes.explain(ran.id))
    await side.ask(app.reflexes.release(fired.id))
    broken = await app.reflexes.fire("shop.never", input={"n": 1}, by="ann")
    bad = await until(lambda: ended("shop.never", broken.id))
    (task,) = (await app.reflexes.tasks(bad.id)).items
    side.keep(task.state, task.attempt)
    again = await app.reflexes.retry(task.id)
    side.keep(again.id == task.id, again.attempt)
    await side.ask(app.reflexes.retry("00"))


async def looks(side: Side) -> None:
    app = side.app
    at = datetime(2031, 1, 1, tzinfo=UTC)
    await side.ask(app.reflexes.list())
    await side.ask(app.reflexes.graph())
    await side.ask(app.reflexes.overdue())
    await side.ask(app.reflexes.schema())
    await side.ask(app.reflexes.draft(SET[0]))
    await side.ask(app.reflexes.draft({"id": "shop.odd"}))
    await side.ask(app.reflexes.preview("shop.daily", at=at, next=3))
    await side.ask(app.reflexes.preview("shop.thank", fact=Signal("paid", {"n": 1})))
    await side.ask(app.reflexes.load([{"id": "shop.odd"}]))
    await side.ask(app.reflexes.backfill("shop.thank", since=at, until=at))
    await side.ask(app.reflexes.sweep(intake="3650d", runs="3650d", dry_run=True))
    await side.ask(app.sweep(runs="3650d", dry_run=True))
    await side.ask(app.sweep())


async def test_automations(fleet: Fleet) -> None:
    await assert_alike(fleet, looks, owners=[fleet.nodes["a"]])
    await assert_alike(fleet, automations, owners=[fleet.nodes["a"]])
    since, until_ = datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 1, 4, tzinfo=UTC)
    a, b = (fleet.nodes[name].app for name in "ab")
    assert await a.reflexes.backfill("shop.daily", since=since, until=until_) == 3
    assert await b.reflexes.backfill("shop.daily", since=since, until=until_) == 0
