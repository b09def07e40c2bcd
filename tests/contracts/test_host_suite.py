"""A host over every store keeps every promise, and the suite has teeth: what is to catch a twin does, by its fault alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from onefold.testing import HOST_SUITE
from onefold.testing.broken.hosts import BROKEN_HOSTS, BrokenHost
from onefold.testing.broken.kernels import BROKEN_KERNELS, broken_kernel
from onefold.testing.broken.stores import BROKEN_STORES
from onefold.testing.host_suite import (
    Check,
    Unfulfilled,
    folding,
    keeping,
    lapsing,
    outcomes,
    owing,
    rebuilding,
    waking,
    walls,
)
from onefold.testing.store_suite.ground import OpenWorld
from tests.contracts.backends import BACKENDS, Memory

CONCERNS = (folding, owing, waking, rebuilding, keeping, lapsing, outcomes, walls)
BY_NAME = {check.name: check for check in HOST_SUITE}

REPEATS = "a repeat gets the first reply and changes no row, also after later events, a crash and an eviction"
SEALED = "each retry sends the bytes that were sealed in the fold, under the same key, whatever changed since"
CONFIRMED = "a confirmation, its answer and the removal of its row are one commit, wherever the process ends"
ARMED = "the alarm is armed in the commit of the fold: a process that ends right after it loses no wake"
IDS_STAY = "a snapshot frees no id: what came before it is still known, with its reply"
IDS_STAY_PRUNED = "a prune frees no id, keeps each reply, and leaves state and numbers as they were"
ANY_FAILURE = "wherever the disk fails, a caller is told the truth, and the same again gives one fold and one reply"
LOST = "a commit whose answer was lost is looked up by its id: it counts once, and its caller gets its reply or is told"
DECLINES = "a decline is not told from a fold whose commit then failed"
REPEATS_WAIT = "a repeat is not answered from a fold whose commit then failed"
REFUSED = "a commit that was refused leaves every row and the view as they were, and the same again counts"
KILLED = "wherever the process ends, an event is wholly there or wholly absent, and sent again counts once and is acted on once"

KERNELS: Mapping[str, tuple[str, ...]] = {
    "id-apart": (ANY_FAILURE, KILLED),
    "alarm-apart": (ARMED, KILLED),
    "bytes-rebuilt": (SEALED,),
    "reply-early": (REFUSED, REPEATS_WAIT, KILLED),
    "decline-early": (DECLINES,),
    "ids-freed": (IDS_STAY,),
    "ids-pruned": (IDS_STAY_PRUNED,),
}
STORES: Mapping[str, tuple[str, ...]] = {
    "answers the wrong end of a list": ("a history longer than one look at the store is read whole",),
    "leaves half a transaction": (REFUSED, CONFIRMED),
    "calls an unknown commit refused": (LOST, ANY_FAILURE),
    "answers before it is durable": ("a decline counts: its id and its reply are stored, and no fact", KILLED),
    "mints twice": (KILLED,),
    "forgets a history's keys when it is opened again": (REPEATS, IDS_STAY),
}


@pytest.fixture(params=BACKENDS)
def open_world(request: pytest.FixtureRequest, tmp_path: Path) -> OpenWorld:
    world: OpenWorld = BACKENDS[request.param](tmp_path)
    return world


@pytest.mark.parametrize("check", HOST_SUITE, ids=lambda check: check.name)
async def test_a_host_over_the_store_keeps_its_promise(check: Check, open_world: OpenWorld) -> None:
    await check.run(open_world)


@pytest.mark.parametrize("twin", BROKEN_HOSTS, ids=lambda twin: twin.name)
async def test_a_broken_host_is_caught(twin: BrokenHost) -> None:
    assert twin.caught_by
    for name in twin.caught_by:
        with pytest.raises(Unfulfilled):
            await BY_NAME[name].run(Memory(), fit=twin.fit)


@pytest.mark.parametrize("twin", KERNELS)
async def test_a_broken_kernel_is_caught(twin: str) -> None:
    assert KERNELS[twin]
    for name in KERNELS[twin]:
        with pytest.raises(Unfulfilled):
            await BY_NAME[name].run(Memory(), fit=broken_kernel(twin).fit)


@pytest.mark.parametrize("twin", STORES)
async def test_a_host_over_a_broken_store_is_caught(twin: str) -> None:
    (store,) = [one for one in BROKEN_STORES if one.name == twin]
    assert STORES[twin]
    for name in STORES[twin]:
        with pytest.raises(Unfulfilled):
            await BY_NAME[name].run(Memory(store.world))


def test_every_twin_of_the_kernel_has_a_check() -> None:
    assert {twin.name for twin in BROKEN_KERNELS} == set(KERNELS)


@pytest.mark.parametrize("concern", CONCERNS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_concern_has_teeth(concern: object) -> None:
    """A file of checks that no twin falls over could as well hold nothing."""
    names = {check.name for check in vars(concern)["CHECKS"]}
    caught = [twin.caught_by for twin in BROKEN_HOSTS] + [*KERNELS.values(), *STORES.values()]
    assert [one for one in caught if names & set(one)]


def test_every_check_is_in_the_suite_once() -> None:
    made = [value for concern in CONCERNS for value in vars(concern).values() if isinstance(value, Check)]
    assert sorted(check.name for check in made) == sorted(check.name for check in HOST_SUITE)
    assert len(BY_NAME) == len(HOST_SUITE)
