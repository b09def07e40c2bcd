"""bench.contenders.cells - a cell of Onefold in process: turns of a method, programs of one call and of ten.

For: `turn|one|ten callers seconds` over 64 cells, each answered after its commit; `read` tells each count.
With `memory` for a folder the store is memory: what a turn costs where nothing is written.
Never: shares a program between two turns: each is sent as text, read and run anew.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import uvloop

import onefold
from bench.answering import answer_async
from bench.contenders.tallying import ACTORS, ONE, TEN, Tally, counts
from bench.measures import Sample, by_tasks


async def main(store: str) -> None:
    async with onefold.App(Tally, store=store) as app:
        cells = [app.cell(Tally, f"c{who}") for who in range(ACTORS)]

        async def turn(who: int, number: int) -> None:
            await cells[(who * 7 + number) % ACTORS].turn(Tally.add)(1)

        async def one(who: int, number: int) -> None:
            await cells[(who * 7 + number) % ACTORS].run(ONE)

        async def ten(who: int, number: int) -> None:
            await cells[(who * 7 + number) % ACTORS].run(TEN)

        def taking(call: Any) -> Any:
            async def taken(callers: int, seconds: float) -> Sample:
                return await by_tasks(call, callers, seconds)

            return taken

        async def read(callers: int, seconds: float) -> dict[str, Any]:
            return {"counts": await counts(app)}

        await answer_async({"turn": taking(turn), "one": taking(one), "ten": taking(ten), "read": read})


if __name__ == "__main__":
    given = sys.argv[1]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main("memory:" if given == "memory" else str(Path(given) / "store")))
