"""fleet.claims - one name taken, kept and let go of by itself: a slot, or one actor apart from its slot.

For: claim, seize, renew, release, and letting a name fall back. Pure: each is a transaction body.
Never: gives an epoch twice; leaves the owner of an actor's slot in the belief that the actor is its own.
Was wrong once: an actor claimed beside its slot. The slot's owner had it in memory, its guard still passed, and two
wrote: the claim now bumps the slot's epoch with its own. And a slot claimed without an end: the next beat gave it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from onefold.fleet.ownership import CLOSED, LEASE, NOBODY, NODE, OWNER, Me, NodeRow, OwnerRow, above
from onefold.fleet.words import Claimed, Contended, Fenced, Free, HeldBy, Owner, Seized
from onefold.store.contract import Append, Body, Cas, DbNow, Last, Put, Query, Row, Write
from onefold.terms.instant import moment

FOR_EVER = 0  # no lease of its own: it ends with the node, or when another is to have the name
HELD = 1 << 62  # the same, of what was claimed by hand: it ends with the node


def claiming(name: str, slot: str | None, me: Me, lease_ms: int | None, incarnation: int) -> Body[Claimed | HeldBy]:
    """Own a name that nobody alive owns. slot: that of an actor's name. lease_ms: None, as long as the node lives."""

    def body() -> Any:
        locked = yield from _locked(name, slot)
        row, now = locked.rows[name], locked.now
        held = _held(row, locked.nodes, now, locked.until)
        if held is not None and not row.belongs(me):
            return Last((), HeldBy(row.node, moment(held)))
        if held is not None:
            return Last(_lease(name, now, lease_ms), Claimed(row.epoch))
        epoch = above(row.epoch, incarnation)
        writes = _owned(locked.rows, name, slot, me, epoch, incarnation)
        return Last((*writes, *_lease(name, now, lease_ms)), Claimed(epoch))

    return body


def seizing(
    name: str, slot: str | None, me: Me, lease_ms: int | None, epoch: int, incarnation: int
) -> Body[Seized | Free | Contended]:
    """Own a name whoever owns it, seen under `epoch` just before."""

    def body() -> Any:
        locked = yield from _locked(name, slot)
        row = locked.rows[name]
        if row.node == NOBODY:
            return Last((), Free())
        if row.epoch != epoch:
            return Last((), Contended())
        after = above(row.epoch, incarnation)
        writes = _owned(locked.rows, name, slot, me, after, incarnation)
        return Last((*writes, *_lease(name, locked.now, lease_ms)), Seized(after))

    return body


def renewing(name: str, me: Me, epoch: int, lease_ms: int | None) -> Body[Claimed | Fenced | Free]:
    """Keep a name for longer."""

    def body() -> Any:
        locked = yield from _locked(name, None)
        row = locked.rows[name]
        if row.belongs(me) and row.epoch == epoch:
            return Last(_lease(name, locked.now, lease_ms), Claimed(epoch))
        return Last((), Free() if row.node == NOBODY else Fenced(row.epoch))

    return body


def releasing(name: str, slot: str | None, me: Me, epoch: int, incarnation: int) -> Body[Free | Fenced]:
    """Own it no longer. An actor's name falls back to the owner of its slot."""

    def body() -> Any:
        locked = yield from _locked(name, slot)
        row = locked.rows[name]
        if row.node == NOBODY:
            return Last((), Free())
        if not row.belongs(me) or row.epoch != epoch:
            return Last((), Fenced(row.epoch))
        return Last(_freed([row], incarnation), Free())

    return body


def lapsing(names: dict[str, int], incarnation: int) -> Body[list[str]]:
    """Let actors' names, each seen under an epoch, fall back whose owner or own lease is over. Which they were."""

    def body() -> Any:
        keys: list[Row] = [(name,) for name in names]
        yield (Append(LEASE, [(name, FOR_EVER, 0) for name in names]),)
        leases, found, nodes = yield (
            Cas(LEASE, [((name,), {}, {"asked": DbNow()}) for name in names]),
            Query(OWNER, on=("name",), keys=keys, lock="update"),
            Query(NODE),
        )
        by_name = {row[0]: row for row in leases}
        lives = {row[0]: NodeRow.of(row) for row in nodes}
        over = []
        for row in map(OwnerRow.of, found):
            _, until, now = by_name[row.name]
            if row.node != NOBODY and row.epoch == names[row.name] and (0 < until <= now or _gone(row, lives)):
                over.append(row)
        return Last(_freed(over, incarnation), [row.name for row in over])

    return body


