"""A small world for schedules: an owner that takes ticks, and one schedule to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from onefold import Port, Step, port
from onefold.terms.duration import duration_ms
from onefold.testing import Stage
from onefold.timers import At, Create, Every, Tick, TickId, Timer, schedule_id
from onefold.timers.making import Timers
from onefold.timers.making import timers as make

START = datetime(2026, 1, 1, tzinfo=UTC)  # where a stage's clock begins
OWNER, KEY = "agent-7", "standup"
SCHEDULE = schedule_id(OWNER, KEY)
HOURLY = Every("0 * * * *", tz="UTC")
SPREAD = timedelta(milliseconds=250)


def at(*, days: float = 0, hours: float = 0, minutes: float = 0) -> datetime:
    """So long after the beginning."""
    return START + timedelta(days=days, hours=hours, minutes=minutes)


def create(trigger: At | Every = HOURLY, id: str = "c1", key: str = KEY, **values: Any) -> Create:
    return Create(id, OWNER, key, trigger, **{"payload": {"say": "hi"}, **values})


def tick_id(due_at: datetime, generation: int = 0, schedule: str = SCHEDULE) -> TickId:
    return TickId(schedule, generation, due_at)


class Owner:
    """Takes ticks; fails when told to. `ticks` holds every delivery, repeats too."""

    def __init__(self, name: str = "remind") -> None:
        self.ticks: list[Tick] = []
        self.keys: list[str] = []
        self.at: list[datetime] = []
        self.failing: list[Exception] = []
        self.taken: list[TickId] = []  # those that were confirmed
        self.clock: Any = None
        self.meanwhile: Any = None  # a coroutine function run while the send is in flight

        @port.dedupes(name)
        async def remind(step: Step, tick: Tick) -> None:
            self.ticks.append(tick)
            self.keys.append(step.key)
            self.at.append(self.clock.moment)
            if self.meanwhile is not None:
                await self.meanwhile(tick)
            if self.failing:
                raise self.failing.pop(0)
            self.taken.append(tick.id)

        self.port: Port[Tick, None] = remind

    @property
    def due(self) -> list[datetime]:
        """When the ticks it got were due, each once."""
        return list(dict.fromkeys(tick.due_at for tick in self.ticks))

    def timers(self, name: str = "reminders") -> Timers:
        return make(name, to=self.port)


class Home:
    """A stage with one module of schedules and its owner."""

    def __init__(self, stage: Stage, owner: Owner, timers: Timers) -> None:
        self.stage = stage
        self.owner = owner
        self.timers = timers
        owner.clock = stage.clock

    async def later(self, duration: str) -> None:
        """Let time pass: as `Stage.advance`, without stopping at each beat of the janitor."""
        clock = self.stage.clock
        end = clock.now() + duration_ms(duration)
        while True:
            await self.stage.settle()
            now = clock.now()
            due = self.stage.host.next_due
            stop = end if due is None or due <= now else min(end, due)
            clock.step_to(stop)
            if stop >= end:
                break
        await self.stage.settle()

    async def say(self, event: Any, principal: str | None = None) -> Any:
        return await self.stage.host.deliver(self.timers, event, caller=self.stage.caller(principal))

    async def shown(self, schedule: str = SCHEDULE) -> Timer:
        timer = await self.stage.host.read(self.timers, schedule, caller=self.stage.caller())
        assert isinstance(timer, Timer)
        return timer

    async def facts(self, schedule: str = SCHEDULE) -> Sequence[Any]:
        rows = await self.stage.host.history(self.timers, schedule, caller=self.stage.caller())
        return [row.fact for row in rows]

    async def told(self, schedule: str = SCHEDULE) -> list[str]:
        """The facts by their names."""
        return [type(fact).__name__ for fact in await self.facts(schedule)]

    async def alarm(self, schedule: str = SCHEDULE) -> datetime | None:
        return await self.stage.host.alarm(self.timers, schedule, caller=self.stage.caller())
