"""A run's actor in memory, and a world that plays it: passes, alarms, people, crashes.

Every fact, owed body and reply goes through its codec, so that a replay sees only what JSON keeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import apsw

from onefold.actuators import actuator
from onefold.actuators.carried import Ask, PassEnded, RunPass
from onefold.actuators.executing import run_pass
from onefold.actuators.state import State
from onefold.actuators.words import Cancel, Decided, Reopen, Sent
from onefold.kernel.words import Answer
from onefold.terms.errors import StoreUnavailable
from onefold.terms.instant import moment
from onefold.terms.typed import codec_of

T0 = 1_800_000_000_000


class Killed(BaseException):
    """The process died here."""


class Rows:
    """What survives a crash: turns, owed rows, the author's tables, the clock."""

    def __init__(self) -> None:
        self.turns: list[bytes] = []
        self.replies: dict[str, bytes] = {}
        self.owed: dict[str, tuple[str, bytes]] = {}
        self.sent: set[str] = set()
        self.now = T0
        self.commits = 0
        self.tables = apsw.Connection(":memory:")
        self.notices: list[Ask] = []


class Tx:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, /, **values: Any) -> int:
        self._connection.execute(sql, values)
        return self._connection.changes()

    def fetch(self, sql: str, /, **values: Any) -> list[dict[str, Any]]:
        cursor = self._connection.execute(sql, values)
        return [dict(zip([d[0] for d in cursor.getdescription()], row, strict=True)) for row in cursor]

    def fetch_one(self, sql: str, /, **values: Any) -> dict[str, Any] | None:
        rows = self.fetch(sql, **values)
        return rows[0] if rows else None


class MemoryActor:
    """One life of a process: the state folded from the rows, and the watchers of its passes."""

    stand_in = None
    children: Any = None

    def __init__(self, rows: Rows, actuator: Any, *, kill_at: int | None = None, before: bool = False) -> None:
        self.rows = rows
        self.actuator = actuator
        self.module = actuator.module
        self.codecs = self.module.codecs
        self.watchers: list[Callable[[Sequence[Any]], None]] = []
        self.kill_at = kill_at
        self.before = before
        self.dead = False
        self.entropy: Callable[[], int] = lambda: 0
        self.state: State = self.module.initial
        for turn in rows.turns:
            for fact in self.codecs.fact.decode_many(turn):
                self.state = self.module.evolve(self.state, fact)

    def watch(self, callback: Callable[[Sequence[Any]], None], /) -> Callable[[], None]:
        self.watchers.append(callback)
        return lambda: self.watchers.remove(callback)

    def _commit(self, decision: Any, id: str, settles: str | None = None) -> Any:
        if self.dead:
            raise Killed
        rows = self.rows
        dying = self.kill_at is not None and rows.commits + 1 >= self.kill_at
        if dying and self.before:
            self.dead = True
            raise Killed
        facts = self.codecs.fact.seal_many(list(decision.facts))[0]
        rows.commits += 1
        rows.turns.append(facts)
        if settles is not None:
            del rows.owed[settles]
            rows.sent.add(settles)
        rows.replies[id] = self.codecs.reply.encode(decision.reply)
        for item in decision.owed:
            assert item.key not in rows.sent, item.key
            body = codec_of(type(item.body)).encode(item.body)
            assert rows.owed.get(item.key, (item.port, body)) == (item.port, body)
            rows.owed[item.key] = (item.port, body)
        if dying:
            self.dead = True
            raise Killed
        come = self.codecs.fact.decode_many(facts)
        for fact in come:
            self.state = self.module.evolve(self.state, fact)
        for watcher in list(self.watchers):
            watcher(come)
        return self.codecs.reply.decode(rows.replies[id])

    async def fold(self, event: Any, id: str, /) -> Any:
        for _ in range(self.entropy()):
            await asyncio.sleep(0)
        return self.fold_now(event, f"s/{id}")

    def fold_now(self, event: Any, id: str) -> Any:
        if id in self.rows.replies:
            return self.codecs.reply.decode(self.rows.replies[id])
        event = self.codecs.event.decode(self.codecs.event.encode(event))
        return self._commit(self.module.decide(self.state, event, moment(self.rows.now)), id)

    async def blob(self, digest: bytes, /) -> bytes:
        raise AssertionError("this world keeps every value in its rows")

    async def author(self, step: Any, event_of: Any, /, *, id: str, budget_ms: int) -> Any:
        await asyncio.sleep(0)
        if self.dead:
            raise Killed
        tables, commits = self.rows.tables, self.rows.commits
        tables.execute("SAVEPOINT step")
        try:
            value = step(Tx(tables))
            reply = self.fold_now(event_of(value), f"s/{id}")
        except BaseException:
            if self.rows.commits == commits:  # else it died after the commit
                tables.execute("ROLLBACK TO step")
            tables.execute("RELEASE step")
            raise
        tables.execute("RELEASE step")
        return reply


