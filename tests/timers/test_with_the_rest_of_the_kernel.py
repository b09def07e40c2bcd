"""Schedules beside what the kernel does for every module: eviction, pruning, long values, bounds, double runs."""

from __future__ import annotations

import asyncio

import pytest

from onefold.host.modules import FactRow
from onefold.kernel.twice import twice
from onefold.terms.errors import StoreUnavailable, TooLarge
from onefold.timers import Ack, Acked, Scheduled, Supersede
from onefold.timers import schedule_id as id_of
from onefold.timers.facts import Kept
from tests.guarantees.test_a_failed_commit_takes_its_answers_back import failing
from tests.timers.conftest import Homes
from tests.timers.home import HOURLY, SCHEDULE, START, Home, Owner, at, create, tick_id
from tests.timers.laws import check_history

LONG = "x" * 300_000


async def test_schedules_that_do_not_fit_into_memory_ring_all_the_same(homes: Homes) -> None:
    home = await homes(settings={"node": {"capacity": 3}})
    keys = [f"k{number}" for number in range(40)]
    await asyncio.gather(*(home.say(create(id=key, key=key)) for key in keys))
    await home.stage.settle()
    assert home.stage.host.resident_count <= 3
    await home.later("61m")
    assert sorted(str(tick) for tick in home.owner.taken) == sorted(
        str(tick_id(at(hours=1), schedule=id_of("agent-7", key))) for key in keys
    )


async def test_an_evicted_schedule_rings_on_time_without_a_restart(home: Home) -> None:
    from onefold.terms.ids import ActorId

    await home.say(create())
    await home.stage.settle()
    assert home.stage.host._core.node.evict(ActorId("reminders", None, SCHEDULE))
    await home.later("61m")
    assert home.owner.due == [at(hours=1)]


async def test_what_is_behind_a_snapshot_may_be_pruned(homes: Homes) -> None:
    owner = Owner()
    module = owner.timers()
    module.snapshot_every = 10
    home = await homes(owner=owner, to=module)
    await home.say(create())
    for hour in range(1, 9):
        await home.later("1h 1m" if hour == 1 else "1h")
        await home.say(Ack(f"a{hour}", tick_id(at(hours=hour))))
    before = await home.shown()
    pruned = await home.stage.host.prune(module, SCHEDULE, caller=home.stage.caller())
    assert pruned.facts > 0
    rows: list[FactRow] = await home.stage.host.history(module, SCHEDULE, caller=home.stage.caller())
    assert isinstance(rows[0].fact, Kept)
    await home.stage.restart()
    assert await home.shown() == before
    assert await home.say(create()) == Scheduled(SCHEDULE, 0, at(hours=1)), "an id counts for ever, pruned or not"
    assert await home.say(Ack("b1", tick_id(at(hours=8)))) == Acked()
    await home.later("1h")
    assert home.owner.due[-1] == at(hours=9)


async def test_a_long_payload_reaches_its_owner_whole(home: Home) -> None:
    await home.say(create(payload=LONG))
    await home.later("61m")
    assert [tick.payload for tick in home.owner.ticks] == [LONG]
    await home.stage.restart()
    assert (await home.shown()).payload == LONG


async def test_a_payload_that_is_too_long_is_refused_and_nothing_exists(home: Home) -> None:
    with pytest.raises(TooLarge):
        await home.say(create(payload="x" * 1_100_000))
    assert (await home.stage.host.actors("reminders", caller=home.stage.caller())).items == []
    assert await home.say(create()) == Scheduled(SCHEDULE, 0, at(hours=1)), "the id is still free"


async def test_what_a_repeat_gets_is_the_first_answer(home: Home) -> None:
    """Also when the schedule has moved on meanwhile: an event counts once, and has one reply."""
    first = await home.say(create())
    await home.say(Supersede("s1", SCHEDULE, HOURLY, "new"))
    assert await home.say(create()) == first


async def test_events_at_once_are_taken_one_after_the_other(home: Home) -> None:
    replies = await asyncio.gather(
        *(home.say(create(id=f"c{number}")) for number in range(20)),
        *(home.say(Supersede(f"s{number}", SCHEDULE, HOURLY, number)) for number in range(20)),
    )
    assert (await home.shown()).generation == 20
    assert {type(reply).__name__ for reply in replies} <= {"Scheduled", "Conflict"}
    check_history(await home.facts())


def test_its_functions_give_the_same_twice() -> None:
    doubled = twice(Owner().timers())
    state = doubled.initial
    for event in (create(), create(id="c2", payload=0), Supersede("s1", SCHEDULE, HOURLY, [1])):
        for fact in doubled.decide(state, event, START).facts:
            state = doubled.evolve(state, fact)
    assert doubled.on_alarm is not None
    assert doubled.wake is not None
    for fact in doubled.on_alarm(state, at(hours=2)).facts:
        state = doubled.evolve(state, fact)
    assert doubled.wake(state) is None
    assert doubled.voids(state, "another key")


async def test_superseding_that_the_disk_refused_voids_nothing(home: Home) -> None:
    home.owner.failing = [ConnectionError("down")] * 2
    await home.say(create())
    await home.later("60m 1s")
    home.stage.failpoint = failing("before-commit")
    with pytest.raises(StoreUnavailable):
        await home.say(Supersede("s1", SCHEDULE, HOURLY, "new"))
    home.stage.live_on()
    await home.later("10m")
    assert home.owner.taken == [tick_id(at(hours=1))]
    assert (await home.told())[-1] == "TickSent"


async def test_people_are_told_of_a_tick_that_was_given_up_on(homes: Homes) -> None:
    """The notice is owed by the schedule too, and is none of the rows that it voids."""
    people = {"people": {"boss": {"notify": ["mailto:boss@example.com"]}}, "alerts": ["boss"]}
    home = await homes(settings=people)
    home.owner.failing = [ConnectionError("down")] * 99
    await home.say(create())
    await home.later("9h")
    assert len([line for line in home.stage.said if "reminders" in line and "down" in line]) == 1
    assert [item.kind for item in await home.stage.host.parked_list(caller=home.stage.caller())] == ["owed"]
