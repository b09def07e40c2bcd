"""bench.contenders.letters - mail of Onefold in process: posting and delivering apart, both together, and the ring.

For: `post N seconds`: a thousand letters by N producers, each to a cell of its own, while nobody delivers.
`deliver N seconds`: an app that is opened on them, from there until the last one's turn is committed.
`box N seconds`: N producers post, the app delivers meanwhile, until all is settled; `one_box`: all to one cell.
`ring N seconds`: N producers into a ring of 16 that holds no more than what is owed, each letter a durable turn;
`one_ring`: all to one cell. `hop N seconds`: the ring alone. `read` tells each count.
Never: counts a letter before its turn is committed; lets the postman run where posting is timed alone.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import uvloop

import onefold
from bench.answering import answer_async
from bench.contenders.tallying import ONE, Tally, counts
from bench.measures import Sample, sample
from onefold.errors import Busy
from onefold.fleet import Ring, Taken
from onefold.host.postman import Postman

LETTERS = 1_000
CAPACITY = 16
LOOKED_S = 0.0005
Put = Callable[[int, int], Awaitable[None]]  # producer, number


class Mail:
    """Opens its app for each workload, so that posting and delivering have one of their own."""

    def __init__(self, folder: Path) -> None:
        self._store = folder / "store"
        self._settled = 0  # letters, by the store's own counts

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[onefold.App]:
        async with onefold.App(Tally, store=self._store) as app:
            yield app

    async def _more(self, app: onefold.App) -> int:
        """How many letters the store has settled since this was last asked."""
        before, self._settled = self._settled, sum(await counts(app))
        return self._settled - before

    async def post(self, producers: int, seconds: float) -> Sample:
        """LETTERS of them, and nobody delivers: the app opens as ever, but that nobody begins to carry."""
        with patch.object(Postman, "start", lambda postman: None):
            async with self._opened() as app:
                ahead = iter(range(LETTERS))
                latencies: list[float] = []
                put = _posting(app, producers)
                start = time.perf_counter()
                await asyncio.gather(*(_all(ahead, put, who, latencies) for who in range(producers)))
                return sample(latencies, time.perf_counter() - start)

    async def deliver(self, producers: int, seconds: float) -> Sample:
        """All that is in the boxes; nobody posts."""
        async with self._opened() as app:
            start = time.perf_counter()
            await _settled(app)
            elapsed = time.perf_counter() - start
            done = await self._more(app)
            return sample([elapsed / max(done, 1)] * done, elapsed)

    async def box(self, producers: int, seconds: float, cells: int = 0) -> Sample:
        """Posted and delivered at once: settled letters a second, the last of them included."""
        async with self._opened() as app:
            latencies: list[float] = []
            put = _posting(app, cells or producers)
            start = time.perf_counter()
            ahead = _until(start + seconds)
            await asyncio.gather(*(_all(ahead, put, who, latencies) for who in range(producers)))
            await _settled(app)
            elapsed = time.perf_counter() - start
            if (done := await self._more(app)) != len(latencies):
                raise ValueError(f"{len(latencies)} letters were posted, and {done} delivered")
            return sample(latencies, elapsed)

    async def one_box(self, producers: int, seconds: float) -> Sample:
        return await self.box(producers, seconds, cells=1)

    async def ring(self, producers: int, seconds: float, cells: int = 0) -> Sample:
        """Turns that came by a ring of CAPACITY, each committed before its letter is settled."""
        async with self._opened() as app:
            ring: Ring[tuple[int, str, float]] = Ring(CAPACITY)
            latencies: list[float] = []
            tag = f"{time.time_ns():x}"

            async def put(who: int, number: int) -> None:
                given = (who % (cells or producers), f"{tag}-{number}", time.perf_counter())
                await _offered(ring, given)

            async def take() -> None:
                async for mail in ring:
                    at, key, posted = mail.letter
                    await app.cell(Tally, f"c{at}").run(ONE, key=key)
                    await mail.settle()
                    latencies.append(time.perf_counter() - posted)

            takers = [asyncio.create_task(take()) for _ in range(CAPACITY)]
            start = time.perf_counter()
            ahead = _until(start + seconds)
            await asyncio.gather(*(_all(ahead, put, who, []) for who in range(producers)))
            ring.close()
            await asyncio.gather(*takers)
            elapsed = time.perf_counter() - start
            ring.check()
            if (done := await self._more(app)) != len(latencies):
                raise ValueError(f"{len(latencies)} letters were settled, and {done} turns committed")
            return sample(latencies, elapsed)

    async def one_ring(self, producers: int, seconds: float) -> Sample:
        return await self.ring(producers, seconds, cells=1)

    async def read(self, callers: int, seconds: float) -> dict[str, Any]:
        async with self._opened() as app:
            await _settled(app)
            return {"counts": await counts(app)}


async def hop(producers: int, seconds: float) -> Sample:
    """Offered and settled, and nothing else."""
    ring: Ring[float] = Ring(CAPACITY)
    latencies: list[float] = []

    async def put(who: int, number: int) -> None:
        await _offered(ring, time.perf_counter())

    async def take() -> None:
        async for mail in ring:
            await mail.settle()
            latencies.append(time.perf_counter() - mail.letter)

    taker = asyncio.create_task(take())
    start = time.perf_counter()
    ahead = _until(start + seconds)
    await asyncio.gather(*(_all(ahead, put, who, []) for who in range(producers)))
    ring.close()
    await taker
    ring.check()
    return sample(latencies, time.perf_counter() - start)


def _posting(app: onefold.App, cells: int) -> Put:
    """Producers with a cell each, or one for several."""
    tag = f"{time.time_ns():x}"
    known = [app.cell(Tally, f"c{who}") for who in range(cells)]

    async def put(who: int, number: int) -> None:
        while True:
            try:
                await known[who % cells].post(ONE, key=f"{tag}-{number}")
                return
            except Busy:
                await asyncio.sleep(LOOKED_S)

    return put


def _until(end: float) -> Any:
    """Numbers, as long as there is time."""
    number = 0
    while time.perf_counter() < end:
        yield number
        number += 1


async def _all(ahead: Any, put: Put, who: int, latencies: list[float]) -> None:
    for number in ahead:
        before = time.perf_counter()
        await put(who, number)
        latencies.append(time.perf_counter() - before)


async def _offered(ring: Ring[Any], letter: object) -> None:
    """Into the ring, as soon as it has room."""
    while not isinstance(await ring.offer(letter), Taken):  # noqa: ASYNC110 - who meets a full ring asks again
        await asyncio.sleep(0)


async def _settled(app: onefold.App) -> None:
    while not app.host.quiet:  # noqa: ASYNC110 - it tells whether it is idle, and nobody when
        await asyncio.sleep(LOOKED_S)


async def main(folder: Path) -> None:
    mail = Mail(folder)
    named = (mail.post, mail.deliver, mail.box, mail.one_box, mail.ring, mail.one_ring, mail.read, hop)
    await answer_async({each.__name__: each for each in named})


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(Path(sys.argv[1])))
