"""bench.contenders.history - Onefold with one actor of a long history: what a turn costs, cold and warm.

For: `turn FOLDS TIMES`: after so many folds, the time of a turn, and of the first turn after a restart.
Never: lets the actor's file be another than that of the folds before.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

import onefold
from bench.answering import answer_async
from bench.contenders.counting import counter, event_bytes, notice
from bench.measures import median

AT_ONCE = 64


def opened(folder: Path) -> onefold.App:
    return onefold.App(counter, notice, store=folder / "store")


async def turn(folder: Path, folds: int, times: float) -> dict[str, Any]:
    """{"warm_us": a turn of the resident actor, "cold_us": the first after a start, rebuilt from its rows}."""
    async with opened(folder) as app:
        have = (await app.read(counter, "c0")).count
        ahead = iter(range(have, folds))

        async def grow() -> None:
            for number in ahead:
                await app.host.deliver_raw("counter", event_bytes("grow", 0, number), caller=app.caller)

        await asyncio.gather(*(grow() for _ in range(AT_ONCE)))
        warm = [await _one(app, 0, f"warm-{folds}", number) for number in range(int(times))]
    cold = []
    for number in range(5):
        async with opened(folder) as app:
            await _one(app, 1, f"other-{folds}", number)
            cold.append(await _one(app, 0, f"cold-{folds}", number))
    return {"warm_us": median(warm) * 1e6, "cold_us": median(cold) * 1e6}


async def _one(app: onefold.App, who: int, tag: str, number: int) -> float:
    before = time.perf_counter()
    await app.host.deliver_raw("counter", event_bytes(tag, who, number), caller=app.caller)
    return time.perf_counter() - before


async def main(folder: Path) -> None:
    await answer_async({"turn": lambda folds, times: turn(folder, folds, times)})


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(Path(sys.argv[1])))
