"""Callers of a fleet over HTTP, each call kept as its caller saw it, and what must be true of all they saw.

For: `Load(fleet, seed)`: counters, lists, alarms and runs, asked of any node, tried again under the same id elsewhere
until there is an answer; `judge()`, which says everything that is wrong.
Never: takes a refusal that says "send the same again" for a fault; gives up without saying so.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import httpx2

from onefold.testing.linear import Contradiction, Recorder, judged, once
from tests.simulation.fleets import LEASE_MS, PATIENCE_S, Fleet, client, within

KEYS = ("a", "b", "c", "d", "e", "f")
CALLERS = 6
RETRYABLE = (421, 429, 503)  # each says that the same may be sent again
TRY_S = 8.0  # until a caller takes a node that does not answer for gone
PAUSE_S = 0.01  # between two calls of a caller: a counter that is asked without a pause takes the whole machine


def counts(state: int, what: Any) -> tuple[int, Any]:
    return (state, state) if what == "read" else (state + 1, state + 1)


def lists(state: tuple[str, ...], what: Any) -> tuple[tuple[str, ...], Any]:
    return (state, state) if what == "read" else ((*state, what), len(state) + 1)


class Load:
    """Starts with `async with`; at its end everybody finishes what they began."""

    def __init__(self, fleet: Fleet, seed: int, urls: Callable[[], Sequence[str]] | None = None) -> None:
        """`urls`: which nodes are asked."""
        self.fleet = fleet
        self.faults: list[str] = []
        self.met: Counter[str] = Counter()
        self.answered = 0
        self._recorders: dict[tuple[str, str], Recorder] = {}
        self._chance = random.Random(seed)
        self._urls = urls or (lambda: fleet.urls)
        self._ends = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._alarms: list[str] = []
        self._runs: list[str] = []
        self._http = client(TRY_S)

    async def __aenter__(self) -> Load:
        self._tasks = [
            asyncio.create_task(self._calls(f"c{n}", random.Random(f"{self._chance.random()} {n}")))
            for n in range(CALLERS)
        ]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ends.set()
        if kind is not None:
            for task in self._tasks:
                task.cancel()
        told = await asyncio.gather(*self._tasks, return_exceptions=kind is not None)
        assert told is not None
        if kind is not None:
            await self._http.aclose()

    async def some(self, more: int, what: str = "calls are answered") -> None:
        """Until so many more calls are answered."""
        goal = self.answered + more

        async def true() -> bool:
            return self.answered >= goal

        await within(PATIENCE_S, f"{more} more {what}", true)

    # --- calls ----------------------------------------------------------------------------------------

    async def _calls(self, name: str, chance: random.Random) -> None:
        n = 0
        while not self._ends.is_set():
            n += 1
            key, roll = chance.choice(KEYS), chance.random()
            if roll < 0.35:
                await self.read(key, chance.choice(self._urls()))
            elif roll < 0.7:
                await self._turn(key, "count", f"{name}-{n}", chance)
            elif roll < 0.92:
                await self._turn(key, f"{name}-{n}", f"{name}-{n}", chance)
            elif roll < 0.96:
                await self._alarm(f"{name}-{n}", chance)
            else:
                await self._run(f"{name}-{n}", chance)
            await asyncio.sleep(PAUSE_S)

    def _recorder(self, sort: str, key: str) -> Recorder:
        return self._recorders.setdefault((sort, key), Recorder())

    async def read(self, key: str, url: str, http: httpx2.AsyncClient | None = None) -> Any:
        """One look at a cell, at one node. What it shows is held against what everybody else saw."""
        calls = [self._recorder(sort, key).made("read") for sort in ("count", "list")]
        answer = await self._ask("GET", f"{url}/cells/Tally/{key}", http=http)
        if answer is None or answer.status_code not in (200, 404):
            for call in calls:
                call.refused()
            return None
        state: Any = answer.json()["state"] if answer.status_code == 200 else {"total": 0, "items": []}
        calls[0].ok(state["total"])
        calls[1].ok(tuple(state["items"]))
        self.answered += 1
        return state

    async def turn(self, key: str, what: str, id: str, urls: Sequence[str]) -> Any:
        """One turn, at each of these nodes in turn until one answers. `what`: `count`, or an item of the list."""
        sort = "count" if what == "count" else "list"
        call = self._recorder(sort, key).made(what, id=id)
        body = (
            {"method": "add", "arguments": {"by": 1}}
            if sort == "count"
            else {"method": "append", "arguments": {"item": what}}
        )
        answer = await self._until("POST", f"/cells/Tally/{key}/turns", id, body, urls)
        if answer is not None:
            call.ok(answer["value"])
            return answer["value"]
        return None

    async def _turn(self, key: str, what: str, id: str, chance: random.Random) -> None:
        urls = list(self._urls())
        chance.shuffle(urls)
        await self.turn(key, what, id, urls)

    async def _alarm(self, id: str, chance: random.Random) -> None:
        body = {"type": "Set", "id": id, "clock": chance.choice(KEYS), "after_ms": chance.randrange(50, LEASE_MS)}
        if await self._until(
            "POST", "/modules/clock/events", None, body, chance.sample(self._urls(), len(self._urls()))
        ):
            self._alarms.append(id)

    async def _run(self, id: str, chance: random.Random) -> None:
        body = {"n": chance.randrange(1 << 40), "pause_ms": chance.randrange(LEASE_MS)}
        urls = chance.sample(self._urls(), len(self._urls()))
        told = await self._until("POST", "/tools/sell", id, body, urls, prefer="wait=0")
        if told is not None:
            self._runs.append(told["run_id"])

    async def _until(
        self, method: str, path: str, id: str | None, body: Any, urls: Sequence[str], prefer: str | None = None
    ) -> Any:
        """The answer, from whichever node gives it. Says so where nobody does."""
        loop = asyncio.get_running_loop()
        until, n = loop.time() + PATIENCE_S, 0
        headers = {name: value for name, value in (("idempotency-key", id), ("prefer", prefer)) if value is not None}
        while loop.time() < until:
            url = urls[n % len(urls)] if n < len(urls) else self._urls()[n % len(self._urls())]
            answer = await self._ask(method, url + path, json=body, headers=headers)
            if answer is not None and answer.status_code in (200, 202):
                self.answered += 1
                return answer.json()
            n += 1
            await asyncio.sleep(PAUSE_S * min(n, 10))
        self.faults.append(f"{method} {path} {id} was never answered")
        return None

    async def _ask(self, method: str, url: str, http: httpx2.AsyncClient | None = None, **more: Any) -> Any:
        """None where nobody answered."""
        try:
            answer = await (http or self._http).request(method, url, **more)
        except httpx2.HTTPError as fault:
            self.met[type(fault).__name__] += 1
            return None
        self.met[str(answer.status_code)] += 1
        if answer.status_code in RETRYABLE:
            print(f"{method} {url} {more.get('json')}: {answer.text[:300]}")  # noqa: T201 - shown where a test failed
        if answer.status_code not in (200, 202, 404, *RETRYABLE) or (answer.status_code == 404 and method != "GET"):
            self.faults.append(f"{method} {url}: {answer.status_code} {answer.text[:300]}")
        return answer

    # --- what must be true ----------------------------------------------------------------------------

    async def judge(self) -> list[str]:
        """Everything that is wrong, once all that is due was done. Ends the load."""
        for key in KEYS:
            for url in self._urls():
                await self.read(key, url)
        told = [*self.faults, *self.fleet.faults, *self._histories(), *await self._effects()]
        await self._http.aclose()
        return told

    def _histories(self) -> list[str]:
        told = []
        for (sort, key), recorder in self._recorders.items():
            model, initial = (counts, 0) if sort == "count" else (lists, ())
            try:
                verdict = judged(once(recorder.history), initial, model)  # type: ignore[arg-type]
            except Contradiction as two:
                told.append(f"{sort} {key}: {two}")
                continue
            if not verdict:
                told.append(f"{sort} {key}: {verdict}")
        return told

    async def _effects(self) -> list[str]:
        """Alarms and runs, each of which was acknowledged: all done, each once."""
        told: list[str] = []

        async def rung() -> bool:
            return set(self._alarms) <= set(self.fleet.effects("ring"))

        async def over() -> bool:
            keys = [key.split("/")[2] for key in self.fleet.effects("ship")]
            return set(self._runs) <= set(keys)

        for what, true in (("every alarm rings", rung), ("every run ends", over)):
            try:
                await within(PATIENCE_S, what, true)
            except AssertionError as fault:
                told.append(str(fault))
        for what in ("pay", "ship"):
            of = Counter(key.split("/")[2] for key in set(self.fleet.effects(what)))
            told.extend(f"{run} did {what} {n} times" for run, n in of.items() if n > 1)
        for url in self._urls()[:1]:
            for key in KEYS:
                answer = await self._ask("GET", f"{url}/modules/clock/{key}")
                rang = Counter(answer.json()["view"] if answer is not None and answer.status_code == 200 else ())
                told.extend(f"the alarm {name} rang {n} times" for name, n in rang.items() if n > 1)
        return told
