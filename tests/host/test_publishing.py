"""What a module publishes reaches the intake in the fold's own commit, in fold order, whole or not at all."""

from __future__ import annotations

import errno
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from onefold.host.caller import inside
from onefold.kernel.module import Module
from onefold.kernel.words import Decision
from onefold.reflex.tables import INTAKE
from onefold.store.contract import Query
from onefold.terms.errors import LoadRefused, OnefoldError
from onefold.testing.stage import Stage, staged
from tests.contracts.backends import store_of


@dataclass(frozen=True)
class Sell:
    id: str
    shop: str
    cents: int


@dataclass(frozen=True)
class Sold:
    cents: int


@dataclass(frozen=True)
class Counted:
    total: int


@dataclass(frozen=True)
class Kept:
    total: int


Fact = Sold | Counted | Kept


def decide(total: int, event: Sell, now: datetime) -> Decision[Fact, int]:
    if event.cents < 0:
        return Decision(reply=total)
    return Decision(facts=[Sold(event.cents), Counted(total + event.cents), Sold(0)], reply=total + event.cents)


def evolve(total: int, fact: Fact) -> int:
    match fact:
        case Sold(cents=cents):
            return total + cents
        case Counted():
            return total
        case Kept(total=kept):
            return kept


def view(total: int) -> int:
    return total


def snapshot(total: int) -> Kept:
    return Kept(total)


def till(publishes: Sequence[type] = (Sold, Kept), every: int = 500) -> Module[int, Sell, Fact, int, int]:
    return Module(
        "till",
        initial=0,
        key=lambda event: event.shop,
        decide=decide,
        evolve=evolve,
        view=view,
        snapshot=snapshot,
        snapshot_every=every,
        publishes=publishes,
    )


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(till(), store=store_of(request.param, tmp_path)) as one:
        yield one


async def heard(stage: Stage) -> list[tuple[Any, ...]]:
    (rows,) = await (await stage.host.space("main")).look(Query(INTAKE, order=("n",)))
    at = INTAKE.at
    return [
        (row[at["principal"]], row[at["subject"]], row[at["op"]], json.loads(row[at["body"]])["row"]) for row in rows
    ]


async def test_published_facts_arrive_in_fold_order_under_the_actors_principal(stage: Stage) -> None:
    app = stage.host
    await app.deliver(app.catalog.module("till"), Sell("a", "north", 5), caller=inside("studio"))
    await app.deliver(app.catalog.module("till"), Sell("b", "north", 7), caller=inside("studio"))
    await app.deliver(app.catalog.module("till"), Sell("c", "south", 9), caller=inside(None))
    told = [
        ("=studio", "till.Sold", "insert", {"key": "north", "seq": 1, "type": "Sold", "cents": 5}),
        ("=studio", "till.Sold", "insert", {"key": "north", "seq": 3, "type": "Sold", "cents": 0}),
        ("=studio", "till.Sold", "insert", {"key": "north", "seq": 4, "type": "Sold", "cents": 7}),
        ("=studio", "till.Sold", "insert", {"key": "north", "seq": 6, "type": "Sold", "cents": 0}),
        ("-", "till.Sold", "insert", {"key": "south", "seq": 1, "type": "Sold", "cents": 9}),
        ("-", "till.Sold", "insert", {"key": "south", "seq": 3, "type": "Sold", "cents": 0}),
    ]
    assert await heard(stage) == told


async def test_a_repeat_and_a_decline_publish_nothing(stage: Stage) -> None:
    app = stage.host
    for event in (Sell("a", "north", 5), Sell("a", "north", 5), Sell("b", "north", -1)):
        await app.deliver(app.catalog.module("till"), event, caller=inside(None))
    assert len(await heard(stage)) == 2


@pytest.mark.parametrize("store", ["memory:", "sqlite"])
async def test_a_commit_that_fails_publishes_nothing(tmp_path: Path, store: str) -> None:
    async with staged(till(), store=tmp_path if store == "sqlite" else "memory:") as stage:
        app = stage.host
        await app.deliver(app.catalog.module("till"), Sell("a", "north", 5), caller=inside(None))

        def fail(point: str) -> None:
            if point == "before-commit":
                raise OSError(errno.EIO, "Input/output error")

        stage.failpoint = fail
        with pytest.raises(OnefoldError):
            await app.deliver(app.catalog.module("till"), Sell("b", "north", 7), caller=inside(None))
        stage.failpoint = lambda point: None
        await app.deliver(app.catalog.module("till"), Sell("c", "north", 8), caller=inside(None))
        assert [row["cents"] for *_, row in await heard(stage)] == [5, 0, 8, 0]


async def test_a_snapshot_of_the_kernel_is_no_news() -> None:
    async with staged(till(every=2)) as stage:
        app = stage.host
        await app.deliver(app.catalog.module("till"), Sell("a", "north", 5), caller=inside(None))
        assert {subject for _, subject, *_ in await heard(stage)} == {"till.Sold"}


async def test_a_fork_publishes_nothing_again() -> None:
    async with staged(till()) as stage:
        app = stage.host
        await app.deliver(app.catalog.module("till"), Sell("a", "north", 5), caller=inside(None))
        await app.fork(app.catalog.module("till"), "north", "west", id="f", caller=inside(None))
        assert len(await heard(stage)) == 2


@dataclass(frozen=True)
class Bad:
    key: str


@dataclass(frozen=True)
class Solt:
    cents: int


def evolve_bad(total: int, fact: Bad | Sold) -> int:
    return total


def decide_bad(total: int, event: Sell, now: datetime) -> Decision[Bad | Sold, int]:
    return Decision(reply=0)


@pytest.mark.parametrize(
    "kind, told",
    [
        (Bad, "has a field 'key'"),
        (Solt, "none of the facts that evolve takes; did you mean Sold?"),
    ],
)
async def test_what_cannot_be_published_is_refused_at_load(kind: type, told: str) -> None:
    wrong = Module(
        "till",
        initial=0,
        key=lambda event: event.shop,
        decide=decide_bad,
        evolve=evolve_bad,
        view=view,
        publishes=[kind],
    )
    with pytest.raises(LoadRefused, match=told.replace("?", r"\?")):
        async with staged(wrong):
            pass
