"""testing.broken.kernel_faults - lanes and senders with one fault each.

For: the parts that take the place of the sound ones in a twin (kernels puts them in).
Never: has two faults; is used by anything but a twin.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from onefold.host.sender import Sender
from onefold.kernel.fold import Folded, Outstanding
from onefold.kernel.port import Port
from onefold.kernel.prune import PRUNED, Pruned
from onefold.kernel.tables import ACTOR, TURN
from onefold.node.batch import Batch
from onefold.node.lane import Lane
from onefold.node.node import Decide, Node
from onefold.node.resident import Resident, Turn
from onefold.store.batch import commit
from onefold.store.contract import Answer, Append, Body, Done, Last, Outcome, Query, Remove, Row, Verb, Write
from onefold.terms.ids import ActorId, principal_text
from onefold.terms.instant import moment


def with_cells(row: Row, **cells: Any) -> Row:
    """A turn row with other cells."""
    out = list(row)
    for name, cell in cells.items():
        out[TURN.at[name]] = cell
    return tuple(out)


class Apart:
    """A party of one commit of its own; nobody is told what became of it."""

    def __init__(self, body: Body[None]) -> None:
        self._body = body

    def ask(self) -> tuple[Query, ...]:
        return ()

    def body(self, answers: tuple[Answer, ...], /) -> Body[None]:
        return self._body

    def landed(self, outcome: Outcome[Any], /) -> None: ...


def writing(writes: Sequence[Write]) -> Body[None] | None:
    """A body that only writes; None for no writes."""

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[None]]:
        yield from ()
        return Last(tuple(writes), None)

    return body if writes else None


class TwoCommits(Lane):
    """Commits a part of what belongs to a fold in a second transaction, once the first is done."""

    def afterwards(self, batch: Batch) -> Body[None] | None:
        """What is committed apart; None for nothing."""
        raise AssertionError("a fault says what it commits apart")

    def landed(self, outcome: Outcome[Any]) -> None:
        body = self.afterwards(self._flying[0]) if self._flying and isinstance(outcome, Done) else None
        if body is not None:
            space: Any = self.space
            commit(getattr(space, "engine", None) or space._engine, [Apart(body)])
        super().landed(outcome)


# --- the processed id --------------------------------------------------------------------------------


class Nameless(Batch):
    """Commits its turns without the ids of their events."""

    __slots__ = ()

    def all_writes(self) -> tuple[Write, ...]:
        return tuple(_nameless(write) for write in super().all_writes())


def _nameless(write: Write) -> Write:
    if not isinstance(write, Append) or write.table is not TURN:
        return write
    return replace(write, rows=[with_cells(row, event=f"a/{row[0]!r}", digest=b"", reply=None) for row in write.rows])


class WritesTheIdApart(TwoCommits):
    """The facts first; then the id."""

    def body(self, answers: tuple[Answer, ...]) -> Body[None] | None:
        made = super().body(answers)
        if made is not None:
            self._flying[-1].__class__ = Nameless
        return made

    def afterwards(self, batch: Batch) -> Body[None] | None:
        named = {t.folded.n: t.folded.turn for t in batch.turns if t.folded is not None and batch.__class__ is Nameless}
        return (lambda: _naming(named)) if named else None


def _naming(named: dict[int, Row]) -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[None]]:
    """Write the histories of these turns again, with their ids: a key never changes, so that rows leave and come back."""
    actors = tuple({row[TURN.at["actor"]] for row in named.values()})
    (rows,) = yield (Query(TURN, where=(("actor", "in", actors),), order=("n",)),)
    whole = [named.get(row[0], row) for row in rows]
    return Last((Remove(TURN, keys=[(row[0],) for row in rows]), Append(TURN, whole)), None)


# --- the alarm ---------------------------------------------------------------------------------------


class Unarmed(Batch):
    """Commits everything but its alarms."""

    __slots__ = ()

    def all_writes(self) -> tuple[Write, ...]:
        held, self.alarms = self.alarms, {}
        try:
            return super().all_writes()
        finally:
            self.alarms = held


class ArmsTheAlarmApart(TwoCommits):
    """The facts first; then the alarm."""

    def body(self, answers: tuple[Answer, ...]) -> Body[None] | None:
        made = super().body(answers)
        if made is not None:
            self._flying[-1].__class__ = Unarmed
        return made

    def afterwards(self, batch: Batch) -> Body[None] | None:
        return writing(batch._alarm_writes()) if batch.__class__ is Unarmed else None


# --- what is owed ------------------------------------------------------------------------------------


class RemembersHowItWasDecided(Lane):
    """Keeps, beside each owed row, what decided it. By itself this is no fault: `RebuildsAtRetry` uses it."""

    def _keep(self, batch: Batch, turn: Turn, folded: Folded, now: int, key: tuple[int, str] | None) -> None:
        super()._keep(batch, turn, folded, now, key)
        decided: dict[tuple[int, int], Decide | None] = vars(self._folder).setdefault("decided", {})
        for item in folded.owed:
            decided[(turn.resident.base.actor, item.n)] = turn.decide


class RebuildsAtRetry(Sender):
    """Decides again when it tries again, and sends what comes out now."""

    async def _ask(self, resident: Resident, port: Port[Any, Any], item: Outstanding, *, find: bool) -> Any:
        lane = self._node.kind(resident.at.kind).home.lane
        known = {} if lane is None else vars(lane._folder).get("decided", {})
        decide = known.get((resident.base.actor, item.n))
        if item.tries and decide is not None:
            decision = decide(resident.base.state, moment(self._now()))
            for owed in decision.owed:
                if owed.key == item.name:
                    item = replace(item, body=port.body.encode(owed.body))
        return await super()._ask(resident, port, item, find=find)


# --- answers -----------------------------------------------------------------------------------------


class RepliesBeforeTheCommit(Lane):
    """Answers what it has decided, and commits it with the next flush."""

    def body(self, answers: tuple[Answer, ...]) -> Body[None] | None:
        made = super().body(answers)
        if made is None:
            return None
        for turn in self._flying[-1].turns:
            if turn.folded is not None:
                turn.answer(self._folder.blobs)
        vars(self)["put_off"] = vars(self).get("put_off", 0) + 1
        self.space.join(Behind(self, made))
        return None

    def landed(self, outcome: Outcome[Any]) -> None:
        if isinstance(outcome, Done) and vars(self).get("put_off"):
            vars(self)["put_off"] -= 1
        else:
            super().landed(outcome)


class Behind:
    """A party with the body that another one has put off."""

    def __init__(self, lane: Lane, made: Body[None]) -> None:
        self._lane = lane
        self._made = made

    def ask(self) -> tuple[Query, ...]:
        return ()

    def body(self, answers: tuple[Answer, ...], /) -> Body[None]:
        return self._made

    def landed(self, outcome: Outcome[Any], /) -> None:
        Lane.landed(self._lane, outcome)


class DeclinesFromTheHead(Lane):
    """Answers a decision without facts as soon as it is decided."""

    def _keep(self, batch: Batch, turn: Turn, folded: Folded, now: int, key: tuple[int, str] | None) -> None:
        super()._keep(batch, turn, folded, now, key)
        if not folded.facts and not folded.owed:
            turn.landed(folded.reply, None)


# --- ids ---------------------------------------------------------------------------------------------


class Forgetful(Batch):
    """Removes, with each snapshot, all turns before it."""

    __slots__ = ()

    def all_writes(self) -> tuple[Write, ...]:
        writes: list[Write] = list(super().all_writes())
        for turn in self.turns:
            folded = turn.folded
            if folded is not None and folded.facts and folded.snapshot_seq == folded.seq:
                actor = turn.resident.base.actor
                writes.append(Remove(TURN, where=(("actor", "=", actor), ("n", "<", folded.n))))
        return tuple(writes)


class FreesIdsBehindASnapshot(Lane):
    """Throws turns away where only their facts may go."""

    def body(self, answers: tuple[Answer, ...]) -> Body[None] | None:
        made = super().body(answers)
        if made is not None:
            self._flying[-1].__class__ = Forgetful
        return made


class PrunesIdsToo(Node):
    """Takes the turns whose facts it pruned, and all before them."""

    async def prune(self, at: ActorId) -> Pruned:
        done = await super().prune(at)
        space = (await self.kind(at.kind).home.open()).space
        where = (at.kind, principal_text(at.principal), at.key)
        (actors,) = await space.look(Query(ACTOR, on=("kind", "principal", "key"), keys=[where]))
        (turns,) = await space.look(Query(TURN, where=(("actor", "in", tuple(row[0] for row in actors)),)))
        emptied = [row for row in turns if row[TURN.at["facts"]] == PRUNED]
        if emptied:
            newest = max(emptied)
            gone = writing([Remove(TURN, where=(("actor", "=", newest[1]), ("n", "<=", newest[0])))])
            assert gone is not None
            await space.transact(gone)
        return done
