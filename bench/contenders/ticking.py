"""bench.contenders.ticking - Onefold's timers: how late their ticks are, and what a million of them cost at rest.

For: `minute TIMERS SECONDS`: so many schedules due within so many seconds; `grow TIMERS 0`: so many that sleep until
tomorrow; `probe TIMERS TIMES`: how late single ticks are beside them, and what they cost.
Never: calls a tick early or late by another instant than it was promised for: its due instant and its spread.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

import onefold
from bench.answering import answer_async
from bench.measures import lateness, median, resident_kib
from onefold import Step, port
from onefold.timers import At, Create, Scheduled, Tick, TickId, schedule_id, timers
from onefold.timers.planning import spread

AT_ONCE = 256  # creates under way
LEAD_S = 3.0
WARM = 300  # creates that show how fast the others will be
DAY_S = 86_400
LATER_S = 600  # sleepers are due over these seconds of tomorrow
PROBE_S = 0.3  # from a create to its instant: it must be committed by then
PATIENCE_S = 60.0

FIRED: defaultdict[str, list[float]] = defaultdict(list)
FULL = asyncio.Event()  # set when as many fired as are waited for
WANTED = [0]


@port.dedupes("fire")
async def fire(step: Step, tick: Tick) -> None:
    FIRED[tick.key].append(time.time())
    if len(FIRED) >= WANTED[0]:
        FULL.set()


def expect(count: int) -> None:
    """From now on `count` timers are waited for."""
    FIRED.clear()
    WANTED[0] = count
    FULL.clear()


async def fired(seconds: float) -> None:
    """Wait until they have fired, for at most so long."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(FULL.wait(), seconds)


clocks = timers("clocks", to=fire)


def instant(seconds: float) -> datetime:
    """Whole milliseconds, as rows hold them."""
    return datetime.fromtimestamp(int(seconds * 1000) / 1000, UTC)


async def armed(app: onefold.App, dues: Iterable[tuple[str, datetime]]) -> None:
    """Create these schedules, each acknowledged after its commit."""
    ahead = iter(dues)

    async def creator() -> None:
        for key, due in ahead:
            reply = await app.deliver(clocks, Create(key, "bench", key, At(due)))
            assert isinstance(reply, Scheduled), reply

    await asyncio.gather(*(creator() for _ in range(AT_ONCE)))


def promised(key: str, due: datetime) -> float:
    """When the tick was to leave: its exact instant and its spread."""
    return due.timestamp() + spread(TickId(schedule_id("bench", key), 0, due)) / 1000


async def minute(app: onefold.App, count: int, seconds: float) -> dict[str, Any]:
    """Lateness in ms of `count` ticks: from the promised instant until the owner's function ran, after the commit."""
    tomorrow = instant(time.time() + DAY_S)
    begun = time.time()
    await armed(app, ((f"warm {number}", tomorrow) for number in range(WARM)))
    each = (time.time() - begun) / WARM
    begun = time.time()
    first = begun + LEAD_S + 1.5 * count * each
    dues = {f"t{number}": instant(first + number * seconds / count) for number in range(count)}
    expect(count)
    await armed(app, dues.items())
    took = time.time() - begun
    if begun + took > first:
        raise RuntimeError(f"{count} creates took {took:.1f} s, longer than the lead")
    await asyncio.sleep(max(0.0, first - time.time() - 0.5))
    cpu = time.process_time()
    await fired(first + seconds + PATIENCE_S - time.time())
    cpu = time.process_time() - cpu
    told = lateness([(promised(key, due), FIRED[key]) for key, due in dues.items()])
    raw = sorted((FIRED[key][0] - due.timestamp()) * 1e3 for key, due in dues.items() if FIRED[key])
    return {**told, "armed_s": took, "cpu_ms": cpu / count * 1e3, "with_spread_p50": median(raw)}


async def grow(app: onefold.App, count: int, _: float) -> dict[str, Any]:
    """`count` schedules that sleep until tomorrow; how fast they were created."""
    tomorrow = time.time() + DAY_S
    begun = time.perf_counter()
    await armed(app, ((f"s{number}", instant(tomorrow + number % LATER_S)) for number in range(count)))
    return {"a_second": count / (time.perf_counter() - begun)}


async def probe(app: onefold.App, sleepers: int, times: float) -> dict[str, Any]:
    """How late single ticks are while `sleepers` more sleep until tomorrow."""
    late = []
    for number in range(int(times)):
        key, due = f"probe {number} {time.time()}", instant(time.time() + PROBE_S)
        expect(1)
        await armed(app, [(key, due)])
        await fired(PATIENCE_S)
        late.append((FIRED[key][0] - promised(key, due)) * 1e3)
    return {"late_ms": median(late), "kib": resident_kib()}


async def main(folder: Path) -> None:
    async with onefold.App(clocks, fire, store=folder / "store") as app:
        await armed(app, [(f"first {time.time()}", instant(time.time() + DAY_S))])  # `ready` is a durable answer
        await answer_async(
            {
                "minute": lambda count, seconds: minute(app, count, seconds),
                "grow": lambda count, seconds: grow(app, count, seconds),
                "probe": lambda count, times: probe(app, count, times),
            }
        )


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(Path(sys.argv[1])))
