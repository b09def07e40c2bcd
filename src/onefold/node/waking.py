"""node.waking - an actor read from its rows into memory, and facts taken away behind its snapshot.

For: what is asked of the store for one actor: its turns back to the snapshot, what it owes, its alarm.
Never: folds; reads further back than the latest snapshot; keeps an actor.
Was wrong once: each look of a long history asked again for what the look before it had read.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from onefold.kernel.alarm import Alarm
from onefold.kernel.fold import Base
from onefold.kernel.module import Module
from onefold.kernel.prune import SLICE, Pruned, emptied, first_kept, older, opened, to_empty
from onefold.kernel.rebuild import GROWTH, PAGE, Start, newest, outstanding, owed_rows, rebuild, start_in
from onefold.kernel.tables import ACTOR, ALARM, TURN
from onefold.node.resident import Resident
from onefold.store.contract import Answer, Cas, Last, Query, Refused, Row, Space, Unknown, Verb
from onefold.terms.errors import OutcomeUnknown, WaitsForCode
from onefold.terms.ids import ActorId, principal_text
from onefold.terms.instant import up
from onefold.terms.typed import UnknownKind

AnyModule = Module[Any, Any, Any, Any, Any]

_N, _ACTOR, _PREV = TURN.at["n"], TURN.at["actor"], TURN.at["prev"]
_SEQ, _AT = TURN.at["seq"], TURN.at["at"]


def row_of(at: ActorId) -> Query:
    """The row that names the actor."""
    return Query(ACTOR, on=("kind", "principal", "key"), keys=[(at.kind, principal_text(at.principal), at.key)])


async def woken(space: Space, module: AnyModule, at: ActorId) -> Resident:
    """The actor as its rows have it. Raises: WaitsForCode, StoreUnavailable."""
    (actors,) = await space.look(row_of(at))
    if not actors:
        base = Base(space.mint(ACTOR), 0, at.kind, at.principal, at.key, module.initial, 0, 0, None, 0)
        return Resident(module, base, Alarm(), fresh=True)
    number, slot = actors[0][0], actors[0][4]
    turns, owed, alarms = await space.look(
        newest(number), outstanding(number), Query(ALARM, on=("actor",), keys=[(number,)])
    )
    start = await _reach_back(space, module, turns)
    try:
        state = rebuild(module, turns, start)
    except UnknownKind as unknown:
        raise WaitsForCode(at.kind, at.key, unknown.kind) from None
    seq, last, now = (turns[0][_SEQ], turns[0][_N], turns[0][_AT]) if turns else (0, None, 0)
    snapshot_seq = 0 if start is None else start.seq
    behind = len(turns) if start is None else start.index
    base = Base(number, slot, at.kind, at.principal, at.key, state, seq, snapshot_seq, last, now, behind)
    alarm = Alarm(alarms[0][3], alarms[0][4], alarms[0][5], True) if alarms else Alarm()
    resident = Resident(module, base, alarm, fresh=False)
    resident.owed = {item.n: item for item in owed_rows(owed)}
    if alarm.tries and module.wake is not None:
        wake = module.wake(state)
        resident.failed_wake = None if wake is None else up(wake)
    return resident


async def _reach_back(space: Space, module: AnyModule, turns: list[Row]) -> Start | None:
    """Ask for older turns until they reach back to where a rebuild begins. Adds them to `turns`."""
    start, limit = start_in(module, turns), PAGE
    read = len(turns)
    while start is None and read == limit and turns[-1][_PREV] is not None:
        limit *= GROWTH
        (page,) = await space.look(older(turns[-1][_ACTOR], turns[-1][_PREV], limit))  # type: ignore[arg-type]
        found = start_in(module, page)
        start = None if found is None else Start(found.index + len(turns), found.inside, found.seq)
        turns.extend(page)
        read = len(page)
    return start


# --- pruning ----------------------------------------------------------------------------------------


async def pruned(space: Space, module: AnyModule, at: ActorId) -> Pruned:
    """Take away the facts behind the actor's latest snapshot, so many turns a commit.

    Raises: StoreUnavailable, OutcomeUnknown. Cut off anywhere, the same again goes on from there.
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
    numbers, facts = await _behind(space, row)
    if numbers or start.inside:
        await _write(space, at, opened(row, start.inside))
    numbers.reverse()
    for place in range(0, len(numbers), SLICE):
        await _write(space, at, emptied(numbers[place : place + SLICE]))
    return Pruned(facts + start.inside, begins)


async def _behind(space: Space, row: Row) -> tuple[list[int], int]:
    """The turns before this one that hold facts, newest first, and how many facts they hold."""
    numbers: list[int] = []
    facts = 0
    cursor: Any = row[_PREV]
    while cursor is not None:
        (page,) = await space.look(older(int(row[_ACTOR] or 0), cursor, PAGE * GROWTH))
        some, held, cursor = to_empty(page)
        numbers += some
        facts += held
    return numbers, facts


async def _write(space: Space, at: ActorId, cas: Cas) -> None:
    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[None]]:
        yield ()
        return Last((cas,), None)

    outcome = await space.transact(body)
    if isinstance(outcome, Refused):
        raise outcome.error
    if isinstance(outcome, Unknown):
        raise OutcomeUnknown(f"the prune of {at.kind} {at.key}")
