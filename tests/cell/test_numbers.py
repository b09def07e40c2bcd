"""Each change of a field's type is a number in the store; a value is read by the type it was written under."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import onefold
from onefold import Cell
from onefold.terms.errors import LoadRefused


def cents() -> type[Cell]:
    class Account(Cell):
        balance: int = 0
        note: str = ""

        def pay_in(self, amount: int) -> int:
            self.balance += amount
            return self.balance

    return Account


def euros() -> type[Cell]:
    class Account(Cell, upgrades={"balance": lambda cents: Decimal(cents) / 100}):
        balance: Decimal = Decimal(0)
        owner: str = "nobody"

        def pay_in(self, amount: Decimal) -> Decimal:
            self.balance += amount
            return self.balance

    return Account


def careless() -> type[Cell]:
    class Account(Cell):
        balance: Decimal = Decimal(0)

    return Account


async def left(store: Path) -> None:
    """A store with an account of 250 cents."""
    shape = cents()
    async with onefold.App(shape, store=store) as app:
        account = app.cell(shape, "a")
        await account.spawn()
        async with account.capture() as draft:
            draft.balance = 250
            draft.note = "kept"


async def test_a_changed_type_goes_through_its_upgrade_once(tmp_path: Path) -> None:
    await left(tmp_path)
    shape = euros()
    for _ in range(2):
        async with onefold.App(shape, store=tmp_path) as app:
            read = await app.cell(shape, "a").read()
            assert (read.balance, read.owner) == (Decimal("2.50"), "nobody")  # type: ignore[attr-defined]
    async with onefold.App(shape, store=tmp_path) as app:
        assert (await app.cell(shape, "a").run("pay_in('1.25')")).value == "3.75"
    async with onefold.App(shape, store=tmp_path) as app:
        assert (await app.cell(shape, "a").read()).balance == Decimal("3.75")  # type: ignore[attr-defined]


async def test_a_changed_type_without_an_upgrade_is_refused_at_load(tmp_path: Path) -> None:
    await left(tmp_path)
    with pytest.raises(LoadRefused, match="Account, balance: changed its type"):
        async with onefold.App(careless(), store=tmp_path):
            pass


async def test_an_added_field_takes_its_default_and_a_removed_one_is_kept(tmp_path: Path) -> None:
    await left(tmp_path)
    shape = euros()
    async with onefold.App(shape, store=tmp_path) as app:
        await app.cell(shape, "a").run("pay_in('1')")
    older = cents()
    with pytest.raises(LoadRefused, match="balance"):
        async with onefold.App(older, store=tmp_path):
            pass

    class Account(Cell, upgrades={"balance": lambda cents: Decimal(cents) / 100}):
        balance: Decimal = Decimal(0)
        note: str = ""

    async with onefold.App(Account, store=tmp_path) as app:
        read = await app.cell(Account, "a").read()
        assert (read.balance, read.note) == (Decimal("3.50"), "kept")
