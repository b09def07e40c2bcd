"""Sleeps, timeouts and events: durable, ended once, and needed by somebody."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from onefold.actuators import Expired, Run, actuator
from onefold.actuators.journal import rows
from onefold.terms.errors import BadArguments
from tests.actuators.home import T0, Killed, World, played, until

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SEEN.clear()


async def test_a_sleep_ends_a_pass_and_is_one_wait() -> None:
    async def main(run: Run) -> str:
        await run.sleep(timedelta(hours=2))
        return run.now().isoformat()

    world = World(actuator(main))
    await world.play(until=lambda w: w.state.status == "waiting")
    (wait,) = world.life.module.view(world.state).waits
    assert (wait.kind, wait.until) == ("sleep", T0 + 7_200_000)
    await world.play()
    assert world.passes == 2
    assert datetime.fromisoformat(world.result).timestamp() * 1000 == T0 + 7_200_000


async def test_a_past_instant_goes_on_at_once() -> None:
    async def main(run: Run) -> int:
        await run.sleep_until(run.now() - timedelta(days=1))
        await run.sleep_until(run.now())
        await run.sleep("0 seconds")
        await asyncio.sleep(0)
        return 1

    world = await played(main)
    assert world.result == 1
    assert world.rows.now == T0


async def test_an_instant_past_by_the_real_clock_only_is_due_in_the_same_commit() -> None:
    async def late() -> None:
        world.rows.now += 10_000

    async def main(run: Run) -> int:
        target = run.now() + timedelta(seconds=5)
        asleep = asyncio.create_task(later(run, target))
        await run.step(late)()
        await asleep
        return 1

    async def later(run: Run, target: datetime) -> None:
        await run.sleep_until(target)

    world = World(actuator(main))
    await world.play()
    assert world.result == 1
    assert world.rows.now == T0 + 10_000


@pytest.mark.parametrize("bad", [5, "5", "-1 s", "nan s", "soon", timedelta(days=5000), None, float("inf")])
async def test_a_duration_that_is_none_is_refused_at_the_call(bad: Any) -> None:
    async def main(run: Run) -> str:
        try:
            _ = run.sleep(bad)
        except BadArguments as wrong:
            return str(wrong)
        return "?"

    assert (await played(main)).result.startswith("Nothing was started.")


async def test_a_naive_instant_is_refused_at_the_call() -> None:
    async def main(run: Run) -> str:
        try:
            _ = run.sleep_until(datetime(2030, 1, 1))  # noqa: DTZ001 - what is tested
        except BadArguments as wrong:
            return str(wrong)
        return "?"

    assert "has no time zone" in (await played(main)).result


async def test_a_timeout_cuts_a_running_step_which_is_abandoned() -> None:
    async def slow() -> None:
        SEEN.append("begun")
        world.ring()
        try:
            await asyncio.Event().wait()
        finally:
            SEEN.append("cut")

    async def main(run: Run) -> str:
        try:
            await asyncio.wait_for(run.step(slow)(), 5)
        except TimeoutError:
            return "late"
        return "?"

    async def settle() -> None:
        """The clock rings once the timer is durable."""
        await until(lambda: world.state.agenda)
        world.ring()

    world = World(actuator(main))
    ringing = asyncio.create_task(settle())
    await world.play()
    await ringing
    assert world.result == "late"
    assert SEEN == ["begun", "cut"]
    assert [row.kind for row in rows(world.state)] == ["due"]


async def test_a_wait_nobody_needs_any_more_wakes_nobody() -> None:
    async def quick() -> int:
        await until(lambda: world.state.agenda)
        return 1

    async def main(run: Run) -> int:
        found = await asyncio.wait_for(run.step(quick)(), 3600)
        await run.sleep("1 day")
        return found

    world = World(actuator(main))
    await world.play(until=lambda w: w.state.status == "waiting")
    assert [wait.until for wait in world.state.open.values()] == [T0 + 86_400_000]
    await world.play()
    assert world.result == 1


async def test_a_wait_nobody_needs_any_more_is_released_after_a_crash_too() -> None:
    async def quick() -> int:
        await until(lambda: world.state.agenda)
        return 1

    async def main(run: Run) -> int:
        found = await asyncio.wait_for(run.step(quick)(), 3600)
        await run.sleep("1 day")
        return found

    world = World(actuator(main))
    world.restart(kill_at=4, before=True)  # the timer and the step are committed, the end of the pass is not
    with pytest.raises(Killed):
        await world.play()
    world.restart()
    assert [wait.name for wait in world.state.open.values()] == ["timer"]
    await world.play(until=lambda w: w.state.status == "waiting")
    assert [wait.name for wait in world.state.open.values()] == ["sleep"]
    await world.play()
    assert world.result == 1


class Shipped(BaseModel):
    parcel: str


async def ship(run: Run) -> str:
    event = await run.wait_for_event(Shipped)
    return event.parcel


async def test_an_event_reaches_the_wait() -> None:
    world = World(actuator(ship))
    await world.play()
    assert world.state.status == "waiting"
    assert world.send("Shipped", b'{"parcel":"p1"}').outcome == "taken"
    await world.play()
    assert world.result == "p1"
    assert world.send("Shipped", b'{"parcel":"p2"}').outcome == "over"


async def test_an_event_sent_early_is_kept_and_consumed_first_come_first_taken() -> None:
    async def main(run: Run) -> list[str]:
        await run.sleep("1 hour")
        return [(await run.wait_for_event(Shipped)).parcel for _ in range(3)]

    world = World(actuator(main))
    for n in range(2):
        assert world.send("Shipped", b'{"parcel":"p%d"}' % n).outcome == "kept"
    await world.play()
    assert world.state.status == "waiting"
    world.send("Other", b"{}")
    assert world.send("Shipped", b'{"parcel":"last"}').outcome == "taken"
    await world.play()
    assert world.result == ["p0", "p1", "last"]


async def test_two_waits_of_one_name_take_events_in_their_own_order() -> None:
    async def main(run: Run) -> list[str]:
        async def one() -> str:
            return (await run.wait_for_event(Shipped)).parcel

        return list(await asyncio.gather(one(), one()))

    world = World(actuator(main))
    await world.play()
    world.send("Shipped", b'{"parcel":"a"}')
    world.send("Shipped", b'{"parcel":"b"}')
    await world.play()
    assert world.result == ["a", "b"]


async def test_an_event_that_does_not_come_expires() -> None:
    async def main(run: Run) -> str:
        match await run.wait_for_event(Shipped, timeout="1 day", name="parcel"):
            case Expired(deadline=deadline):
                return deadline.isoformat()
            case Shipped(parcel=parcel):
                return parcel

    world = await played(main)
    assert datetime.fromisoformat(world.result).timestamp() * 1000 == T0 + 86_400_000


async def test_an_event_that_fits_no_model_is_told_to_the_program() -> None:
    async def main(run: Run) -> str:
        try:
            await run.wait_for_event(Shipped)
        except BadArguments as wrong:
            return str(wrong)
        return "?"

    world = World(actuator(main))
    world.send("Shipped", b'{"wrong":1}')
    await world.play()
    assert "parcel" in world.result


async def test_an_event_that_met_a_cancelled_wait_reaches_the_next() -> None:
    async def main(run: Run) -> str:
        async def first() -> str:
            return (await run.wait_for_event(Shipped)).parcel

        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(first(), 60)
        return (await run.wait_for_event(Shipped)).parcel

    world = World(actuator(main))
    await world.play(until=lambda w: w.state.status == "waiting")
    # Both land before the pass looks: the timer first, then an event for the wait that the timer will cut.
    world.ring()
    assert world.send("Shipped", b'{"parcel":"kept"}').outcome == "taken"
    await world.play()
    assert world.result == "kept"
    world.restart()
    assert world.state.status == "done"


async def test_an_event_given_back_reaches_a_wait_that_is_open_already() -> None:
    async def main(run: Run) -> list[str]:
        async def take() -> str:
            return (await run.wait_for_event(Shipped)).parcel

        async def cut() -> str:
            try:
                return await asyncio.wait_for(take(), 60)
            except TimeoutError:
                return "cut"

        return list(await asyncio.gather(cut(), take()))

    world = World(actuator(main))
    await world.play(until=lambda w: w.state.status == "waiting")
    world.ring()
    world.send("Shipped", b'{"parcel":"kept"}')
    await world.play()
    assert world.result == ["cut", "kept"]
