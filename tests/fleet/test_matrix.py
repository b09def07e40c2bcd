"""What a verb answers and how it refuses does not depend on which node of the fleet is asked: word for word the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from onefold import Step, port
from onefold.cell import UNSET
from onefold.terms.errors import OwnedElsewhere
from onefold.timers import Ack, At, Create, End, Every, Supersede, Tick, TickId, schedule_id, timers
from tests.fleet.matrix import STORES, Side, assert_alike, fleet_on
from tests.fleet.nodes import Fleet, until
from tests.fleet.shared import Room, provider
from tests.guarantees.shop import Break, Deposit, PayOut, bank

LATER = datetime(2040, 1, 1, tzinfo=UTC)
rung: list[str] = []


async def remind(step: Step, tick: Tick) -> None:
    rung.append(tick.id.schedule)


reminders = timers("reminders", to=port.dedupes("remind")(remind))


@pytest.fixture(params=STORES)
async def fleet(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Fleet]:
    provider.paid.clear()
    provider.failing = []
    parts = (Room, bank, provider.dedupes(), reminders)
    async with fleet_on(request.param, tmp_path, monkeypatch, *parts) as fleet:
        yield fleet


# --- modules ----------------------------------------------------------------------------------------


async def events(side: Side) -> None:
    app, key = side.app, side.key("bank")
    for event in (
        Deposit("d1", key, 10),
        Deposit("d1", key, 10),
        Deposit("d1", key, 11),
        PayOut("p1", key, 11),
        Break("x", key),
        Break("x", key),
        Deposit("", key, 1),
        Deposit("d2", "", 1),
        Deposit("d3", key, 1, note="x" * 2_000_000),
        Deposit("d4", key, 1, note="y" * 100_000),
        Deposit("d4", key, 1, note="y" * 100_000),
    ):
        await side.ask(app.deliver(bank, event))
    await side.ask(app.read(bank, key))
    await side.ask(app.history(bank, key))
    await side.ask(app.history(bank, key, after=1))
    await side.ask(app.alarm(bank, key))
    await side.ask(app.actors(bank, prefix=key))
    await side.ask(app.prune(bank, key))
    nobody = side.key("bank")
    await side.ask(app.read(bank, nobody))
    await side.ask(app.history(bank, nobody))
    await side.ask(app.alarm(bank, nobody))
    await side.ask(app.read(bank, ""))


async def raw_events(side: Side) -> None:
    app, key = side.app, side.key("bank")
    deposit = b'{"type":"Deposit","id":"d1","account":"%b","amount":5}' % key.encode()
    for module, raw in (
        ("bank", deposit),
        ("bank", deposit),
        ("bank", deposit.replace(b":5", b":6")),
        ("bank", deposit.replace(b":5", b':"many"')),
        ("bank", deposit.replace(b"Deposit", b"Deposits")),
        ("bank", b"{"),
        ("banks", deposit),
    ):
        await side.ask(app.host.deliver_raw(module, raw, caller=app.caller))
    await side.ask(app.host.read_json("bank", key, caller=app.caller))
    await side.ask(app.host.facts("bank", key, caller=app.caller))
    await side.ask(app.host.facts("bank", side.key("bank"), caller=app.caller))
    await side.ask(app.host.prune_named("bank", side.key("bank"), caller=app.caller))
    studio = app.acting_as("studio")
    await side.ask(studio.read(bank, key))
    await side.ask(studio.host.facts("bank", key, caller=studio.caller))


async def forks(side: Side) -> None:
    app, key, to = side.app, side.key("bank"), side.key("bank")
    await app.deliver(bank, Deposit("d1", key, 10))
    await app.deliver(bank, Deposit("d2", key, 5))
    await side.ask(app.fork(bank, key, to, id="f", upto=1))
    await side.ask(app.fork(bank, key, to, id="f", upto=1))
    await side.ask(app.fork(bank, key, to, id="f"))
    await side.ask(app.fork(bank, key, to, id="g"))
    await side.ask(app.fork(bank, side.key("bank"), side.key("bank"), id="f"))
    await side.ask(app.fork(bank, key, side.key("bank"), id="f", upto=9))
    await side.ask(app.fork(bank, key, side.key("bank"), id=""))
    await side.ask(app.read(bank, to))


async def test_events_and_reads_of_modules(fleet: Fleet) -> None:
    for scenario in (events, raw_events, forks):
        await assert_alike(fleet, scenario)


async def test_an_alarm_that_is_due_is_folded_by_whoever_asks_for_it(fleet: Fleet) -> None:
    async def asks_for_it(side: Side) -> None:
        app, key = side.app, side.key("bank")
        await app.deliver(bank, Deposit("d", key, 10))
        provider.failing = [OSError("away")] * 100
        await app.deliver(bank, PayOut(f"p {key}", key, 4, minutes=-1))
        due = await app.alarm(bank, key)
        side.keep(due is None or due > datetime.now(UTC), (await app.read(bank, key)).balance)

    for node in fleet.nodes.values():
        node.host._core.driver.rest()  # no alarm rings by itself
    await assert_alike(fleet, asks_for_it)


# --- timers -----------------------------------------------------------------------------------------


async def schedules(side: Side) -> None:
    app = side.app
    pairs = ((f"agent-{n}", "standup") for n in range(10**9))
    owner, name = next(
        p for p in pairs if side.owner.owns("reminders", schedule_id(*p)) and schedule_id(*p) not in used
    )
    schedule = schedule_id(owner, name)
    used.add(schedule)
    side._named(owner, "agent")

    async def say(event: Any) -> Any:
        return await side.ask(app.deliver(reminders, event))

    every = Every("0 9 * * mon-fri", tz="Europe/Vienna")
    await say(Create("c1", owner, name, every, {"say": "hi"}))
    await say(Create("c1", owner, name, every, {"say": "hi"}))
    await say(Create("c1", owner, name, every, {"say": "ho"}))
    await say(Create("c2", owner, name, every, {"say": "ho"}))
    await say(Supersede("s1", schedule, At(LATER), {"say": "later"}))
    await say(Supersede("s2", schedule_id(owner, "other"), At(LATER), None))
    await side.ask(app.read(reminders, schedule))
    await say(Ack("a1", TickId(schedule, 7, LATER)))
    await say(Supersede("s3", schedule, At(datetime.now(UTC) + timedelta(milliseconds=300)), None))

    async def held() -> Any:
        timer = await app.read(reminders, schedule)
        return timer is not None and timer.held

    tick = await until(held)
    await until(lambda: schedule in rung)
    await say(Ack("a2", tick))
    await say(Ack("a3", tick))
    await say(End("e1", schedule))
    await side.ask(app.alarm(reminders, schedule))


used: set[str] = set()


async def test_timers(fleet: Fleet) -> None:
    await assert_alike(fleet, schedules)


# --- cells ------------------------------------------------------------------------------------------


async def cells(side: Side) -> None:
    app, key = side.app, side.key("Room")
    room = app.cell(Room, key)
    for verb in (room.read, room.retire, room.turn(Room.fail)):
        await side.ask(verb())
    await side.ask(room.get("visits"))
    await side.ask(room.spawn())
    await side.ask(room.spawn())
    for method, name in (("greet", "x"), ("fail", None), ("greets", "x"), ("greet", 7)):
        given = {} if name is None else {"name": name}
        await side.ask(app.host.cells.turn("Room", key, method, given, caller=app.caller))
    await side.ask(room.turn(Room.greet, key="t")("y"))
    await side.ask(room.turn(Room.greet, key="t")("y"))
    await side.ask(room.turn(Room.greet, key="t")("z"))
    for n, source in enumerate(
        (
            'a = greet(name="p")\nb = greet(name="q")\nb',
            'greet(name="p")',
            "greet(",
            "nonesuch(n=1)",
            'greet(name="x")\nfail()',
            "greet(name=3)",
            "x" * 2_000_000,
            "",
        )
    ):
        for key_of in (None, f"r{n}", f"r{n}"):
            await side.ask(room.run(source, key=key_of))
    await side.ask(room.run("1", key="r0"))
    await side.ask(room.read())
    await side.ask(room.get("names"))
    await side.ask(room.get("nonesuch"))


async def captures(side: Side) -> None:
    app, key = side.app, side.key("Room")
    room = app.cell(Room, key)
    await room.spawn()
    side.keep(await room.get("visits") is UNSET)
    async with room.capture() as draft:
        draft.visits = 5
    side.keep(draft.visits)
    for fields, base in (({"visits": 7}, None), ({"visits": 8}, 0), ({"nonesuch": 1}, None), ({"visits": "x"}, None)):
        await side.ask(app.host.cells.capture("Room", key, fields, base=base, caller=app.caller))
    await side.ask(app.host.cells.capture("Room", key, {"visits": 9}, key="c", caller=app.caller))
    await side.ask(app.host.cells.capture("Room", key, {"visits": 9}, key="c", caller=app.caller))
    await side.ask(app.host.cells.capture("Room", key, {"visits": 10}, key="c", caller=app.caller))
    side.keep(type(await room.evict()).__name__, type(await room.evict()).__name__)
    await side.ask(room.post('greet(name="m")', key="m"))
    await side.ask(room.post('greet(name="m")', key="m"))
    await side.ask(room.post('greet(name="n")', key="m"))
    await side.ask(room.post("greet(", key="o"))
    await side.ask(room.post("nonesuch()", key="o"))
    await side.ask(room.post('greet(name="m")', key=""))

    async def came() -> bool:
        return (await room.read()).names == ["m"]

    await until(came)
    await side.ask(app.host.cells.list("Room", prefix=key, caller=app.caller))
    await side.ask(app.host.cells.list("Rooms", caller=app.caller))
    await side.ask(app.acting_as("studio").cell(Room, key).read())
    await side.ask(room.retire())
    await side.ask(room.read())
    await side.ask(room.turn(Room.greet)("late"))
    await side.ask(room.hibernate())  # type: ignore[attr-defined]


async def test_cells(fleet: Fleet) -> None:
    for scenario in (cells, captures):
        await assert_alike(fleet, scenario)


async def test_custody_alone_is_refused_and_says_whose_it_is(fleet: Fleet) -> None:
    async def opens(side: Side) -> None:
        custody = side.app.open(Room, side.key("Room"))
        if side.asked is side.owner:
            async with custody as room:
                assert await room.turn(Room.greet)("x") == "hello x 1"
            return
        with pytest.raises(OwnedElsewhere) as elsewhere:
            await custody.__aenter__()
        assert elsewhere.value.node == side.owner.name

    await assert_alike(fleet, opens)
