"""timers - wake me at a time, or on a schedule, even when nothing runs that could hold a timer.

For: `timers(name, to=...)`, a module whose actors are schedules: one for each (owner, key), kept under the hash of
both. A schedule mints ticks; each leaves once, through one port, and waits until its owner acknowledged it.
Imports: machine, kernel, almanac, terms.  Imported by: what people write; host and cli, for the words of its ticks.
Never: a clock, a thread, a timeout. The next instant is the actor's alarm; a tick that nobody acknowledges is held.
Was wrong once: the instants counted up from the first. After a day of downtime a day's ticks rang at once.

    words.py      events, replies, ticks, and what a read shows
    facts.py      what is decided, the state it adds up to, and `evolve`
    planning.py   which instant comes next, and where new zone data moves it
    chart.py      the schedule and its tick as a state chart
    module.py     an event, the alarm or an answer through the chart, as a decision
    making.py     `timers`
"""

from onefold.almanac import At, Every
from onefold.timers.making import timers
from onefold.timers.words import (
    Ack,
    Acked,
    Conflict,
    Create,
    End,
    Ended,
    Scheduled,
    Supersede,
    Tick,
    TickId,
    Timer,
    Unknown,
    schedule_id,
)

__all__ = [
    "Ack",
    "Acked",
    "At",
    "Conflict",
    "Create",
    "End",
    "Ended",
    "Every",
    "Scheduled",
    "Supersede",
    "Tick",
    "TickId",
    "Timer",
    "Unknown",
    "schedule_id",
    "timers",
]
