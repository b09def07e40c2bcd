"""A local port is a table of the same space: its row is part of the fold's own commit, in fold order."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from onefold.host.caller import inside
from onefold.host.catalog import catalog
from onefold.host.config import Config
from onefold.host.core import Core
from onefold.host.modules import ModuleVerbs
from onefold.kernel.port import Local
from onefold.store.contract import Column, Create, Migration, Query, Row, Schema, Table, World
from onefold.store.memory import MemoryWorld
from onefold.store.sqlite import SqliteWorld
from onefold.terms.errors import StoreUnavailable, TooLarge
from onefold.terms.limits import MAX_ROW_BYTES
from onefold.testing import VirtualClock
from tests.guarantees.shop import Deposit, PayOut, Transfer, bank

LETTERS = Table(
    "letters",
    (Column("n", "int"), Column("actor", "int"), Column("key", "text"), Column("amount", "int")),
    key=("n",),
    serial=True,
)
POST = Schema("post", (LETTERS,), (Migration(1, oldest=1, steps=(Create(LETTERS),)),))


class Verbs(ModuleVerbs):
    def __init__(self, core: Core) -> None:
        self._core = core


class Fails:
    """A disk that fails when it is told to."""

    def __init__(self) -> None:
        self.now = False

    def __call__(self, point: str) -> None:
        if self.now and point == "before-commit":
            raise OSError(errno.EIO, "Input/output error")


@pytest.fixture(params=["memory", "sqlite"])
async def core(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Core, Fails]]:
    clock, fails = VirtualClock(), Fails()
    world: World
    if request.param == "memory":
        world = MemoryWorld(clock=clock.now, failpoint=fails)
    else:
        world = SqliteWorld(tmp_path, clock=clock.now, failpoint=fails)
    core = Core(Config(), catalog([bank], {}), world, clock)
    core.keep("main", [bank], schemas=(POST,))
    space = await core.space("main")

    def letter(actor: int, principal: str, key: str, body: Any) -> Row:
        assert isinstance(body, Transfer)
        return (space.mint(LETTERS), actor, key, body.amount)

    core.ports["transfer"] = Local("transfer", LETTERS, letter)
    yield core, fails
    await core.stop(0)


async def test_its_rows_are_there_when_the_fold_is_and_in_the_folds_order(core: tuple[Core, Fails]) -> None:
    opened, _ = core
    verbs, caller = Verbs(opened), inside(None)
    await verbs.deliver(bank, Deposit("d1", "a", 100), caller=caller)
    for n in range(5):
        await verbs.deliver(bank, PayOut(f"p{n}", "a", n), caller=caller)
    space = await opened.space("main")
    (rows,) = await space.look(Query(LETTERS, order=("n",)))

    assert [row[3] for row in rows] == [0, 1, 2, 3, 4]
    assert len({row[2] for row in rows}) == 5


async def test_a_fold_that_did_not_happen_left_no_row(core: tuple[Core, Fails]) -> None:
    opened, fails = core
    verbs, caller = Verbs(opened), inside(None)
    await verbs.deliver(bank, Deposit("d1", "a", 100), caller=caller)
    fails.now = True
    with pytest.raises(StoreUnavailable):
        await verbs.deliver(bank, PayOut("p1", "a", 1), caller=caller)
    fails.now = False
    space = await opened.space("main")
    assert await space.look(Query(LETTERS)) == ([],)


async def test_its_bytes_have_the_ceiling_of_what_is_owed(core: tuple[Core, Fails]) -> None:
    opened, _ = core
    opened.ports["transfer"] = Local("transfer", LETTERS, lambda *told: (1, 1, b"x" * (MAX_ROW_BYTES + 1), 1))
    verbs, caller = Verbs(opened), inside(None)
    await verbs.deliver(bank, Deposit("d1", "a", 100), caller=caller)
    with pytest.raises(TooLarge, match="what bank a owes transfer has 1048577 bytes"):
        await verbs.deliver(bank, PayOut("p1", "a", 1), caller=caller)
    assert (await verbs.read(bank, "a", caller=caller)).balance == 100
