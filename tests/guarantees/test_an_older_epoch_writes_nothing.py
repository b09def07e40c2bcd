"""Promise 4, as far as a store can show it: after a takeover no row of an older epoch lands, in any table of the kernel.

The check is in the commit: the owner's row is read under a share lock by the very body that writes. Who seizes, and
when, is decided above the store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import pytest

from onefold.kernel.tables import ACTOR, ALARM, KERNEL, OWED, SENT, TURN
from onefold.store.contract import (
    Append,
    AuthorSpace,
    Cas,
    Column,
    Create,
    Done,
    Inc,
    Last,
    Migration,
    Outcome,
    Put,
    Query,
    Refusal,
    Refused,
    Remove,
    Schema,
    Table,
    Write,
)
from onefold.terms.errors import OwnedElsewhere
from tests.contracts.backends import BACKENDS

OWNER = Table("owner", (Column("name", "text"), Column("node", "text"), Column("epoch", "int")), key=("name",))
FLEET = Schema("fleet", (OWNER,), (Migration(1, oldest=1, steps=(Create(OWNER),)),))
TABLES = (*KERNEL.tables, OWNER)


@pytest.fixture(params=BACKENDS)
async def space(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AuthorSpace]:
    world = BACKENDS[request.param](tmp_path)()
    yield await world.open("main", [KERNEL, FLEET])
    await world.close()


async def guarded(space: AuthorSpace, epoch: int, *writes: Write) -> Outcome[None]:
    """Write as whoever held slot/1 in `epoch`."""

    def body() -> Generator[Any, Any, Last[None]]:
        (rows,) = yield (Query(OWNER, on=("name",), keys=[("slot/1",)], lock="share"),)
        if rows[0][2] != epoch:
            raise Refusal(OwnedElsewhere("slot/1", rows[0][1], epoch, rows[0][2]))
        return Last(writes, None)

    return await space.transact(body)


async def rows(space: AuthorSpace) -> list[Any]:
    return [await space.look(Query(table)) for table in TABLES]


def turn(space: AuthorSpace, event: str) -> tuple[Any, ...]:
    cells: dict[str, Any] = {column.name: None for column in TURN.columns}
    cells |= {
        "n": space.mint(TURN),
        "actor": 1,
        "seq": 1,
        "event": event,
        "digest": b"",
        "facts": b"[]",
        "at": 1,
        "gen": 0,
    }
    return tuple(cells.values())


def owed(n: int, state: str) -> tuple[Any, ...]:
    cells: dict[str, Any] = {column.name: None for column in OWED.columns}
    cells |= {
        "n": n,
        "actor": 1,
        "slot": 0,
        "key": "e/1",
        "port": "p",
        "bytes": b"1",
        "tries": 0,
        "state": state,
        "at": 1,
    }
    return tuple(cells.values())


async def test_after_a_takeover_nothing_of_an_older_epoch_lands(space: AuthorSpace) -> None:
    number = space.mint(OWED)
    first = (
        Append(ACTOR, [(1, "bank", "-", "a", 0)]),
        Append(TURN, [turn(space, "d/1")]),
        Append(OWED, [owed(number, "ready")]),
        Put(ALARM, [(1, "bank", 0, 5, 0, None)]),
    )
    seeded = await space.transact(lambda: _last(Put(OWNER, [("slot/1", "a", 1)])))
    assert isinstance(seeded, Done)
    assert isinstance(await guarded(space, 1, *first), Done)
    seized = await space.transact(
        lambda: _last(Cas(OWNER, [(("slot/1",), {"epoch": 1}, {"node": "b", "epoch": Inc(1)})]))
    )
    assert isinstance(seized, Done)
    before = await rows(space)

    late: dict[str, Write] = {
        "a turn": Append(TURN, [turn(space, "d/2")]),
        "an actor": Append(ACTOR, [(2, "bank", "-", "b", 0)]),
        "something owed": Append(OWED, [owed(space.mint(OWED), "ready")]),
        "a try of what is owed": Put(OWED, [owed(number, "sending")]),
        "a confirmation": Remove(OWED, keys=[(number,)]),
        "a key that was sent": Append(SENT, [(1, "k/1", b"d")]),
        "an alarm that is moved": Put(ALARM, [(1, "bank", 0, 1, 0, None)]),
        "an alarm that is taken away": Remove(ALARM, keys=[(1,)]),
        "its own epoch": Put(OWNER, [("slot/1", "a", 1)]),
    }
    for what, write in late.items():
        outcome = await guarded(space, 1, write)
        assert isinstance(outcome, Refused), what
        assert isinstance(outcome.error, OwnedElsewhere), what
        assert (outcome.error.held_epoch, outcome.error.record_epoch) == (1, 2), what
        assert await rows(space) == before, what
    assert isinstance(await guarded(space, 2, late["a turn"], late["a confirmation"]), Done)


def _last(*writes: Write) -> Generator[Any, Any, Last[None]]:
    yield ()
    return Last(writes, None)
