"""fleet.ownership - who owns what: the rows of nodes, of names and of leases, and the transactions that change them.

For: joining, renewing, closing a node that lapsed, taking names that nobody alive owns, handing names over. Pure: each
is a transaction body.
Never: compares times in a commit of an actor; reads a clock (the store's own is asked within the body).
Was wrong once: lease and epoch in one row. Renewing it waited for every commit that had read it, and they for it. And a
lock on a row that was not there: two processes that joined under a new name at one moment had the same life.

    node    one row a process: which incarnation lives, and until when; written often, read by no commit
    owner   one row a name: `slot/17`, or one actor; which node has it under which epoch; read by commits, written seldom
    lease   of an actor's name that was claimed by itself: until when
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from onefold.kernel.tables import ACTOR
from onefold.store.contract import (
    Append,
    Body,
    Cas,
    Column,
    Create,
    DbNow,
    Last,
    Migration,
    Put,
    Query,
    Row,
    Schema,
    Table,
    Value,
)
from onefold.terms.ids import SLOTS, ActorId, join

NODE = Table(
    "node",
    (
        Column("name", "text"),
        Column("incarnation", "int"),
        Column("until", "int"),  # by the store's clock
        Column("state", "text"),  # live, leaving, closed
        Column("url", "text", null=True),  # where the others reach it
        Column("since", "int"),
    ),
    key=("name",),
    everywhere=True,
)
OWNER = Table(
    "owner",
    (Column("name", "text"), Column("node", "text"), Column("incarnation", "int"), Column("epoch", "int")),
    key=("name",),
    everywhere=True,
)
LEASE = Table(
    "lease",
    (Column("name", "text"), Column("until", "int"), Column("asked", "int")),  # asked: the store's clock, last
    key=("name",),
    everywhere=True,
)
SPLIT = Table("split", (Column("what", "text"), Column("n", "int")), key=("what",), everywhere=True)
CODE = Table("code", (Column("node", "text"), Column("reads", "text")), key=("node",), everywhere=True)
"""What the code of each node's last life can read, as a digest: what one cannot, another of other code may."""
FLEET = Schema(
    "fleet",
    (NODE, OWNER, LEASE, SPLIT, CODE),
    (
        Migration(1, oldest=1, steps=(Create(NODE), Create(OWNER), Create(LEASE), Create(SPLIT))),
        Migration(2, oldest=1, steps=(Create(CODE),)),
    ),
)

LIVE, LEAVING, CLOSED = "live", "leaving", "closed"
NOBODY: Final = ""
SPACE: Final = "space/"
EPOCHS: Final = 1 << 32
"""Epochs of one history of the store. After a restore or a promotion they go on above all that were ever given."""


@dataclass(frozen=True, slots=True)
class Me:
    """One life of a node."""

    name: str
    incarnation: int

    @property
    def text(self) -> str:
        """What a row says that this life made."""
        return f"{self.incarnation} {self.name}"


@dataclass(frozen=True, slots=True)
class NodeRow:
    name: str
    incarnation: int
    until: int
    state: str
    url: str | None
    since: int

    @staticmethod
    def of(row: Row) -> NodeRow:
        return NodeRow(*row)  # type: ignore[arg-type]

    @property
    def row(self) -> Row:
        return (self.name, self.incarnation, self.until, self.state, self.url, self.since)


@dataclass(frozen=True, slots=True)
class OwnerRow:
    name: str
    node: str
    incarnation: int
    epoch: int

    @staticmethod
    def of(row: Row) -> OwnerRow:
        return OwnerRow(*row)  # type: ignore[arg-type]

    @property
    def row(self) -> Row:
        return (self.name, self.node, self.incarnation, self.epoch)

    def belongs(self, me: Me) -> bool:
        return self.node == me.name and self.incarnation == me.incarnation


