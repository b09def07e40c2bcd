"""testing.host_suite.ground - what the checks of a host stand on: a host that is opened, killed and opened again.

For: `Ground`, one check's hosts over the rows of one store, with the vault and its courier; `promise`; bills of
what the store holds.
Never: knows a store; waits for luck: time is moved by hand, and `LONGEST_S` only ends what would never end.
Was wrong once: a suite over a store in memory. What a host forgets when its store comes back passed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from onefold.host.config import settle
from onefold.host.host import Host
from onefold.host.opening import open_host
from onefold.kernel.tables import ACTOR, ALARM, KERNEL
from onefold.store.contract import Query, Row
from onefold.terms.errors import OnefoldError
from onefold.testing.host_suite.vault import VAULT, Act, Courier, Vault
from onefold.testing.stage import Killed, Stage
from onefold.testing.store_suite.ground import OpenWorld, Unfulfilled, expect

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)
MAIN = "main"
LONGEST_S = 60.0  # real seconds after which a check that has not ended never will
ENOUGH = 300  # passes of a sweep: no verb has so many statements
SPINS = 200  # turns of the loop before threads are given real time


Fit: TypeAlias = "Callable[[Host], None]"


class Run(Protocol):
    """One check over a store. `fit` is given each host that is opened, before it has done anything: a twin's way in."""

    def __call__(self, open_world: OpenWorld, /, *, fit: Fit | None = None) -> Awaitable[None]: ...


@dataclass(frozen=True, slots=True)
class Check:
    """One promise. `run` opens the hosts it needs and closes them. Raises: Unfulfilled."""

    name: str
    run: Run


class Ground(Stage):
    """The hosts of one check, one after another over the same rows."""

    def __init__(self, open_world: OpenWorld, fit: Fit | None) -> None:
        super().__init__((), settle(code={"store": "memory:"}, environ={}), fit=fit)
        self.courier = Courier()
        self.parts = (VAULT, self.courier.dedupes())
        self._open_world = open_world

    async def open(self) -> Host:
        """A host over a new world of the same rows; the one before was closed or is gone."""
        self._world = self._open_world(failpoint=self._point)
        self._host = await open_host(
            self.config,
            self.parts,
            world=self._world,
            clock=self.clock,
            chance=self.chance.randbytes,
            say=self.said.append,
            show_links=True,
            failpoint=self._point,
        )
        if self._fit is not None:
            self._fit(self._host)
        return self._host

    def keep(self, capacity: int) -> None:
        """Keep so many actors in memory, from the next opening on."""
        self.configure(node={"capacity": capacity})

    def configure(self, **settings: Any) -> None:
        """Other settings, from the next opening on."""
        self.config = settle(code={"store": "memory:", **settings}, environ={})

    async def serve(self, *parts: object) -> Host:
        """Other code over the same rows."""
        self.parts = parts
        await self.close()
        return await self.open()

    async def abandoned(self) -> None:
        if self._host is not None:
            await self._abandon()

    # --- verbs, in short ----------------------------------------------------------------------------

    async def deliver(self, event: Act, who: str | None = None, *, module: Any = VAULT) -> Any:
        return await self.host.deliver(module, event, caller=self.caller(who))

    async def act(self, id: str, key: str = "a", **what: Any) -> Any:
        """Deliver one `Act` for nobody's principal."""
        return await self.deliver(Act(id, key, **what))

    async def read(self, key: str = "a", who: str | None = None, *, module: Any = VAULT) -> Vault:
        found: Vault = await self.host.read(module, key, caller=self.caller(who))
        return found

    async def facts(self, key: str = "a", who: str | None = None, *, module: Any = VAULT) -> list[Any]:
        return [row.fact for row in await self.host.history(module, key, caller=self.caller(who))]

    async def parked(self) -> list[Any]:
        return await self.host.parked_list(caller=self.caller())

    async def one_parked(self) -> Any:
        """Raises: Unfulfilled unless exactly one thing is parked."""
        found = await self.parked()
        if len(found) != 1:
            raise Unfulfilled(f"parked is {found}; promised was one thing")
        return found[0]

    # --- what the store holds -----------------------------------------------------------------------

    async def picture(self) -> dict[str, list[Row]]:
        """Every row of the kernel that is committed."""
        space = await self.host.space(MAIN)
        answers = await space.look(*(Query(table, order=table.key) for table in KERNEL.tables))
        return {table.name: list(rows) for table, rows in zip(KERNEL.tables, answers, strict=True)}

    async def alarm_row(self, key: str = "a") -> tuple[int | None, int] | None:
        """The instant and the tries of an actor's alarm row; None without a row."""
        space = await self.host.space(MAIN)
        actors, alarms = await space.look(Query(ACTOR), Query(ALARM))
        numbers = {row[ACTOR.at["key"]]: row[0] for row in actors}
        found = {row[0]: (row[ALARM.at["at"]], row[ALARM.at["tries"]]) for row in alarms}
        return found.get(numbers.get(key))

    # --- disks that fail and processes that end -----------------------------------------------------

    def fail_at(self, point: str, hit: int = 1, *, times: int = 1) -> Callable[[], bool]:
        """The disk fails the `hit`-th time that `point` is met, and so many times in all. Whether it has."""
        met = 0

        def fail(name: str) -> None:
            nonlocal met
            met += name == point
            if name == point and hit <= met < hit + times:
                raise OSError(5, f"the check's disk failed at {point}")

        self.failpoint = fail
        return lambda: met >= hit

    async def killed_in(self, act: Coroutine[Any, Any, T], point: str, hit: int) -> tuple[bool, T | None]:
        """End the process at the `hit`-th `point` within `act`, or once all is quiet; then open anew.

        Whether the process ended there, and what `act` was answered (None when nothing).
        """
        self.kill_at(point, hit=hit)
        attempt = asyncio.get_running_loop().create_task(act)
        turns = 0
        while not self.killed and not (attempt.done() and self.host.quiet):
            turns += 1
            await asyncio.sleep(0 if turns < SPINS else 0.001)
        struck = self.killed
        await self.let_die()
        told = None
        if attempt.done() and not (struck and attempt.exception()):
            told = attempt.result()
        attempt.cancel()
        await asyncio.gather(attempt, return_exceptions=True)
        self.live_on()
        await self.open()
        return struck, told


