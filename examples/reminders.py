"""Wake me at a time, also when nothing runs that could hold a timer.

onefold dev reminders.py
onefold timers create --owner agent-7 --name standup --cron "0 9 * * mon-fri" --tz Europe/Vienna --payload '"hi"'
onefold timers
onefold timers ack --owner agent-7 --name standup
"""

from __future__ import annotations

import onefold
from onefold import Step, port
from onefold.timers import Tick, timers


@port.dedupes("remind")
async def remind(step: Step, tick: Tick) -> None:
    """Called once a tick, again under the same `tick.id` after a crash. Whoever is woken acknowledges when done."""
    print(f"{tick.due_at:%Y-%m-%d %H:%M} UTC, {tick.owner}: {tick.key} {tick.payload}", flush=True)


reminders = timers("reminders", to=remind)
app = onefold.App(reminders, remind)
