"""Promise 10 and the first invariant: what is refused leaves the store byte-identical, and says what, where, what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from onefold.kernel.tables import KERNEL
from onefold.store.contract import Query
from onefold.terms.errors import (
    BadArguments,
    Busy,
    DecideFailed,
    KeyConflict,
    NotFound,
    OnefoldError,
    StoreUnavailable,
    TooLarge,
    UnknownName,
    WaitsForCode,
)
from onefold.terms.limits import QUEUE_PER_ACTOR
from onefold.testing import Stage
from onefold.testing.host_suite.vault import VAULT, Act, Added, Courier, Fault, make
from tests.guarantees.conftest import Stages

Verb = Callable[[Stage], Awaitable[Any]]


async def rows(stage: Stage) -> list[Any]:
    space = await stage.host.space("main")
    return [await space.look(Query(table, order=table.key)) for table in KERNEL.tables]


async def before(stages: Stages) -> Stage:
    """An actor with facts, something owed that waits for its retry, and an alarm."""
    courier = Courier()
    courier.down(100)
    stage = await stages(VAULT, courier.dedupes())
    await stage.host.deliver(VAULT, Act("0", add=5, owe=("=", "k"), wake=60_000), caller=stage.caller())
    await stage.settle()
    return stage


def act(event: Act) -> Verb:
    return lambda stage: stage.host.deliver(VAULT, event, caller=stage.caller())


def raw(told: bytes, module: str = "vault") -> Verb:
    return lambda stage: stage.host.deliver_raw(module, told, caller=stage.caller())


REFUSALS: dict[str, tuple[Verb, type[OnefoldError], str]] = {
    "an id without text": (act(Act("")), BadArguments, "id"),
    "a key without text": (act(Act("1", "")), BadArguments, "key"),
    "an event that is no JSON": (raw(b"{"), BadArguments, "event"),
    "a field that does not fit": (raw(b'{"type":"Act","id":"1","add":"x"}'), BadArguments, "add"),
    "a field nobody knows": (raw(b'{"type":"Act","id":"1","ad":1}'), BadArguments, "ad"),
    "another event under its id": (act(Act("0", add=6)), KeyConflict, "'0'"),
    "other bytes under a key that was owed": (act(Act("1", add=1, owe=("k",))), KeyConflict, "'k'"),
    "a module nobody serves": (raw(b"{}", "vaults"), UnknownName, "vault"),
    "somebody who is not there": (
        lambda stage: stage.host.facts("vault", "nobody", caller=stage.caller()),
        NotFound,
        "nobody",
    ),
    "a parked item that is none": (
        lambda stage: stage.host.parked_retry("owed.main.77", caller=stage.caller()),
        NotFound,
        "owed.main.77",
    ),
}
FAILURES: dict[Fault, tuple[type[OnefoldError], str]] = {
    "decide": (DecideFailed, "vault"),
    "evolve": (DecideFailed, "vault"),
    "wake": (DecideFailed, "vault"),
    "facts": (TooLarge, "the facts of vault a"),
    "reply": (TooLarge, "the reply of vault a"),
    "owed": (TooLarge, "vault a owes courier"),
    "key": (KeyConflict, "'1'"),
}


@pytest.mark.parametrize("what", REFUSALS)
async def test_what_is_refused_changes_no_row_and_names_what_it_is_about(stages: Stages, what: str) -> None:
    verb, kind, names = REFUSALS[what]
    stage = await before(stages)
    kept = await rows(stage)
    with pytest.raises(kind) as refused:
        await verb(stage)
    assert names in str(refused.value)
    assert str(refused.value)[-1] in ".?"
    assert refused.value.retry in ("never", "same")
    assert await rows(stage) == kept
    await stage.crash()
    assert await rows(stage) == kept


@pytest.mark.parametrize("fault", FAILURES)
async def test_a_fold_that_fails_changes_no_row_and_no_alarm_and_leaves_its_id_free(
    stages: Stages, fault: Fault
) -> None:
    kind, names = FAILURES[fault]
    stage = await before(stages)
    kept = await rows(stage)
    with pytest.raises(kind) as failed:
        await act(Act("1", add=7, owe=("more",), wake=1_000, fault=fault))(stage)
    assert names in str(failed.value)
    assert await rows(stage) == kept
    assert (await stage.host.read(VAULT, "a", caller=stage.caller())).total == 5
    assert (await act(Act("1", add=7))(stage)).total == 12


async def test_a_full_queue_refuses_before_a_row_exists(stages: Stages) -> None:
    stage = await before(stages)
    told = await asyncio.gather(
        *(act(Act(f"n{n}", add=1))(stage) for n in range(QUEUE_PER_ACTOR + 5)), return_exceptions=True
    )
    busy = [one for one in told if isinstance(one, Busy)]
    assert len(busy) == 5
    assert "1000" in str(busy[0])
    assert busy[0].retry == "same"
    assert (await stage.host.read(VAULT, "a", caller=stage.caller())).total == 5 + QUEUE_PER_ACTOR


async def test_a_store_that_fails_and_code_that_is_missing_refuse_and_change_nothing(stages: Stages) -> None:
    stage = await before(stages)
    kept = await rows(stage)

    def fail(point: str) -> None:
        if point == "before-commit":
            raise OSError(5, "Input/output error")

    stage.failpoint = fail
    with pytest.raises(StoreUnavailable, match="Send the same again"):
        await act(Act("1", add=1))(stage)
    stage.live_on()
    assert await rows(stage) == kept

    older = make(evolve=_knows_less, wake=None, on_alarm=None, on_answer=None)
    stage.parts = (older,)
    await stage.crash()
    with pytest.raises(WaitsForCode, match="start the version that wrote it"):
        await stage.host.deliver(older, Act("1", add=1), caller=stage.caller())
    assert await rows(stage) == kept


def _knows_less(vault: Any, fact: Added) -> Any:
    return vault
