"""node.sweeping - ids and replies whose time is over, taken away a bounded number of turns at a time.

For: going through a space's turns in the order in which they were decided, once, and remembering how far.
Never: looks at a turn twice; decides whether a repeat counts (the fold does, by the turn's own instant);
takes a fact.
Was wrong once: an index by instant. Each fold paid for it, and the turns are in that order already.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial

from onefold.kernel.retain import (
    LOOK,
    after,
    aged,
    freed,
    holds_id,
    holds_reply,
    mailed,
    posted,
    removable,
    unreplied,
    untold,
)
from onefold.kernel.tables import ACTOR, OWED, SWEPT, TURN
from onefold.node.owning import Guard
from onefold.store.contract import (
    Answer,
    Append,
    Cas,
    Each,
    Last,
    Query,
    Refused,
    Remove,
    Row,
    Space,
    Unknown,
    Verb,
    Write,
)
from onefold.terms.errors import OutcomeUnknown

REPLIES = "replies"

_N, _ACTOR, _PREV, _EVENT = TURN.at["n"], TURN.at["actor"], TURN.at["prev"], TURN.at["event"]
_OWES = OWED.at["actor"]

Choice = Callable[[Space, Sequence[Row]], Awaitable[tuple[int, list[Write]]]]


@dataclass(frozen=True, slots=True)
class Swept:
    """What was taken, and whether there may be more to take now."""

    count: int
    more: bool


async def replies(
    space: Space, guard: Guard, upto: int, now: int, *, looks: int | None = None, dry: bool = False
) -> Swept:
    """Take the replies of turns away that were decided at `upto` (ms) or before.

    looks: at most so many commits; None, all there is. dry: only count.
    Raises: StoreUnavailable, OutcomeUnknown, OwnedElsewhere; the same again is safe.
    """
    return await _go(space, guard, REPLIES, _with_replies, upto, now, looks, dry)


async def ids(space: Space, guard: Guard, kind: str, upto: int, now: int, *, looks: int | None = None) -> Swept:
    """Free the ids of this kind's turns decided at `upto` (ms) or before, and remove rows with nothing left."""
    return await _go(space, guard, f"ids/{kind}", partial(_with_ids, kind), upto, now, looks, dry=False)


async def _go(
    space: Space, guard: Guard, what: str, choose: Choice, upto: int, now: int, looks: int | None, dry: bool
) -> Swept:
    (known,) = await space.look(Query(SWEPT, on=("what",), keys=[(what,)]))
    told = int(known[0][1] or 0) if known else None
    place, count, done, more = told or 0, 0, 0, True
    while more and (looks is None or done < looks):
        (rows,) = await space.look(after(place, LOOK))
        look = aged(rows, place, upto, now, LOOK)
        chosen, writes = await choose(space, await _told(space, look.turns))
        if look.upto > place and not dry:
            await committed(space, guard, (*writes, _moved(what, told, look.upto)), f"the sweep of {what}")
            told = look.upto
        place, more = look.upto, look.more
        count += chosen
        done += 1
    return Swept(count, more)


async def _told(space: Space, turns: Sequence[Row]) -> Sequence[Row]:
    """These turns without mail whose sender may still send it again, and will ask for its reply.

    Such a turn is passed over for good: there are few, and to come back for them each sweep would keep a list.
    """
    if not mailed(turns):
        return turns
    waits: set[str] = set()
    place, more = 0, True
    while more:
        (rows,) = await space.look(posted(place, LOOK))
        more = len(rows) == LOOK
        if rows:
            place = int(rows[-1][0] or 0)
            actors: list[Row] = [(n,) for n in {row[_OWES]: None for row in rows}]
            (named,) = await space.look(Query(ACTOR, on=("n",), keys=actors))
            waits |= untold(rows, named)
    return [row for row in turns if str(row[_EVENT]) not in waits] if waits else turns


def _moved(what: str, told: int | None, upto: int) -> Write:
    """How far the sweep is now, unless another of its kind, begun meanwhile, has told so: it is never moved back."""
    if told is None:
        return Append(SWEPT, [(what, upto)], met="keep")
    return Cas(SWEPT, [((what,), {"n": told}, {"n": upto})])


async def committed(space: Space, guard: Guard, writes: tuple[Write, ...], what: str) -> None:
    """Write these in one commit. Raises: what refused it, OwnedElsewhere too; OutcomeUnknown."""

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[None]]:
        yield ()
        return Last(writes, None)

    outcome = await space.transact(guard.around(body))
    if isinstance(outcome, Refused):
        raise outcome.error
    if isinstance(outcome, Unknown):
        raise OutcomeUnknown(what)


async def _with_replies(space: Space, turns: Sequence[Row]) -> tuple[int, list[Write]]:
    held = [row for row in turns if holds_reply(row)]
    return len(held), [unreplied(held)] if held else []


async def _with_ids(kind: str, space: Space, turns: Sequence[Row]) -> tuple[int, list[Write]]:
    actors = list({row[_ACTOR]: None for row in turns})
    if not actors:
        return 0, []
    (named,) = await space.look(Query(ACTOR, on=("n",), keys=[(n,) for n in actors]))
    ours = {row[0] for row in named if row[1] == kind}
    mine = [row for row in turns if row[_ACTOR] in ours]
    if not mine:
        return 0, []
    before: list[Row] = [(row[_PREV],) for row in mine if row[_PREV] is not None]
    kept, newest = await space.look(
        Query(TURN, on=("n",), keys=before), Query(TURN, order=("-n",), each=Each("actor", list(ours), 1))
    )
    inside = {row[_N] for row in mine}
    gone = removable(mine, {row[_N] for row in kept} - inside, {row[_N] for row in newest})
    going = {row[_N] for row in gone}
    free = [row for row in mine if holds_id(row)]
    writes: list[Write] = [freed(row for row in free if row[_N] not in going)]
    if gone:
        writes.append(Remove(TURN, keys=[(row[_N],) for row in gone]))
    return len(free), writes
