"""bench.contenders.waiting - Onefold with many waiting runs, to be killed and started again.

For: `arm RUNS SECONDS`: so many runs that wait for an event, one in a hundred only until so many seconds
after the last has started.
With `back` it opens what was left, says when the first new run answered, and when every wait that ran
out in between was taken up.
Never: is asked anything between the opening and what it tells: nothing but the rows may wake a run.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import uvloop
from pydantic import BaseModel

import onefold
from bench.answering import answer_async
from bench.measures import resident_kib
from onefold import Expired, Run, Step, actuator

AT_ONCE = 64
FEW = 100  # one run in so many waits only briefly
LONG = "30 days"
WARM = 500  # runs that fill code and caches before memory is counted, and show how fast the others will be


class Ask(BaseModel):
    number: int
    timeout: str


class Go(BaseModel):
    number: int


async def noted(step: Step, number: int) -> int:
    return number


@actuator(tool=False)
async def waiter(run: Run, ask: Ask) -> str:
    """One step, then a wait."""
    await run.step(noted)(ask.number)
    answer = await run.wait_for_event(Go, timeout=ask.timeout)
    return "nobody came" if isinstance(answer, Expired) else "somebody came"


async def arm(app: onefold.App, folder: Path, runs: int, seconds: float) -> dict[str, Any]:
    """{"each_kib": memory of a run without SQLite's own cache, which is bounded; "brief": how many wait only "brief_s"}."""
    begun = time.monotonic()
    await _started(app, [Ask(number=-1, timeout=LONG)] * WARM)
    brief_s = seconds + 1.5 * runs * (time.monotonic() - begun) / WARM
    before = resident_kib() - apsw.memory_used() / 1024
    begun = time.monotonic()
    asks = [Ask(number=n, timeout=f"{int(brief_s * 1000)}ms" if n % FEW == 0 else LONG) for n in range(runs)]
    brief = [run for ask, run in zip(asks, await _started(app, asks), strict=True) if ask.timeout != LONG]
    after = resident_kib() - apsw.memory_used() / 1024
    (folder / "brief").write_text(json.dumps(brief), encoding="utf-8")
    if time.monotonic() - begun > brief_s:
        raise RuntimeError(f"{runs} starts took longer than the {brief_s:.0f} s that the brief ones wait")
    return {"each_kib": (after - before) / runs, "brief": len(brief), "brief_s": brief_s}


async def _started(app: onefold.App, asks: list[Ask]) -> list[str]:
    """Start them in order of number, and wait until each has come to its wait."""
    ids = [""] * len(asks)
    ahead = iter(enumerate(asks))

    async def starter() -> None:
        for place, ask in ahead:
            receipt = await app.start(waiter, ask)
            while receipt.status != "waiting":
                receipt = await receipt.refresh(wait="1s")
            ids[place] = receipt.run_id

    await asyncio.gather(*(starter() for _ in range(AT_ONCE)))
    return ids


async def back(folder: Path) -> None:
    """Tell "first" when a new run answered, "armed" when each wait that had run out has ended its run."""
    brief = json.loads((folder / "brief").read_text(encoding="utf-8"))
    async with onefold.App(waiter, store=folder / "store") as app:
        receipt = await app.start(waiter, Ask(number=-2, timeout="1ms"))
        _tell({"first": await receipt.result()})
        results = await asyncio.gather(*(_result(app, run) for run in brief))
        _tell({"armed": len(results), "wrong": sum(result != "nobody came" for result in results)})


async def _result(app: onefold.App, run: str) -> Any:
    return await (await app.receipt(run)).result()


def _tell(told: dict[str, Any]) -> None:
    print(json.dumps(told), flush=True)


async def main(folder: Path) -> None:
    async with onefold.App(waiter, store=folder / "store", node={"capacity": 50_000}) as app:
        await answer_async({"arm": lambda runs, seconds: arm(app, folder, runs, seconds)})


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(back(Path(sys.argv[2])) if sys.argv[1] == "back" else main(Path(sys.argv[1])))