@dataclass(frozen=True, slots=True)
class Seen:
    """Nodes, owners and leases as they were at `now` of the store, or a little later."""

    nodes: Mapping[str, NodeRow] = field(default_factory=dict)
    owners: Mapping[str, OwnerRow] = field(default_factory=dict)
    leases: Mapping[str, int] = field(default_factory=dict)
    now: int = 0

    def alive(self, name: str, incarnation: int) -> bool:
        """Whether this life of a node goes on, as far as was seen."""
        node = self.nodes.get(name)
        return node is not None and node.incarnation == incarnation and node.state != CLOSED and node.until > self.now


def over_in(rows: Iterable[Row]) -> Callable[[str], bool]:
    """Whether a life, as its text says it, is over by the rows of the nodes. It never comes back."""
    lives = {node.name: node for node in map(NodeRow.of, rows)}

    def over(life: str) -> bool:
        incarnation, _, name = life.partition(" ")
        node = lives.get(name)
        if node is None or not incarnation.isdigit():
            return False
        return int(incarnation) < node.incarnation or (int(incarnation) == node.incarnation and node.state == CLOSED)

    return over


def telling_code(node: str, reads: str) -> Body[None]:
    """What the code of this node reads, before it joins."""

    def body() -> Any:
        yield ()
        return Last((Put(CODE, [(node, reads)]),), None)

    return body


def slot_name(slot: int) -> str:
    return f"slot/{slot}"


def space_name(space: str) -> str:
    """The name by which a space is owned whose file one process has for itself."""
    return SPACE + space


def actor_name(at: ActorId) -> str:
    """The name by which one actor is owned apart from its slot. No slot's name has two slashes."""
    return join(at.principal, at.kind, at.key)


def looked() -> tuple[Query, Query, Query]:
    """What a node looks at on each beat."""
    return Query(NODE), Query(OWNER), Query(LEASE)


def seen(answers: Sequence[Any], now: int) -> Seen:
    nodes, owners, leases = answers
    return Seen(
        {row[0]: NodeRow.of(row) for row in nodes},
        {row[0]: OwnerRow.of(row) for row in owners},
        {row[0]: int(row[1]) for row in leases},
        now,
    )


def guarded(names: Iterable[str]) -> Query:
    """The rows that a commit reads first: nobody takes these names before it is through."""
    return Query(OWNER, on=("name",), keys=[(name,) for name in names], lock="share")


# --- nodes -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Joined:
    """now: of the store. slots: how many the store has."""

    me: Me
    now: int
    slots: int


def joining(name: str, url: str | None, lease_ms: int, slots: int, *, strict: bool = False) -> Body[Joined]:
    """A new life of this node. An earlier one of the same name is over from now on: what it owns is nobody's.

    strict: nobody joins a store that has another number of slots; `Joined` says how many.
    """

    def body() -> Any:
        (actors,) = yield (Query(ACTOR, limit=1),)
        # Actors from before there was a fleet have the slots that a store has by default.
        there = SLOTS if actors else slots
        (split,) = yield (Append(SPLIT, [("slots", there)]),)
        there = there if split[0] is None else int(split[0][1])
        if strict and there != slots:
            return Last((), Joined(Me(name, 0), 0, there))
        yield (Append(NODE, [(name, 0, 0, CLOSED, None, 0)]),)  # a row that is not there yet cannot be locked
        ((known,),) = yield (Query(NODE, on=("name",), keys=[(name,)], lock="update"),)
        incarnation = NodeRow.of(known).incarnation + 1
        _, ((after,)) = yield (
            Put(NODE, [(name, incarnation, 0, LIVE, url, 0)]),
            Cas(NODE, [((name,), {}, {"until": DbNow(lease_ms), "since": DbNow()})]),
        )
        return Last((), Joined(Me(name, incarnation), NodeRow.of(after).since, there))

    return body


def renewing(me: Me, lease_ms: int, state: str) -> Body[int | None]:
    """Live on. The store's clock; None where this life was closed."""

    def body() -> Any:
        ((after,),) = yield (_lives(me, state, {"until": DbNow(lease_ms)}),)
        return Last((), None if after is None else NodeRow.of(after).until - lease_ms)

    return body


