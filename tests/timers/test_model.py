"""Sequences by chance, with restarts, crashes and a place that is down, against a model of plain dicts."""

from __future__ import annotations

import asyncio
import os
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from onefold.testing import staged
from onefold.timers import Ack, Acked, At, Conflict, Create, End, Ended, Every, Scheduled, Supersede, TickId, Unknown
from onefold.timers.planning import spread
from tests.timers.home import HOURLY, OWNER, SCHEDULE, START, Home, Owner, tick_id
from tests.timers.laws import check_alarm, check_history, check_owner

DEEP = int(os.environ.get("ONEFOLD_TIMERS_EXAMPLES", "30"))
QUARTERS = Every("*/15 * * * *", tz="UTC")

TRIGGERS = st.sampled_from(["hourly", "quarters", "soon", "past"])
STEPS = st.one_of(
    st.tuples(st.just("create"), TRIGGERS, st.booleans(), st.integers(0, 1)),
    st.tuples(st.just("supersede"), TRIGGERS, st.booleans(), st.integers(0, 1)),
    st.tuples(st.just("end")),
    st.tuples(st.just("ack")),
    st.tuples(st.just("ack again")),
    st.tuples(st.just("ack unknown")),
    st.tuples(st.just("later"), st.integers(1, 100)),
    st.tuples(st.just("away"), st.integers(1, 200)),
    st.tuples(st.just("restart")),
    st.tuples(st.just("crash")),
    st.tuples(st.just("down")),
    st.tuples(st.just("up")),
)


