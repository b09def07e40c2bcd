"""What modules and timers owe to cells: a program into a box, a tick as a turn, each once under the key that leaves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import onefold
from onefold import Cell, Decision, Module, Owed
from onefold.cell import Letter
from onefold.host.caller import inside
from onefold.host.config import settle
from onefold.host.host import Host
from onefold.host.opening import open_host
from onefold.kernel.port import POST
from onefold.terms.errors import LoadRefused
from onefold.testing import VirtualClock
from onefold.timers import Ack, At, Create, Every, TickId, schedule_id, timers
from tests.cell.rooms import Room

CALLER = inside(None)


@dataclass(frozen=True)
class Ring:
    id: str
    bell: str


@dataclass(frozen=True)
class Rung:
    times: int


def ring(times: int, event: Ring, now: datetime) -> Decision[Rung, int]:
    program = f"for _ in range({times + 1}):\n    last = greet('{event.bell}')\nlast"
    owed = [Owed("post.Room", key=event.id, body=Letter("lobby", program))]
    return Decision(facts=[Rung(times + 1)], owed=owed, reply=times + 1)


def rung(times: int, fact: Rung) -> int:
    return fact.times


def shown(times: int) -> int:
    return times


bells = Module("bells", initial=0, key=lambda event: event.bell, decide=ring, evolve=rung, view=shown)


class Standup(Cell):
    heard: list[str] = []  # noqa: RUF012 - a draft never shares it

    def tick(self, id: TickId, due_at: datetime, payload: dict[str, str]) -> None:
        if payload.get("say") == "no":
            raise RuntimeError("not today")
        self.heard.append(f"{payload['say']} at {due_at:%H:%M}")


async def settled(host: Host) -> None:
    while not host.quiet:  # noqa: ASYNC110 - quiet is a state of many parts, and nothing to wait on
        await asyncio.sleep(0)


async def test_a_module_owes_a_program_to_a_cells_box() -> None:
    host = await open_host(settle(code={"store": "memory:"}), [bells, Room], clock=VirtualClock())
    await host.cells.spawn("Room", "lobby", caller=CALLER)
    for n in (1, 2, 2):
        await host.deliver(bells, Ring(f"e{n}", "a"), caller=CALLER)
    await settled(host)
    assert (await host.cells.read("Room", "lobby", caller=CALLER)).state["visits"] == 3
    await host.close()


async def test_a_tick_is_a_turn_of_the_cell_that_its_owner_names(tmp_path: Path) -> None:
    clock = VirtualClock()
    reminders = timers("reminders", to=POST)
    host = await open_host(settle(code={"store": str(tmp_path)}), [reminders, Standup], clock=clock)
    await host.cells.spawn("Standup", "team", caller=CALLER)
    trigger = Every("0 9 * * *", tz="UTC")
    await host.deliver(reminders, Create("c1", "Standup/team", "daily", trigger, {"say": "hi"}), caller=CALLER)
    schedule = schedule_id("Standup/team", "daily")
    for day in range(3):
        clock.step_to(clock.now() + 86_400_000)
        await settled(host)
        view = await host.read(reminders, schedule, caller=CALLER)
        assert isinstance(view.held, TickId)
        await host.deliver(reminders, Ack(f"a{day}", view.held), caller=CALLER)
        await settled(host)
    seen = await host.cells.read("Standup", "team", caller=CALLER)
    assert seen.state["heard"] == ["hi at 09:00"] * 3
    assert await host.parked_list(caller=CALLER) == []
    await host.close()


async def test_a_tick_that_a_cell_refused_is_over_and_one_without_a_cell_is_parked() -> None:
    clock = VirtualClock()
    reminders = timers("reminders", to=POST)
    host = await open_host(settle(code={"store": "memory:"}), [reminders, Standup], clock=clock)
    await host.cells.spawn("Standup", "team", caller=CALLER)
    soon = At(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=1))
    for key, owner, say in (("no", "Standup/team", "no"), ("lost", "Standup/nobody", "hi"), ("odd", "agent-7", "hi")):
        await host.deliver(reminders, Create(key, owner, key, soon, {"say": say}), caller=CALLER)
    for _ in range(300):
        clock.step_to(clock.now() + 1_800_000)
        await settled(host)
    causes = sorted(item.cause for item in await host.parked_list(caller=CALLER))
    assert len(causes) == 2
    assert "'agent-7'" in causes[1] or "'agent-7'" in causes[0]
    assert (await host.cells.read("Standup", "team", caller=CALLER)).state["heard"] == []
    await host.close()


def test_ticks_to_cells_need_an_app_with_cells() -> None:
    async def opened() -> None:
        async with onefold.App(timers("reminders", to=POST), store="memory:"):
            pass

    with pytest.raises(LoadRefused, match="this app has no cells"):
        asyncio.run(opened())