def inheriting(me: Me, names: Mapping[str, int]) -> Body[None]:
    """Names that were just taken, each under an epoch: what an earlier owner had claimed them by is over with it."""

    def body() -> Any:
        keys: list[Row] = [(name,) for name in names]
        _, found = yield (
            Query(LEASE, on=("name",), keys=keys, order=("name",), lock="update"),
            Query(OWNER, on=("name",), keys=keys),
        )
        mine = [row for row in map(OwnerRow.of, found) if row.belongs(me) and row.epoch == names[row.name]]
        return Last((Put(LEASE, [(row.name, FOR_EVER, 0) for row in mine]),) if mine else (), None)

    return body


def judged(row: OwnerRow | None, me: Me, epoch: int) -> Owner | Fenced | Free:
    """What a holder under `epoch` is told."""
    if row is None or row.node == NOBODY:
        return Free()
    return Owner() if row.belongs(me) and row.epoch == epoch else Fenced(row.epoch)


# --- inside ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Locked:
    """rows: of the name and its slot. until: the end of the name's own lease. now: the store's clock."""

    rows: Mapping[str, OwnerRow]
    nodes: Mapping[str, NodeRow]
    until: int
    now: int


def _locked(name: str, slot: str | None) -> Any:
    """What a change of a name goes by, its own rows locked to the end of the body: they are made where they are not there
    yet, since nothing else would keep the name from being taken meanwhile."""
    names = [name, *([slot] if slot is not None else [])]
    keys: list[Row] = [(key,) for key in names]
    yield Append(LEASE, [(name, FOR_EVER, 0)]), Append(OWNER, [(key, NOBODY, 0, 0) for key in names])
    ((lease,), found, nodes) = yield (
        Cas(LEASE, [((name,), {}, {"asked": DbNow()})]),
        Query(OWNER, on=("name",), keys=keys, lock="update", order=("name",)),
        Query(NODE),
    )
    rows = {row[0]: OwnerRow.of(row) for row in found}
    return _Locked(rows, {row[0]: NodeRow.of(row) for row in nodes}, int(lease[1]), int(lease[2]))


def _held(row: OwnerRow, nodes: Mapping[str, NodeRow], now: int, until: int) -> int | None:
    """Until when the owner has it; None where nobody alive does."""
    node = nodes.get(row.node)
    if node is None or node.incarnation != row.incarnation or node.state == CLOSED or node.until <= now:
        return None
    if until == FOR_EVER:
        return node.until
    return min(until, node.until) if until > now else None


def _gone(row: OwnerRow, nodes: Mapping[str, NodeRow]) -> bool:
    """Whether its owner's life is over. Not before it was closed: whoever closes it has watched it, not only the clock."""
    node = nodes.get(row.node)
    return node is None or node.incarnation != row.incarnation or node.state == CLOSED


def _owned(
    rows: Mapping[str, OwnerRow], name: str, slot: str | None, me: Me, epoch: int, incarnation: int
) -> tuple[Write, ...]:
    puts: list[Row] = [(name, me.name, me.incarnation, epoch)]
    if slot is not None:
        of = rows[slot]
        puts.append((slot, of.node, of.incarnation, above(of.epoch, incarnation)))
    return (Put(OWNER, puts),)


def _lease(name: str, now: int, lease_ms: int | None) -> tuple[Write, ...]:
    return (Put(LEASE, [(name, HELD if lease_ms is None else now + lease_ms, now)]),)


def _freed(rows: Iterable[OwnerRow], incarnation: int) -> tuple[Write, ...]:
    """Nobody's; the epoch goes on, so that whoever had it is refused."""
    puts: list[Row] = [(row.name, NOBODY, 0, above(row.epoch, incarnation)) for row in rows]
    return (Put(OWNER, puts), Put(LEASE, [(row[0], FOR_EVER, 0) for row in puts])) if puts else ()