class Model:
    """One schedule as a dict, and the ticks that were to be delivered."""

    def __init__(self) -> None:
        self.it: dict[str, Any] | None = None
        self.delivered: list[TickId] = []
        self.last: TickId | None = None

    def plan(self, now: datetime) -> None:
        assert self.it is not None
        trigger, end = self.it["trigger"], self.it["ends_at"]
        if isinstance(trigger, At):
            due = trigger.instant if trigger.instant > now else None
        else:
            width = timedelta(minutes=60 if trigger == HOURLY else 15)
            due = START + ((now - START) // width + 1) * width
        self.it["due"] = due if due is not None and (end is None or due <= end) else None
        self.it["ended"] = self.it["due"] is None

    def begin(self, generation: int, event: Create | Supersede, now: datetime) -> None:
        content = {"trigger": event.trigger, "payload": event.payload, "ends_at": event.ends_at}
        self.it = {"generation": generation, **content, "due": None, "held": None, "sent": False, "ended": False}
        self.plan(now)

    def stands(self) -> Any:
        assert self.it is not None
        return Ended() if self.it["ended"] else Scheduled(SCHEDULE, self.it["generation"], self.it["due"])

    def create(self, event: Create, now: datetime) -> Any:
        if self.it is None:
            self.begin(0, event, now)
            return self.stands()
        for field in ("trigger", "payload", "ends_at"):
            if self.it[field] != getattr(event, field):
                return Conflict(SCHEDULE, field)
        return self.stands()

    def supersede(self, event: Supersede, now: datetime) -> Any:
        if self.it is None:
            return Unknown()
        if not self.it["ended"]:
            self.last = self.it["held"] or self.last
            self.begin(self.it["generation"] + 1, event, now)
        return self.stands()

    def end(self) -> Any:
        if self.it is None:
            return Unknown()
        self.last = self.it["held"] or self.last
        self.it.update(ended=True, due=None, held=None)
        return Ended()

    def ack(self, tick: TickId, now: datetime) -> Any:
        if self.it is None:
            return Unknown()
        if tick == self.it["held"]:
            self.it.update(held=None, sent=False)
            self.last = tick
            self.plan(now)
            return Acked()
        return Acked() if tick == self.last else Unknown()

    def ring(self, now: datetime, *, up: bool) -> None:
        """What is due by now becomes the one tick; it is delivered if its place is up."""
        if self.it is None or self.it["ended"]:
            return
        if self.it["due"] is not None:
            tick = tick_id(self.it["due"], self.it["generation"])
            if self.it["due"] + timedelta(milliseconds=spread(tick)) <= now:
                self.it.update(held=tick, due=None, sent=False)
        if up and self.it["held"] is not None and not self.it["sent"]:
            self.it["sent"] = True
            self.delivered.append(self.it["held"])


class Run:
    """A home and its model, moved by the same steps."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.model = Model()
        self.up = True
        self.count = 0

    @property
    def now(self) -> datetime:
        moment: datetime = self.home.stage.clock.moment
        return moment

    async def step(self, name: str, *args: Any) -> None:
        self.count += 1
        await getattr(self, name.replace(" ", "_"))(*args)
        self.model.ring(self.now, up=self.up)
        await self.home.stage.settle()
        await self.compare()

    def content(self, which: str, ending: bool, payload: int) -> tuple[Any, ...]:
        soon = At(START + timedelta(minutes=(self.now - START) // timedelta(minutes=50) * 50 + 50))
        triggers = {"hourly": HOURLY, "quarters": QUARTERS, "soon": soon, "past": At(START)}
        return triggers[which], payload, (START + timedelta(hours=4) if ending else None)

    async def create(self, *chosen: Any) -> None:
        event = Create(f"c{self.count}", OWNER, "standup", *self.content(*chosen))
        assert await self.home.say(event) == self.model.create(event, self.now)

    async def supersede(self, *chosen: Any) -> None:
        event = Supersede(f"s{self.count}", SCHEDULE, *self.content(*chosen))
        assert await self.home.say(event) == self.model.supersede(event, self.now)

    async def end(self) -> None:
        assert await self.home.say(End(f"e{self.count}", SCHEDULE)) == self.model.end()

    async def ack(self) -> None:
        tick = (self.model.it or {}).get("held") or tick_id(START)
        assert await self.home.say(Ack(f"a{self.count}", tick)) == self.model.ack(tick, self.now)

    async def ack_again(self) -> None:
        tick = self.model.last or tick_id(START)
        assert await self.home.say(Ack(f"a{self.count}", tick)) == self.model.ack(tick, self.now)

    async def ack_unknown(self) -> None:
        tick = tick_id(START - timedelta(days=1), 7)
        assert await self.home.say(Ack(f"a{self.count}", tick)) == self.model.ack(tick, self.now)

    async def later(self, minutes: int) -> None:
        await self.home.later(f"{minutes}m")

    async def away(self, minutes: int) -> None:
        """Nobody is there for so long."""
        await self.home.stage.close()
        self.home.stage.clock.step_to(self.home.stage.clock.now() + minutes * 60_000)
        await self.home.stage.open()

    async def restart(self) -> None:
        await self.home.stage.restart()

    async def crash(self) -> None:
        await self.home.stage.crash()

    async def down(self) -> None:
        self.up = False
        self.home.owner.failing = [ConnectionError("down")] * 10_000

    async def up_again(self) -> None:
        self.up = True
        self.home.owner.failing = []
        host, caller = self.home.stage.host, self.home.stage.caller()
        for item in await host.parked_list(caller=caller):
            await host.parked_retry(item.id, caller=caller)
        await self.home.later("16m")  # the longest wait between two tries

    async def compare(self) -> None:
        facts = await self.home.facts()
        check_history(facts)
        check_owner(self.home.owner, facts)
        await check_alarm(self.home)
        it = self.model.it
        if it is None:
            return
        shown = await self.home.shown()
        assert (shown.generation, shown.next_due, shown.held, shown.ended) == (
            it["generation"],
            it["due"],
            it["held"],
            it["ended"],
        )
        assert self.home.owner.taken == self.model.delivered


async def play(steps: list[tuple[Any, ...]], store: str | Path) -> None:
    owner = Owner()
    timers = owner.timers()
    async with staged(timers, store=store) as stage:
        run = Run(Home(stage, owner, timers))
        for name, *args in steps:
            await run.step("up again" if name == "up" else name, *args)


HOUR = ("create", "hourly", False, 0)
OVER = ("supersede", "quarters", True, 1)
# Every interesting state is reached in every run: held, superseded while held, in flight, parked; down and away.
LIVES = (
    [HOUR, ("later", 61), ("ack",), ("ack again",), ("later", 60), OVER, ("later", 20), ("ack",), ("end",), HOUR],
    [HOUR, ("down",), ("later", 61), ("crash",), OVER, ("up",), ("later", 16), ("restart",), ("ack",), ("away", 200)],
    [HOUR, ("down",), ("later", 90), ("later", 100), ("later", 100), ("up",), ("ack",), ("away", 150), ("crash",)],
    [OVER, ("ack",), ("create", "soon", True, 1), ("away", 100), ("ack unknown",), ("ack",), OVER],
    [("create", "past", False, 0), HOUR, OVER, ("end",), ("later", 100)],
)


def known(test: Any) -> Any:
    """The test with these lives among its examples."""
    for life in LIVES:
        test = example(life)(test)
    return test


@known
@settings(max_examples=DEEP, suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, max_size=20))
def test_whatever_is_said_and_whatever_breaks_the_model_agrees_in_memory(steps: list[tuple[Any, ...]]) -> None:
    asyncio.run(play(steps, "memory:"))


@known
@settings(max_examples=max(DEEP // 4, 5), suppress_health_check=list(HealthCheck))
@given(st.lists(STEPS, max_size=15))
def test_whatever_is_said_and_whatever_breaks_the_model_agrees_on_sqlite(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(steps, Path(folder) / "store"))
