"""testing.stage - a host on a virtual clock, with seeded ids, that can be crashed and opened again.

For: `async with staged(parts) as stage`: the real host over a memory or SQLite world.
Never: waits for luck: `settle` returns when nothing moves, and names what does when it takes too long.
Was wrong once: a test that slept ten milliseconds for the sender. It failed on a busy machine only.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from onefold.actuators.executing import run_pass
from onefold.host.caller import ALL, Caller, Right
from onefold.host.config import Config, settle
from onefold.host.core import Heard, Passing
from onefold.host.host import Host
from onefold.host.opening import make_world, open_host
from onefold.host.settings import on_postgres
from onefold.kernel.port import StandIn
from onefold.store.contract import World
from onefold.terms.duration import duration_ms
from onefold.terms.errors import Broken
from onefold.testing.clock import VirtualClock
from onefold.testing.moving import restless

__tracebackhide__ = True  # a failing test shows the test's own lines

SPINS = 200  # turns of the loop before threads are given real time
LONGEST_S = 20.0  # real seconds until something that does not settle is a fault


class Killed(BaseException):
    """Raised by a test's failpoint: what it interrupts goes no further. No code catches it as a failure."""


class Watcher(Protocol):
    """Who looks on at every stage of a test run. Told, never asked; changes nothing."""

    def opened(self, stage: Stage) -> None: ...
    def failed(self, stage: Stage, point: str, fault: BaseException) -> None: ...
    def leaving(self, stage: Stage) -> None: ...


WATCHERS: list[Watcher] = []  # told of all stages but those of a broken twin


class Stage:
    """A host that a test moves by hand. `host` is the open one; `restart` opens another over the same rows."""

    def __init__(
        self, parts: tuple[object, ...], config: Config, *, seed: int = 0, fit: Callable[[Host], None] | None = None
    ) -> None:
        """`fit` is given each host that is opened, before it has done anything: a broken twin's way in."""
        self.parts = parts
        self.config = config
        self.clock = VirtualClock()
        self.chance = random.Random(seed)  # noqa: S311 - ids of a test are seeded, not secret
        self.failpoint: Callable[[str], None] = lambda point: None
        self.stand_in: StandIn | None = None
        self.run_pass: Passing = run_pass
        self.twice = False
        self.heard: list[Heard] = []  # told of each fold of any host of this stage, after its commit
        self.said: list[str] = []
        self._world: World | None = None
        self._host: Host | None = None
        self._killed = False
        self._fit = fit
        self._watchers = WATCHERS if fit is None else []

    @property
    def host(self) -> Host:
        assert self._host is not None
        return self._host

    @property
    def opened(self) -> bool:
        """Whether a host is open."""
        return self._host is not None

    def caller(self, principal: str | None = None, *, rights: Iterable[Right] = ALL) -> Caller:
        """Who asks; with all rights unless said otherwise."""
        return Caller(principal, frozenset(rights), principal or "test")

    async def open(self) -> Host:
        """Open a host over this stage's rows."""
        if self._world is None or self.config.store != "memory:":
            self._world = make_world(self.config, self.clock, failpoint=self._point)
        self._host = await open_host(
            self.config,
            self.parts,
            world=self._world,
            clock=self.clock,
            chance=self.chance.randbytes,
            say=self.said.append,
            show_links=True,
            twice=self.twice,
            failpoint=self._point,
            stand_in=self.stand_in,
            run_pass=self.run_pass,
        )
        self._host._core.heard.extend(self.heard)
        if self._fit is not None:
            self._fit(self._host)
        for watcher in self._watchers:
            watcher.opened(self)
        return self._host

    async def restart(self) -> Host:
        """Stop cleanly and open again."""
        await self.close()
        return await self.open()

    async def crash(self) -> Host:
        """Let go of everything as a kill would, and open again over what was committed."""
        await self._abandon()
        return await self.open()

    async def let_die(self) -> None:
        """Let what a failpoint kills be killed, then let go of everything as a kill would."""
        await self.turns(SPINS)
        await self._abandon()

    async def turns(self, count: int) -> None:
        """So many turns of the loop; on a store that answers from elsewhere, until nothing is on its way besides."""
        for _ in range(count):
            await asyncio.sleep(0)
        end = asyncio.get_running_loop().time() + LONGEST_S
        while not self._killed and getattr(self._world, "busy", False) and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.001)
            for _ in range(count):
                await asyncio.sleep(0)

    async def _abandon(self) -> None:
        self._leave()
        host, self._host = self.host, None
        await host.abandon()

    @property
    def killed(self) -> bool:
        """Whether a failpoint has been met that kills."""
        return self._killed

    def kill_at(self, point: str, *, hit: int = 1) -> None:
        """From the `hit`-th time that `point` is met on, nothing goes further."""
        left = hit

        def fail(name: str) -> None:
            nonlocal left
            if name == point:
                left -= 1
            if left <= 0:
                self._killed = True
                raise Killed(name)

        self.failpoint = fail

    def live_on(self) -> None:
        """No more kills."""
        self._killed = False
        self.failpoint = lambda point: None

    async def close(self) -> None:
        if self._host is not None:
            self._leave()
            host, self._host = self._host, None
            await host.close()

    def _leave(self) -> None:
        for watcher in self._watchers:
            watcher.leaving(self)

    async def settle(self) -> None:
        """Until nothing moves without time passing. Raises: Broken when it goes on for too long."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LONGEST_S
        spins = quiet = 0
        while quiet < 3:
            quiet = quiet + 1 if self.host.quiet else 0
            spins += 1
            await asyncio.sleep(0 if spins < SPINS else 0.001)
            if loop.time() > end:
                raise Broken(restless(self.host))

    async def advance(self, duration: str) -> None:
        """Let time pass: stop at every instant for which somebody waits, and settle there."""
        target = self.clock.now() + duration_ms(duration)
        while True:
            await self.settle()
            stop = self.clock.next_stop(target)
            self.clock.step_to(stop)
            if stop >= target:
                break
        await self.settle()

    def _point(self, name: str) -> None:
        try:
            self.failpoint(name)
        except BaseException as fault:
            for watcher in self._watchers:
                watcher.failed(self, name, fault)
            raise


def environ_for(store: str) -> dict[str, str]:
    """What a store on Postgres cannot be opened without: a secret, which no folder keeps for it."""
    return {"ONEFOLD_SECRET": "known to every test, and of no use"} if on_postgres(store) else {}


@asynccontextmanager
async def staged(
    *parts: object,
    store: str | Path = "memory:",
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    fit: Callable[[Host], None] | None = None,
) -> AsyncIterator[Stage]:
    """A stage with its host open; closed at the end. `fit`: of a broken twin (`testing.broken.kernels`)."""
    config = settle(code={**(settings or {}), "store": str(store)}, environ=environ_for(str(store)))
    stage = Stage(parts, config, seed=seed, fit=fit)
    await stage.open()
    try:
        yield stage
    finally:
        await stage.close()
