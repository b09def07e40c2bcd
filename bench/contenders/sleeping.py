"""bench.contenders.sleeping - Onefold with many sleeping runs: how late each is, and whether any is early or twice.

For: `sleep RUNS SECONDS`: so many runs due within so many seconds, 0 for one instant; `probe SLEEPERS
TIMES`: how late one run is beside so many others that sleep on.
Never: calls a run done before its result is committed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvloop
from pydantic import BaseModel

import onefold
from bench.answering import answer_async
from bench.measures import median, percentile
from onefold import Receipt, Run, actuator

AT_ONCE = 64  # starts under way
LEAD_S = 3.0
WARM = 300  # starts that show how fast the others will be


class Due(BaseModel):
    number: int
    at: datetime


WOKEN: defaultdict[int, list[float]] = defaultdict(list)


@actuator(tool=False)
async def sleeper(run: Run, due: Due) -> int:
    """Sleep until it is due, and note when it went on."""
    await run.sleep_until(due.at)
    WOKEN[due.number].append(time.time())
    return due.number


def instant(seconds: float) -> datetime:
    """Whole milliseconds, as rows hold them."""
    return datetime.fromtimestamp(int(seconds * 1000) / 1000, UTC)


async def started(app: onefold.App, dues: list[Due]) -> list[Receipt[int]]:
    receipts: list[Receipt[int]] = []
    ahead = iter(dues)

    async def starter() -> None:
        for due in ahead:
            receipts.append(await app.start(sleeper, due))

    await asyncio.gather(*(starter() for _ in range(AT_ONCE)))
    return receipts


async def sleep(app: onefold.App, runs: int, seconds: float) -> dict[str, Any]:
    """Lateness in ms of `runs` runs: from due until the caller heard the committed result."""
    begun = time.time()
    for receipt in await started(app, [Due(number=-1, at=instant(begun))] * WARM):
        await receipt.result()
    each = (time.time() - begun) / WARM
    WOKEN.clear()
    begun = time.time()
    first = begun + LEAD_S + 1.5 * runs * each
    dues = [Due(number=n, at=instant(first + n * seconds / runs)) for n in range(runs)]
    receipts = await started(app, dues)
    armed = time.time()
    if armed > first:
        raise RuntimeError(f"{runs} starts took {armed - begun:.1f} s, longer than the lead")
    late: list[float] = []

    async def ended(receipt: Receipt[int]) -> None:
        number = await receipt.result()
        late.append((time.time() - dues[number].at.timestamp()) * 1e3)

    waiting = asyncio.gather(*(ended(receipt) for receipt in receipts))
    await asyncio.sleep(max(0.0, first - time.time() - 0.5))
    cpu = time.process_time()
    await waiting
    early = sum(min(WOKEN[due.number]) < due.at.timestamp() for due in dues)
    return {
        "armed_s": armed - begun,
        "p50": median(late),
        "p99": percentile(late, 99),
        "most": max(late),
        "early": early,
        "twice": sum(len(each) > 1 for each in WOKEN.values()),
        "done": len(late),
        "cpu_ms": (time.process_time() - cpu) / runs * 1e3,
    }


async def probe(app: onefold.App, sleepers: int, times: float) -> dict[str, Any]:
    """How late single runs are while `sleepers` more sleep until tomorrow."""
    tomorrow = instant((datetime.now(UTC) + timedelta(days=1)).timestamp())
    await started(app, [Due(number=-1, at=tomorrow)] * sleepers)
    late = []
    for number in range(int(times)):
        due = Due(number=number, at=instant(time.time() + 0.1))
        await (await app.start(sleeper, due)).result()
        late.append((time.time() - due.at.timestamp()) * 1e3)
    return {"late_ms": median(late)}


async def main(folder: Path) -> None:
    async with onefold.App(sleeper, store=folder / "store") as app:
        await answer_async(
            {
                "sleep": lambda runs, seconds: sleep(app, runs, seconds),
                "probe": lambda sleepers, times: probe(app, sleepers, times),
            }
        )


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(Path(sys.argv[1])))