class World:
    """Plays one run to its end, through any number of lives."""

    Life = MemoryActor

    def __init__(
        self, actuator: Any, input: Any = None, *, key: str | None = None, principal: str | None = None
    ) -> None:
        self.rows = Rows()
        for statement in actuator.migrations:
            self.rows.tables.execute(statement)
        self.actuator = actuator
        self.people: list[Callable[[World], bool]] = []
        self.passes = 0
        self.ended: list[PassEnded] = []
        self.count = 0
        self.life: MemoryActor = self.Life(self.rows, actuator)
        start = actuator.start(run="run_1", input=actuator.written(input), key=key, principal=principal)
        self.life.fold_now(start, "d/start")

    def restart(self, *, kill_at: int | None = None, before: bool = False) -> None:
        self.life = self.Life(self.rows, self.actuator, kill_at=kill_at, before=before)

    @property
    def state(self) -> State:
        return self.life.state

    def deliver(self) -> None:
        """The notices that are owed leave."""
        for key, (port, raw) in list(self.rows.owed.items()):
            if port == "notify":
                self.rows.notices.append(codec_of(Ask).decode(raw))
                del self.rows.owed[key]
                self.rows.sent.add(key)

    async def one_pass(self) -> bool:
        """Run the owed pass, if there is one, and fold its answer."""
        for key, (_, raw) in list(self.rows.owed.items()):
            codec_of(RunPass).decode(raw)
            self.passes += 1
            ended = await (self.actuator.passing or run_pass)(self.life, self.actuator)
            if self.life.dead:
                raise Killed
            self.ended.append(ended)
            body = self.module_answer(ended)
            decision = self.life.module.on_answer(self.state, Answer(key, "pass", body), moment(self.rows.now))
            self.life._commit(decision, f"o/{key}", settles=key)
            return True
        return False

    def module_answer(self, ended: PassEnded) -> Any:
        codec = self.life.module.answer_body
        return codec.decode(codec.encode(ended))

    async def play(self, *, until: Callable[[World], bool] | None = None, limit: int = 10_000) -> State:
        """Go on until the run has ended, is parked, or nothing but a person could go on."""
        for _ in range(limit):
            self.deliver()
            if until is not None and until(self):
                return self.state
            if await self.one_pass():
                continue
            if self.state.status not in ("running", "waiting"):
                return self.state
            if self.people:
                self.people.pop(0)(self)
                continue
            if self.life.module.wake(self.state) is None:
                return self.state
            commits = self.rows.commits
            self.ring()
            assert self.rows.commits > commits, "an alarm that changes nothing spins"
        raise AssertionError("it never ends")

    async def survive(self, kill_at: int, *, before: bool) -> bool:
        """Play, dying once at a commit. Whether it died."""
        self.restart(kill_at=kill_at, before=before)
        try:
            await self.play()
        except (Killed, StoreUnavailable):
            self.restart()
            return True
        return False

    def ring(self) -> None:
        """The clock reaches the next instant somebody waits for, while a pass may be going on."""
        due = self.life.module.wake(self.state)
        if due is None or self.life.dead:
            return
        self.rows.now = max(self.rows.now, int(due.timestamp() * 1000))
        self.life._commit(self.life.module.on_alarm(self.state, moment(self.rows.now)), f"a/{self.rows.commits}")

    # --- people -----------------------------------------------------------------------------------

    def decide(self, name: str, approve: bool, by: str = "anna", **more: Any) -> Any:
        self.count += 1
        return self.life.fold_now(
            Decided(f"e{self.count}", "run_1", name, approve, by, **more), f"d/decide{self.count}"
        )

    def send(self, name: str, body: bytes) -> Any:
        from msgspec import Raw

        self.count += 1
        return self.life.fold_now(Sent(f"e{self.count}", "run_1", name, Raw(body)), f"d/send{self.count}")

    def cancel(self, reason: str | None = None) -> Any:
        self.count += 1
        return self.life.fold_now(Cancel(f"e{self.count}", "run_1", reason), f"d/cancel{self.count}")

    def reopen(self) -> Any:
        self.count += 1
        return self.life.fold_now(Reopen(f"e{self.count}", "run_1"), f"d/reopen{self.count}")

    @property
    def result(self) -> Any:
        assert self.state.status == "done", (self.state.status, self.state.trouble)
        return self.actuator.result.decode(bytes(self.state.result))


async def until(ready: Callable[[], Any]) -> None:
    """Go on once something is so, letting the loop and the threads come to it."""
    while not ready():  # noqa: ASYNC110 - what is waited for has no event of its own
        await asyncio.sleep(0)


class Failing:
    """An actor whose folds fail from the `at`-th on."""

    stand_in = None
    children: Any = None

    def __init__(self, world: World, at: int) -> None:
        self.world = world
        self.at = at
        self.folds = 0

    @property
    def state(self) -> Any:
        return self.world.state

    def watch(self, callback: Any, /) -> Any:
        return self.world.life.watch(callback)

    async def fold(self, event: Any, id: str, /) -> Any:
        self.folds += 1
        if self.folds >= self.at:
            raise StoreUnavailable("space", "the disk is full")
        return await self.world.life.fold(event, id)

    async def blob(self, digest: bytes, /) -> bytes:
        return await self.world.life.blob(digest)

    async def author(self, step: Any, event_of: Any, /, *, id: str, budget_ms: int) -> Any:
        raise StoreUnavailable("space", "the disk is full")


async def played(function: Any, input: Any = None, **more: Any) -> World:
    """A world in which a run of this function has been played as far as it comes."""
    world = World(actuator(function) if not hasattr(function, "function") else function, input, **more)
    await world.play()
    return world
