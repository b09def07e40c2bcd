"""node.waking - an actor read from its rows into memory, and facts taken away behind its snapshot.

For: what is asked of the store for one actor: its turns back to the snapshot, what it owes, its alarm.
Never: folds; reads further back than the latest snapshot; keeps an actor.
Was wrong once: each look of a long history asked again for what the look before it had read.
"""

from __future__ import annotations

from typing import Any

from onefold.kernel.alarm import Alarm
from onefold.kernel.chain import START
from onefold.kernel.fold import Base
from onefold.kernel.module import Module
from onefold.kernel.prune import SLICE, Behind, Pruned, before, emptied, first_kept, older, opened
from onefold.kernel.reading import Unreadable
from onefold.kernel.rebuild import GROWTH, PAGE, Start, missing, newest, outstanding, owed_rows, rebuild, start_in
from onefold.kernel.tables import ACTOR, ALARM, TURN
from onefold.node.owning import Guard
from onefold.node.resident import Resident
from onefold.node.sweeping import committed
from onefold.store.contract import Query, Remove, Row, Space
from onefold.terms.damage import HistoryDamaged
from onefold.terms.errors import WaitsForCode
from onefold.terms.ids import SLOTS, ActorId, principal_text, slot_of

WAITING = 1_000  # actors known by name to wait; each is noted again when it is next wanted

AnyModule = Module[Any, Any, Any, Any, Any]

_N, _ACTOR = TURN.at["n"], TURN.at["actor"]
_SEQ, _AT, _LINK = TURN.at["seq"], TURN.at["at"], TURN.at["link"]


class Waits:
    """Actors that were wanted and wait for code, with why and since when. The oldest give way beyond WAITING."""

    def __init__(self) -> None:
        self.known: dict[ActorId, tuple[WaitsForCode, int]] = {}

    def note(self, at: ActorId, fault: BaseException, now: int) -> None:
        """Reading the actor failed at `now` (ms)."""
        if isinstance(fault, WaitsForCode):
            since = self.known[at][1] if at in self.known else now
            self.known[at] = (fault, since)
            if len(self.known) > WAITING:
                del self.known[next(iter(self.known))]

    def over(self, at: ActorId) -> None:
        """The actor could be read."""
        self.known.pop(at, None)


def row_of(at: ActorId) -> Query:
    """The row that names the actor."""
    return Query(ACTOR, on=("kind", "principal", "key"), keys=[(at.kind, principal_text(at.principal), at.key)])


async def woken(space: Space, module: AnyModule, at: ActorId, slots: int = SLOTS) -> Resident:
    """The actor as its rows have it. Raises: WaitsForCode, HistoryDamaged, StoreUnavailable."""
    (actors,) = await space.look(row_of(at))
    if not actors:
        base = Base(space.mint(ACTOR), slot_of(at, slots), at.kind, at.principal, at.key, module.initial, 0, 0, None, 0)
        return Resident(module, base, Alarm(), fresh=True)
    number, slot = actors[0][0], actors[0][4]
    turns, owed, alarms = await space.look(
        newest(number), outstanding(number), Query(ALARM, on=("actor",), keys=[(number,)])
    )
    start = await _reach_back(space, module, turns)
    if first := missing(turns, start):
        raise HistoryDamaged(at.kind, at.key, first)
    try:
        state = rebuild(module, turns, start)
    except Unreadable as fact:
        raise WaitsForCode(at.kind, at.key, fact.kind, fact.why) from None
    seq, last, now = (turns[0][_SEQ], turns[0][_N], turns[0][_AT]) if turns else (0, None, 0)
    snapshot_seq = 0 if start is None else start.seq
    behind = len(turns) if start is None else start.index
    link: Any = (turns[0][_LINK] if turns else None) or START
    base = Base(number, slot, at.kind, at.principal, at.key, state, seq, snapshot_seq, last, now, behind, link)
    alarm = Alarm(alarms[0][3], alarms[0][4], alarms[0][5], True) if alarms else Alarm()
    resident = Resident(module, base, alarm, fresh=False)
    resident.owed = {item.n: item for item in owed_rows(owed)}
    if alarm.tries:
        resident.failed_wake = module.wakes_at(state)
    return resident


async def _reach_back(space: Space, module: AnyModule, turns: list[Row]) -> Start | None:
    """Ask for older turns until they reach back to where a rebuild begins. Adds them to `turns`."""
    start, limit = start_in(module, turns), PAGE
    read = len(turns)
    while start is None and read == limit and (at := before(turns[-1])) is not None:
        limit *= GROWTH
        (page,) = await space.look(older(int(turns[-1][_ACTOR] or 0), at, limit))
        found = start_in(module, page)
        start = None if found is None else Start(found.index + len(turns), found.inside, found.seq)
        turns.extend(page)
        read = len(page)
    return start


# --- pruning ----------------------------------------------------------------------------------------


async def pruned(space: Space, guard: Guard, module: AnyModule, at: ActorId) -> Pruned:
    """Take away the facts behind the actor's latest snapshot, so many turns a commit.

    Raises: StoreUnavailable, OutcomeUnknown, OwnedElsewhere. Cut off anywhere, the same again goes on from there.
    """
    (actors,) = await space.look(row_of(at))
    if not actors:
        return Pruned(0, 1)
    (turns,) = await space.look(newest(actors[0][0]))
    start = await _reach_back(space, module, turns)
    if start is None:
        return Pruned(0, 1)
    row = turns[start.index]
    begins = first_kept(row, start.inside)
    if not start.seq:
        return Pruned(0, begins)
    behind = await _behind(space, row)
    what = f"the prune of {at.kind} {at.key}"
    if behind.held or start.inside:
        await committed(space, guard, (opened(row, start.inside),), what)
    gone = behind.to_remove()
    for place in range(0, len(gone), SLICE):
        keys: list[Row] = [(n,) for n in gone[place : place + SLICE]]
        await committed(space, guard, (Remove(TURN, keys=keys),), what)
    kept = behind.to_empty(gone)
    for place in range(0, len(kept), SLICE):
        await committed(space, guard, (emptied(kept[place : place + SLICE]),), what)
    return Pruned(behind.facts + start.inside, begins)


async def _behind(space: Space, row: Row) -> Behind:
    """The turns before this one, as far back as any has facts."""
    behind = Behind(cursor=before(row))
    while behind.cursor is not None:
        (page,) = await space.look(older(int(row[_ACTOR] or 0), behind.cursor, PAGE * GROWTH))
        behind.add(page)
    return behind
