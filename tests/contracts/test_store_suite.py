"""Every store keeps every promise, and the suite has teeth: the checks that are to catch a twin do, by its fault alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest

from onefold.testing import STORE_SUITE
from onefold.testing.broken.stores import BROKEN_STORES, BrokenStore
from onefold.testing.store_suite import (
    Check,
    OpenWorld,
    Unfulfilled,
    author,
    author_tables,
    chain,
    commits,
    fence,
    keys,
    outcomes,
    queries,
    schema,
    verbs,
)
from tests.contracts.backends import BACKENDS, Memory, Sqlite

CONCERNS = (verbs, queries, keys, commits, outcomes, fence, schema, chain, author, author_tables)
BY_NAME = {check.name: check for check in STORE_SUITE}


STORES: Mapping[str, Callable[[Path], OpenWorld]] = {**BACKENDS, "sqlite shared": partial(Sqlite, shared=True)}


@pytest.fixture(params=STORES)
def open_world(request: pytest.FixtureRequest, tmp_path: Path) -> OpenWorld:
    world: OpenWorld = STORES[request.param](tmp_path)
    return world


@pytest.mark.parametrize("check", STORE_SUITE, ids=lambda check: check.name)
async def test_the_store_keeps_its_promise(check: Check, open_world: OpenWorld) -> None:
    await check.run(open_world)


@pytest.mark.parametrize("twin", BROKEN_STORES, ids=lambda twin: twin.name)
async def test_a_broken_twin_is_caught(twin: BrokenStore) -> None:
    assert twin.caught_by
    for name in twin.caught_by:
        with pytest.raises(Unfulfilled):
            await BY_NAME[name].run(Memory(twin.world))


@pytest.mark.parametrize("concern", CONCERNS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_concern_has_teeth(concern: object) -> None:
    """A file of checks that no twin falls over could as well hold nothing."""
    names = {check.name for check in vars(concern)["CHECKS"]}
    assert [twin.name for twin in BROKEN_STORES if names & set(twin.caught_by)]


def test_every_check_is_in_the_suite_once() -> None:
    made = [value for concern in CONCERNS for value in vars(concern).values() if isinstance(value, Check)]
    assert sorted(check.name for check in made) == sorted(check.name for check in STORE_SUITE)
    assert len(BY_NAME) == len(STORE_SUITE)
