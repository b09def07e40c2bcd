"""One life of a process whose zone data is another release: run by a test, with a changed `tzdata` before it.

Opens the store, says which release it has, goes on for so many minutes of its own clock, and tells what the owner got.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from onefold.almanac import tz_version
from onefold.terms.codec import canonical
from onefold.terms.instant import text, up
from onefold.testing import staged
from onefold.timers import Create
from tests.timers.home import SCHEDULE, Home, Owner
from tests.timers.test_planning import VIENNA


async def main(store: Path, start: int, minutes: int) -> None:
    owner = Owner()
    timers = owner.timers()
    async with staged(timers, store=store) as stage:
        home = Home(stage, owner, timers)
        stage.clock.step_to(start)
        if minutes == 0:
            await home.say(Create("c1", "agent-7", "standup", VIENNA))
        await stage.settle()
        row = stage.host.next_due
        await home.later(f"{minutes}m")
        shown = await home.shown()
        told = {
            "release": tz_version(),
            "armed": None if row is None else text(row),
            "next": None if shown.next_due is None else text(up(shown.next_due)),
            "got": [text(up(due)) for due in owner.due],
            "planned": [fact.tz for fact in await home.facts(SCHEDULE) if type(fact).__name__ == "Planned"],
        }
        sys.stdout.write(canonical(told).decode())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