def hits() -> Iterator[int]:
    """1, 2, … until the check breaks off since a pass met no fault. Raises: Unfulfilled when none comes to that."""
    yield from range(1, ENOUGH)
    raise Unfulfilled(f"{ENOUGH} passes, and each met a fault")


def promise(name: str) -> Callable[[Callable[[Ground], Awaitable[None]]], Check]:
    """Makes a `Check` of a function over a `Ground` whose first host is open."""

    def named(held: Callable[[Ground], Awaitable[None]]) -> Check:
        async def run(open_world: OpenWorld, /, *, fit: Fit | None = None) -> None:
            async with _ground(open_world, fit) as ground:
                await held(ground)

        return Check(name, run)

    return named


@asynccontextmanager
async def _ground(open_world: OpenWorld, fit: Fit | None) -> AsyncIterator[Ground]:
    ground = Ground(open_world, fit)
    bound = asyncio.timeout(LONGEST_S)
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(_quietly)
    try:
        async with bound:
            await ground.open()
            yield ground
    except OnefoldError as fault:
        raise Unfulfilled(f"a verb raised {fault!r}; promised was an answer") from fault
    except TimeoutError as late:
        if bound.expired():
            raise Unfulfilled(f"somebody was told nothing in {LONGEST_S:.0f} seconds") from late
        raise
    finally:
        ground.live_on()
        await ground.abandoned()
        loop.set_exception_handler(before)


def _quietly(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A kill that ends a callback of the loop is what the check wants, and no line in anybody's log."""
    if not isinstance(context.get("exception"), Killed):
        loop.default_exception_handler(context)


async def refused(attempt: Awaitable[Any], kind: type[E], what: str) -> E:
    """The error that `attempt` raised. Raises: Unfulfilled unless it is of `kind`."""
    try:
        answer = await attempt
    except kind as error:
        return error
    except OnefoldError as error:
        raise Unfulfilled(f"{what} raised {error!r}; promised was {kind.__name__}") from error
    raise Unfulfilled(f"{what} was answered {answer!r}; promised was {kind.__name__}")


def at_once(reading: Coroutine[Any, Any, T]) -> T:
    """The answer of a coroutine that has nothing to wait for. Raises: Unfulfilled when it waits."""
    try:
        reading.send(None)
    except StopIteration as ended:
        answer: T = ended.value
        return answer
    reading.close()
    raise Unfulfilled("it waits, though what it asks for is in memory")


__all__ = ["Check", "Fit", "Ground", "OpenWorld", "Unfulfilled", "at_once", "expect", "hits", "promise", "refused"]
