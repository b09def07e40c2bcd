"""testing.store_suite.ground - what the checks of a store stand on: worlds that reopen, a disk that fails, parties.

For: `Ground` (one check's worlds), `Disk` (a failpoint), `Member` (a party that keeps what it was told), bodies
made of verbs, `expect`.
Never: knows a backend; waits for luck (`LONGEST_S` only ends what would never end).
Was wrong once: a suite over an open space. Whatever a store forgets when it is opened again passed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from onefold.store.contract import (
    Answer,
    AuthorSpace,
    Body,
    Done,
    Last,
    Outcome,
    Query,
    Refusal,
    Refused,
    Row,
    Schema,
    Space,
    Table,
    Verb,
    World,
    Write,
)
from onefold.terms.errors import Contended, OnefoldError
from onefold.testing.store_suite.tables import SCHEMA, TABLES

T = TypeVar("T")
Failpoint: TypeAlias = "Callable[[str], None]"
Asking: TypeAlias = "Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Any]]"

LONGEST_S = 20.0  # real seconds after which a party that was told nothing never will be


class OpenWorld(Protocol):
    """What a backend gives to each check, fresh for each: a factory of worlds over one set of rows.

    Every call makes a world over the same rows; the one before was closed or abandoned. The
    store's clock tells milliseconds since 1970, of this century. `failpoint` is to be called
    with "statement" before each statement, "before-commit" and "after-commit"; an OSError that
    it raises is a disk that failed there, any other raise the end of the process.
    """

    def __call__(self, *, failpoint: Failpoint | None = None) -> World: ...


@dataclass(frozen=True, slots=True)
class Check:
    """One promise. `run` opens the worlds it needs and closes them. Raises: Unfulfilled."""

    name: str
    run: Callable[[OpenWorld], Awaitable[None]]


class Unfulfilled(AssertionError):
    """A promise that the store does not keep: what it did, and what was promised."""


def expect(got: object, promised: object, what: str) -> None:
    """Raises: Unfulfilled unless both are equal."""
    if got != promised:
        raise Unfulfilled(f"{what}: {got!r}; promised was {promised!r}")


def promise(name: str) -> Callable[[Callable[[Ground], Awaitable[None]]], Check]:
    """Makes a `Check` of a function over a `Ground`."""

    def named(held: Callable[[Ground], Awaitable[None]]) -> Check:
        async def run(open_world: OpenWorld) -> None:
            async with _ground(open_world) as ground:
                await held(ground)

        return Check(name, run)

    return named


# --- worlds -------------------------------------------------------------------------------------


class Kill(BaseException):
    """The process ends here. Nothing catches it as a failure."""


class Disk:
    """A failpoint. Sound until told otherwise; `struck` says whether it failed since then."""

    def __init__(self) -> None:
        self.struck = False
        self._point: str | None = None
        self._left = 0
        self._lasting = False
        self._kills = False

    def __call__(self, point: str) -> None:
        if self.struck and self._lasting:
            self._strike(point)
        if self._point == point:
            self._left -= 1
            if self._left == 0:
                self._strike(point)

    def fail_at(self, point: str, hit: int = 1, *, lasting: bool = False) -> None:
        """Fail the `hit`-th time that `point` is met; with `lasting`, at everything from there on."""
        self._point, self._left, self._lasting, self._kills, self.struck = point, hit, lasting, False, False

    def kill_at(self, point: str, hit: int = 1) -> None:
        """End the process the `hit`-th time that `point` is met: nothing goes further from there on."""
        self.fail_at(point, hit, lasting=True)
        self._kills = True

    def heal(self) -> None:
        self._point, self._lasting, self.struck = None, False, False

    def _strike(self, point: str) -> None:
        self.struck = True
        raise Kill(point) if self._kills else OSError(5, f"the test's disk failed at {point}")


class Ground:
    """The worlds of one check, one after another over the same rows."""

    def __init__(self, open_world: OpenWorld) -> None:
        self._open_world = open_world
        self._world: World | None = None
        self._disk: Disk | None = None

    @property
    def world(self) -> World:
        if self._world is None:
            self._world = self._open_world(failpoint=self._disk)
        return self._world

    async def open(self, *, disk: Disk | None = None, name: str = "main", schema: Schema = SCHEMA) -> AuthorSpace:
        """A space of the world that is open. `disk` counts where no world is open yet."""
        if self._world is None:
            self._disk = disk
        return await self.world.open(name, [schema])

    async def close(self) -> None:
        world, self._world = self._world, None
        if world is not None:
            await world.close()

    def abandon(self) -> None:
        """As a kill would leave it."""
        world, self._world = self._world, None
        if world is not None:
            world.abandon()

    async def reopened(self, *, disk: Disk | None = None) -> AuthorSpace:
        """`main` after a clean end."""
        await self.close()
        return await self.open(disk=disk)

    async def crashed(self, *, disk: Disk | None = None) -> AuthorSpace:
        """`main` after a kill."""
        self.abandon()
        return await self.open(disk=disk)


@asynccontextmanager
async def _ground(open_world: OpenWorld) -> AsyncIterator[Ground]:
    ground = Ground(open_world)
    bound = asyncio.timeout(LONGEST_S)
    try:
        async with bound:
            yield ground
    except TimeoutError as late:
        if bound.expired():
            raise Unfulfilled(f"somebody was told nothing in {LONGEST_S:.0f} seconds") from late
        raise
    finally:
        ground.abandon()


@asynccontextmanager
async def quietly(wanted: type[BaseException] = Kill) -> AsyncIterator[None]:
    """A raise of `wanted` that ends a callback of the loop is what the check wants, and no line in anybody's log."""
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()

    def hear(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), wanted):
            loop.default_exception_handler(context)

    loop.set_exception_handler(hear)
    try:
        yield
    finally:
        loop.set_exception_handler(before)


