"""bench.contenders.noded - one process on a store that it shares: a node of a fleet, or, where it has no name, alone.

For: `own N seconds`: wait until it owns so many actors of each kind; `fold callers seconds`: whole folds of its own;
`here|there callers seconds`: turns of its own cells, and of the other node's, which are routed; `read block 0`: what
the store has of a block of counters; `tallies 0 0`: of all cells.
`pick 0 0` settles on the other node's cells, `answered 0 seconds` has a turn of each of them, again and again until it
counts, and tells when: by a clock that all processes of a machine share.
Never: folds an actor of another node where its own are measured.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

import uvloop

import onefold
from bench.answering import answer_async
from bench.contenders.counting import ACTORS, counter, event_bytes, notice
from bench.contenders.tallying import Tally
from bench.measures import Sample, by_tasks
from onefold.errors import OnefoldError
from onefold.fleet.words import Done
from onefold.serve.run import serve

BETWEEN_NODES = "a secret of all processes of a run"
BLOCK = 8 * ACTORS  # candidates of one process: of four nodes each still finds its own among them
CELLS = [f"c{n}" for n in range(BLOCK)]
LOOKED_S = 0.02


class Node:
    def __init__(self, app: onefold.App, process: int, *, alone: bool) -> None:
        self._app = app
        self._alone = alone
        self._process = process
        self._counters: list[str] = []
        self._here: list[str] = []
        self._there: list[str] = []

    async def own(self, least: int, seconds: float) -> dict[str, Any]:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self._counters = await self._mine("counter", block(self._process))
            self._here = await self._mine("Tally", CELLS)
            if min(len(self._counters), len(self._here)) >= least:
                return {"owned": len(self._counters)}
            await asyncio.sleep(LOOKED_S)
        raise TimeoutError(f"after {seconds:.0f} s this node owns {len(self._counters)} of its {BLOCK} counters")

    async def _mine(self, kind: str, keys: Sequence[str]) -> list[str]:
        if self._alone:
            return list(keys)
        fleet = self._app.fleet
        return [key for key in keys if isinstance(await fleet.drain(f"{kind}/{key}"), Done)]

    async def fold(self, callers: int, seconds: float) -> Sample:
        deliver, caller = self._app.host.deliver_raw, self._app.caller
        tag, keys = f"{self._process}-{time.time_ns():x}", [int(key[1:]) for key in self._counters[:ACTORS]]

        async def one(who: int, number: int) -> None:
            actor = keys[(who * 7 + number) % ACTORS]
            await deliver("counter", event_bytes(f"{tag}-{who}", actor, number), caller=caller)

        return await by_tasks(one, callers, seconds)

    async def here(self, callers: int, seconds: float) -> Sample:
        return await self._turns(self._here, callers, seconds)

    async def there(self, callers: int, seconds: float) -> Sample:
        return await self._turns(self._there, callers, seconds)

    async def _turns(self, keys: Sequence[str], callers: int, seconds: float) -> Sample:
        cells = [self._app.cell(Tally, key) for key in keys[:ACTORS]]

        async def one(who: int, number: int) -> None:
            await cells[(who * 7 + number) % len(cells)].turn(Tally.add)(1)

        return await by_tasks(one, callers, seconds)

    async def pick(self, least: int, seconds: float) -> dict[str, Any]:
        mine = set(await self._mine("Tally", CELLS))
        self._there = [key for key in CELLS if key not in mine][:ACTORS]
        if len(self._there) < least:
            raise ValueError(f"the other node owns {len(self._there)} cells")
        return {"picked": len(self._there)}

    async def answered(self, callers: int, seconds: float) -> dict[str, Any]:
        tag, end = f"{time.time_ns():x}", time.perf_counter() + seconds

        async def until(key: str) -> float:
            turn = self._app.cell(Tally, key).turn(Tally.add, key=tag)
            while True:
                try:
                    await turn(1)
                    return time.perf_counter()
                except OnefoldError:
                    if time.perf_counter() > end:
                        raise
                    await asyncio.sleep(LOOKED_S / 4)

        times = await asyncio.gather(*(until(key) for key in self._there))
        return {"first": min(times), "last": max(times), "count": len(times)}

    async def read(self, process: int, seconds: float) -> dict[str, Any]:
        views = await asyncio.gather(*(self._app.read(counter, key) for key in block(process)))
        return {"counts": [view.count for view in views]}

    async def tallies(self, callers: int, seconds: float) -> dict[str, Any]:
        found = await asyncio.gather(*(self._app.cell(Tally, key).get("count") for key in CELLS))
        return {"counts": [each for each in found if isinstance(each, int)]}


def block(process: int) -> list[str]:
    """The counters of one process; some of them are its own."""
    return [f"c{process * BLOCK + n}" for n in range(BLOCK)]


async def main(store: str, process: int, port: int = 0, lease: str = "") -> None:
    os.environ.setdefault("ONEFOLD_SECRET", BETWEEN_NODES)
    named = {"name": f"n{process}", "advertise": f"http://127.0.0.1:{port}", **({"lease": lease} if lease else {})}
    app = onefold.App(counter, notice, Tally, store=store, node=named if port else None)
    async with app:
        serving = asyncio.create_task(serve(app, ("127.0.0.1", port))) if port else None
        node = Node(app, process, alone=not port)
        verbs = (node.own, node.fold, node.here, node.there, node.pick, node.answered, node.read, node.tallies)
        await answer_async({each.__name__: each for each in verbs})
        if serving is not None:
            os.kill(os.getpid(), signal.SIGTERM)  # as whoever stops a node does
            await serving


if __name__ == "__main__":
    url, number, *rest = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(url, int(number), int((rest or ["0"])[0]), *rest[1:]))