def telling(me: Me, before: str, state: str) -> Body[bool]:
    """Tell the others: leaving, or closed."""

    def body() -> Any:
        ((after,),) = yield (_lives(me, before, {"state": state}),)
        return Last((), after is not None)

    return body


def closing(me: Me, lease_ms: int, names: Sequence[str], ends: Mapping[str, int] | None = None) -> Body[list[str]]:
    """Close the rows of nodes whose lease is over by the store's clock. Which they are; none where this life is over.

    ends: of each lease as it was seen to stand still; one that was renewed since is left alone, whatever the clock says.
    """
    still = ends or {}

    def body() -> Any:
        ((after,), rows) = yield (
            _lives(me, LIVE, {"until": DbNow(lease_ms)}),
            Query(NODE, on=("name",), keys=[(name,) for name in names], lock="update", skip_locked=True),
        )
        if after is None:
            return Last((), [])
        now = NodeRow.of(after).until - lease_ms
        over = [row for row in map(NodeRow.of, rows) if row.state != CLOSED and row.until < now]
        over = [row for row in over if still.get(row.name, row.until) == row.until]
        closed: list[Row] = [(row.name, row.incarnation, row.until, CLOSED, row.url, row.since) for row in over]
        return Last((Put(NODE, closed),) if closed else (), [row.name for row in over])

    return body


def _lives(me: Me, state: str, values: Mapping[str, Value]) -> Cas:
    """Set these of this life's row, if it goes on and is in that state."""
    return Cas(NODE, [((me.name,), {"incarnation": me.incarnation, "state": state}, values)])


# --- names -----------------------------------------------------------------------------------------


def above(epoch: int, incarnation: int) -> int:
    """The epoch after this one, in this history of the store."""
    return max(epoch, (incarnation - 1) * EPOCHS) + 1


def taking(me: Me, names: Mapping[str, int], incarnation: int) -> Body[dict[str, int]]:
    """Take names, each seen at an epoch, that no living node owns. Which were taken, and under which epochs.

    A name that a commit of its dead owner still holds is passed over, and taken at the next beat. incarnation: of the
    store.
    """

    def body() -> Any:
        keys: list[Row] = [(name,) for name in names]
        nodes, rows, met = yield (
            Query(NODE),
            Query(OWNER, on=("name",), keys=keys, lock="update", skip_locked=True),
            Query(OWNER, on=("name",), keys=keys),
        )
        lives = {(row[0], row[1]) for row in nodes if row[3] != CLOSED}
        if (me.name, me.incarnation) not in lives:
            return Last((), {})
        there = {row[0] for row in met}
        locked = [*map(OwnerRow.of, rows), *(OwnerRow(name, NOBODY, 0, 0) for name in names if name not in there)]
        taken: dict[str, int] = {}
        fresh: list[Row] = []
        changed: list[Row] = []
        for row in locked:
            if row.epoch == names[row.name] and (row.node, row.incarnation) not in lives:
                taken[row.name] = above(row.epoch, incarnation)
                after = (row.name, me.name, me.incarnation, taken[row.name])
                (changed if row.name in there else fresh).append(after)
        return Last((*_puts(changed), *((Append(OWNER, fresh),) if fresh else ())), taken)

    return body


def handing(me: Me, names: Mapping[str, tuple[int, Me]], incarnation: int) -> Body[list[OwnerRow]]:
    """Hand names over, each held under an epoch, each to a life of another node. The rows of those that were handed."""

    def body() -> Any:
        keys: list[Row] = [(name,) for name in names]
        (rows,) = yield (Query(OWNER, on=("name",), keys=keys, lock="update"),)
        ours = [row for row in map(OwnerRow.of, rows) if row.belongs(me) and row.epoch == names[row.name][0]]
        after = []
        for row in ours:
            to = names[row.name][1]
            after.append(OwnerRow(row.name, to.name, to.incarnation, above(row.epoch, incarnation)))
        return Last(_puts([row.row for row in after]), after)

    return body


def _puts(rows: Sequence[Row]) -> tuple[Put, ...]:
    return (Put(OWNER, rows),) if rows else ()