async def turns(count: int = 20) -> None:
    """Let the loop turn: whatever can go on by itself has gone on."""
    for _ in range(count):
        await asyncio.sleep(0)


# --- bodies and parties ---------------------------------------------------------------------------


def writing(*writes: Write) -> Body[None]:
    """A body that asks nothing and writes."""

    def run() -> Asking:
        yield from ()
        return Last(writes, None)

    return run


def asking(*verbs: Verb, then: Sequence[Write] = ()) -> Body[tuple[Answer, ...]]:
    """A body that sends `verbs` as one question and stands for their answers; `then` are its last writes."""

    def run() -> Asking:
        answers = yield verbs
        return Last(tuple(then), answers)

    return run


def refusing(*verbs: Verb) -> Body[None]:
    """A body that does all of `verbs` and then refuses, as Contended."""

    def run() -> Asking:
        yield verbs
        raise Refusal(Contended("the check"))

    return run


class Member:
    """A party. `log` gets (what was called, who) in order; `answers` are those to its questions."""

    def __init__(
        self,
        name: str,
        body: Body[Any] | None,
        *,
        asks: tuple[Query, ...] = (),
        log: list[tuple[str, str]] | None = None,
    ) -> None:
        self.name = name
        self.asks = asks
        self.log = [] if log is None else log
        self.answers: tuple[Answer, ...] | None = None
        self.outcome: asyncio.Future[Outcome[Any]] = asyncio.get_running_loop().create_future()
        self._body = body

    def ask(self) -> tuple[Query, ...]:
        self.log.append(("ask", self.name))
        return self.asks

    def body(self, answers: tuple[Answer, ...], /) -> Body[Any] | None:
        self.log.append(("body", self.name))
        self.answers = answers
        return None if self._body is None else self._run

    def landed(self, outcome: Outcome[Any], /) -> None:
        self.log.append(("landed", self.name))
        if not self.outcome.done():
            self.outcome.set_result(outcome)

    def _run(self) -> Asking:
        self.log.append(("run", self.name))
        assert self._body is not None
        return (yield from self._body())


async def together(space: Space, *bodies: Body[Any]) -> list[Outcome[Any]]:
    """The outcomes of `bodies` in one physical commit."""
    members = [Member(str(i), body) for i, body in enumerate(bodies)]
    for member in members:
        space.join(member)
    return [await member.outcome for member in members]


def done(outcome: Outcome[T]) -> Done[T]:
    """Raises: Unfulfilled unless it is Done."""
    if not isinstance(outcome, Done):
        raise Unfulfilled(f"the commit ended {outcome!r}; promised was Done") from outcome.error
    return outcome


def refused(outcome: Outcome[Any], kind: type[OnefoldError] = OnefoldError) -> OnefoldError:
    """The error of a refusal. Raises: Unfulfilled unless it is Refused with an error of `kind`."""
    if not isinstance(outcome, Refused) or not isinstance(outcome.error, kind):
        raise Unfulfilled(f"the commit ended {outcome!r}; promised was Refused({kind.__name__})")
    return outcome.error


async def ask(space: Space, *verbs: Verb) -> tuple[Answer, ...]:
    """The answers to `verbs`, sent as one question of a body that commits."""
    answers: tuple[Answer, ...] = done(await space.transact(asking(*verbs))).value
    return answers


async def write(space: Space, *writes: Write) -> tuple[Answer, ...]:
    """The answers of last writes that commit."""
    return done(await space.transact(writing(*writes))).answers


async def rows(space: Space, table: Table) -> list[Row]:
    """All committed rows of a table, by key."""
    (found,) = await space.look(Query(table, order=table.key))
    return list(found)


async def picture(space: Space) -> dict[str, list[Row]]:
    """Everything that is committed."""
    return {table.name: await rows(space, table) for table in TABLES}
