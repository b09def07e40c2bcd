"""Schedules on a host, on every store: ticks come when they are due, once, and are held until acknowledged."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from onefold.terms.errors import KeyConflict, LoadRefused
from onefold.timers import Ack, Acked, At, Create, End, Ended, Every, Scheduled, Supersede, Tick, Unknown, timers
from onefold.timers import schedule_id as id_of
from onefold.timers.facts import TickSealed, TickSent, TickVoid
from onefold.timers.planning import spread
from tests.timers.conftest import Homes
from tests.timers.home import HOURLY, SCHEDULE, START, Home, Owner, at, create, tick_id

FIRST = tick_id(at(hours=1))


# --- AW29: who is who ------------------------------------------------------------------------------


async def test_a_schedule_is_an_actor_of_owner_and_key(home: Home) -> None:
    assert await home.say(create()) == Scheduled(SCHEDULE, 0, at(hours=1))
    await home.say(create(id="c2", key="lunch"))
    keys = {SCHEDULE, id_of("agent-7", "lunch")}
    page = await home.stage.host.actors("reminders", caller=home.stage.caller())
    assert {item["key"] for item in page.items} == keys


async def test_its_history_is_told_in_six_facts_and_their_plans(home: Home) -> None:
    await home.say(create())
    await home.later("61m")
    await home.say(Ack("a1", FIRST))
    await home.say(Supersede("s1", SCHEDULE, HOURLY, "new"))
    await home.say(End("e1", SCHEDULE))
    assert await home.told() == [
        *("Scheduled", "Planned", "TickSealed", "TickSent", "TickAcked", "Planned"),
        *("Superseded", "Scheduled", "Planned", "Ended"),
    ]


async def test_two_principals_never_meet(home: Home) -> None:
    await home.say(create(), principal="a")
    assert await home.say(create(id="c9", payload="other"), principal="b") == Scheduled(SCHEDULE, 0, at(hours=1))
    assert await home.say(End("e1", SCHEDULE), principal="c") == Unknown()
    await home.later("61m")
    assert sorted(str(tick.payload) for tick in home.owner.ticks) == ["other", "{'say': 'hi'}"]
    assert len(set(home.owner.keys)) == 2


# --- AW30 ------------------------------------------------------------------------------------------


async def test_creating_it_again_moves_no_alarm_and_adds_no_fact(home: Home) -> None:
    await home.say(create())
    before = (await home.facts(), await home.alarm())
    await home.later("10m")
    assert await home.say(create(id="c2")) == Scheduled(SCHEDULE, 0, at(hours=1))
    assert (await home.facts(), await home.alarm()) == before


async def test_one_event_id_is_one_event(home: Home) -> None:
    await home.say(create())
    await home.say(Supersede("s1", SCHEDULE, HOURLY, "new"))
    assert await home.say(Supersede("s1", SCHEDULE, HOURLY, "new")) == Scheduled(SCHEDULE, 1, at(hours=1))
    assert (await home.shown()).generation == 1
    with pytest.raises(KeyConflict):
        await home.say(Supersede("s1", SCHEDULE, HOURLY, "newer"))


# --- AW31, AW32: when ------------------------------------------------------------------------------


async def test_each_instant_of_a_schedule_is_a_tick_when_the_owner_keeps_up(home: Home) -> None:
    async def keep_up(tick: Tick) -> None:
        await home.say(Ack(f"ack {tick.due_at}", tick.id))

    home.owner.meanwhile = keep_up
    await home.say(create())
    await home.later("5h")
    await home.later("1m")
    assert home.owner.due == [at(hours=hour) for hour in range(1, 6)]
    assert len(home.owner.ticks) == 5


async def test_one_instant_is_one_tick_and_then_the_end(home: Home) -> None:
    await home.say(create(At(at(hours=3))))
    await home.later("4h")
    assert not (await home.shown()).ended
    assert await home.say(Ack("a1", tick_id(at(hours=3)))) == Acked()
    assert (await home.shown()).ended
    await home.later("9d")
    assert home.owner.due == [at(hours=3)]


async def test_none_comes_past_the_end(home: Home) -> None:
    await home.say(create(ends_at=at(hours=2)))
    for hour in (1, 2):
        await home.later("1h 1m" if hour == 1 else "1h")
        await home.say(Ack(f"a{hour}", tick_id(at(hours=hour))))
    await home.later("1d")
    assert home.owner.due == [at(hours=1), at(hours=2)]
    assert (await home.shown()).ended
    assert await home.alarm() is None


async def test_instants_missed_in_downtime_are_no_ticks(home: Home) -> None:
    """The pending one is late, not lost; the five after it are missed; the next is after now."""
    await home.say(create())
    await home.stage.close()
    home.stage.clock.step_to(home.stage.clock.now() + 6 * 3_600_000 + 1_800_000)
    await home.stage.open()
    await home.stage.settle()
    assert home.owner.due == [at(hours=1)]
    await home.say(Ack("a1", FIRST))
    await home.later("1h")
    assert home.owner.due == [at(hours=1), at(hours=7)]


async def test_an_evicted_actors_alarm_fires_after_a_restart(home: Home) -> None:
    """AW38, for schedules: nothing of it is in memory, and nobody asks for it."""
    await home.say(create())
    await home.stage.settle()
    await home.stage.restart()
    assert home.stage.host.resident_count == 0
    await home.later("59m")
    assert home.owner.ticks == []
    await home.later("2m")
    assert home.owner.due == [at(hours=1)]


# --- AW33, AW36: ticks and their delivery ----------------------------------------------------------


async def test_the_due_instant_is_exact_and_the_delivery_is_put_off_by_its_hash(home: Home) -> None:
    for key in ("a", "b", "c", "d", "e"):
        await home.say(create(id=key, key=key))
    await home.later("61m")
    assert home.owner.due == [at(hours=1)]
    for tick, moment in zip(home.owner.ticks, home.owner.at, strict=True):
        assert moment == tick.due_at + timedelta(milliseconds=spread(tick.id))
    assert len(set(home.owner.at)) > 1


async def test_each_retry_is_the_same_tick_under_the_same_key(home: Home) -> None:
    home.owner.failing = [ConnectionError("down")] * 3
    await home.say(create())
    await home.later("70m")
    assert len(home.owner.ticks) == 4
    assert len({(key, str(tick.id)) for key, tick in zip(home.owner.keys, home.owner.ticks, strict=True)}) == 1
    assert (await home.told()).count("TickSent") == 1


async def test_a_tick_costs_one_ring_and_no_tombstone(home: Home) -> None:
    """The alarm is written exactly when the actor comes to rest: nothing rings for a tick that is done."""
    from onefold.kernel.tables import OWED, SENT
    from onefold.store.contract import Query

    await home.say(create())
    await home.later("90m")
    await home.say(Ack("a1", FIRST))
    await home.later("90m")
    assert home.stage.host.rung == 2
    space = await home.stage.host.space("main")
    assert [list(rows) for rows in await space.look(Query(OWED), Query(SENT))] == [[], []]


# --- AW35: held ------------------------------------------------------------------------------------


async def test_a_held_tick_is_neither_repeated_nor_timed_out(home: Home) -> None:
    await home.say(create())
    await home.later("40d")
    assert len(home.owner.ticks) == 1
    assert (await home.shown()).held == FIRST
    assert await home.alarm() is None
    assert await home.say(Ack("a1", FIRST)) == Acked()
    assert (await home.shown()).next_due == at(days=40, hours=1)


async def test_an_acknowledgement_that_is_late_unknown_or_repeated_changes_nothing(home: Home) -> None:
    await home.say(create())
    await home.later("61m")
    assert await home.say(Ack("a1", FIRST)) == Acked()
    before = (await home.facts(), await home.alarm())
    assert await home.say(Ack("a2", FIRST)) == Acked()
    assert await home.say(Ack("a3", tick_id(at(hours=9)))) == Unknown()
    assert await home.say(Ack("a4", tick_id(START, schedule=id_of("nobody", "nothing")))) == Unknown()
    assert (await home.facts(), await home.alarm()) == before


async def test_an_owner_that_acknowledges_from_within_the_call_is_heard(home: Home) -> None:
    async def at_once(tick: Tick) -> None:
        assert await home.say(Ack("a1", tick.id)) == Acked()

    home.owner.meanwhile = at_once
    await home.say(create(At(at(hours=1))))
    await home.later("2h")
    assert (await home.shown()).ended
    assert len(home.owner.ticks) == 1


# --- AW34: the fence -------------------------------------------------------------------------------


async def test_superseding_voids_a_tick_that_has_not_left(home: Home) -> None:
    home.owner.failing = [ConnectionError("down")] * 99
    await home.say(create())
    await home.later("61m")
    tries = len(home.owner.ticks)
    home.owner.failing = []
    assert await home.say(Supersede("s1", SCHEDULE, Every("30 * * * *", tz="UTC"), "new")) == Scheduled(
        SCHEDULE, 1, at(hours=1, minutes=30)
    )
    await home.later("20m")
    assert len(home.owner.ticks) == tries
    assert TickVoid(FIRST, "its actor does not want it sent any more") in await home.facts()
    await home.later("10m")
    assert home.owner.ticks[-1].id == tick_id(at(hours=1, minutes=30), 1)


async def test_superseding_while_a_send_is_in_flight_lets_it_stay_sent(home: Home) -> None:
    async def superseded(tick: Tick) -> None:
        home.owner.meanwhile = None
        await home.say(Supersede("s1", SCHEDULE, Every("30 * * * *", tz="UTC"), "new"))

    home.owner.meanwhile = superseded
    await home.say(create())
    await home.later("61m")
    facts = await home.facts()
    assert [fact for fact in facts if isinstance(fact, TickSent | TickVoid)] == [TickSent(FIRST)]
    assert len(home.owner.ticks) == 1
    assert (await home.shown()).held is None


async def test_a_send_in_flight_that_fails_after_its_generation_is_not_tried_again(home: Home) -> None:
    async def superseded(tick: Tick) -> None:
        home.owner.meanwhile = None
        await home.say(Supersede("s1", SCHEDULE, At(at(days=9)), "new"))
        raise ConnectionError("the line went down")

    home.owner.meanwhile = superseded
    await home.say(create())
    await home.later("3h")
    assert [tick.id for tick in home.owner.ticks] == [FIRST]
    assert any(isinstance(fact, TickVoid) for fact in await home.facts())


async def test_ending_it_voids_what_was_parked(home: Home) -> None:
    """A tick that was given up on after hours goes with its schedule; nobody has to drop it by hand."""
    home.owner.failing = [ConnectionError("down")] * 99
    await home.say(create())
    await home.later("9h")
    caller = home.stage.caller()
    assert [item.kind for item in await home.stage.host.parked_list(caller=caller)] == ["owed"]
    assert await home.say(End("e1", SCHEDULE)) == Ended()
    await home.stage.settle()
    assert await home.stage.host.parked_list(caller=caller) == []
    assert await home.alarm() is None


async def test_a_parked_tick_is_dropped_and_the_schedule_goes_on(home: Home) -> None:
    home.owner.failing = [ConnectionError("down")] * 99
    await home.say(create())
    await home.later("9h")
    home.owner.failing = []
    caller = home.stage.caller()
    (item,) = await home.stage.host.parked_list(caller=caller)
    await home.stage.host.parked_drop(item.id, reason="the inbox is gone", caller=caller)
    await home.later("1h 1m")
    assert TickVoid(FIRST, "the inbox is gone") in await home.facts()
    assert home.owner.ticks[-1].due_at == at(hours=10)


async def test_a_superseded_tick_of_which_nothing_is_known_is_not_sent_after_a_crash(home: Home) -> None:
    home.owner.failing = [ConnectionError("down")] * 2
    await home.say(create())
    await home.later("60m 1s")
    await home.say(Supersede("s1", SCHEDULE, At(at(days=9)), "new"))
    tries = len(home.owner.ticks)
    await home.stage.crash()
    await home.later("3h")
    assert len(home.owner.ticks) == tries


# --- AW37: the owner meets running work ------------------------------------------------------------


async def test_a_tick_that_comes_again_after_a_crash_has_the_same_envelope(home: Home) -> None:
    home.owner.failing = [ConnectionError("down")]
    await home.say(create())
    await home.later("60m 1s")
    await home.stage.crash()
    await home.later("1d")
    assert len(home.owner.ticks) >= 2
    assert len(set(home.owner.keys)) == 1
    assert {tick.id for tick in home.owner.ticks} == {FIRST}


# --- snapshots, and what is refused at load --------------------------------------------------------


async def test_a_schedule_of_years_wakes_from_a_snapshot(homes: Homes) -> None:
    owner = Owner()
    module = owner.timers()
    module.snapshot_every = 10
    home = await homes(owner=owner, to=module)
    await home.say(create())
    for hour in range(1, 9):
        await home.later("1h 1m" if hour == 1 else "1h")
        await home.say(Ack(f"a{hour}", tick_id(at(hours=hour))))
    assert "Kept" in await home.told()
    before = await home.shown()
    await home.stage.restart()
    assert await home.shown() == before


async def test_two_modules_of_schedules_stand_beside_each_other(homes: Homes) -> None:
    other = Owner("ring")
    calls = timers("calls", to=other.port)
    home = await homes(calls)
    other.clock = home.stage.clock
    await home.say(create())
    await home.stage.host.deliver(calls, create(), caller=home.stage.caller())
    await home.later("61m")
    assert (len(home.owner.ticks), len(other.ticks)) == (1, 1)


@pytest.mark.parametrize(
    "to", ["remind", 7, None, "http://hooks.example.com/x", "https://", "https://a:b@example.com/"]
)
def test_a_place_that_takes_no_ticks_is_refused(to: object) -> None:
    with pytest.raises(LoadRefused, match="to: "):
        timers("reminders", to=to)  # type: ignore[arg-type]


@pytest.mark.parametrize("moment", [START, START + timedelta(days=400)])
async def test_an_end_may_be_far_away_or_at_once(home: Home, moment: datetime) -> None:
    reply = await home.say(create(ends_at=moment))
    assert (reply == Ended()) == (moment == START)
    sealed = [fact for fact in await home.facts() if isinstance(fact, TickSealed)]
    assert sealed == []


def test_a_create_names_its_schedule() -> None:
    assert Create("c1", "agent-7", "standup", HOURLY).schedule == SCHEDULE
