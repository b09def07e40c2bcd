"""Facts of an older version are read through `upgrade`; what no code here knows waits, whole, for the one that does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from onefold import Decision, Module
from onefold.kernel.tables import ALARM, TURN
from onefold.store.contract import Query
from onefold.terms.errors import AlreadyDone, WaitsForCode
from onefold.testing import Stage
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Deposit, PayOut, Provider, bank
from tests.guarantees.test_memory_is_a_cache import append

AnyModule = Module[Any, Any, Any, Any, Any]


@dataclass(frozen=True)
class Add:
    id: str
    pot: str
    cents: int


@dataclass(frozen=True)
class Held:
    cents: int = 0


# --- as it was ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Put:
    euros: int


@dataclass(frozen=True)
class Seen:
    cents: int


@dataclass(frozen=True)
class Sum:
    euros: int


@dataclass(frozen=True)
class Told:
    euros: int


def first(every: int = 500) -> AnyModule:
    def decide(held: Held, event: Add, now: datetime) -> Decision[Put | Seen | Sum, Told]:
        facts: list[Put | Seen | Sum] = [Put(event.cents // 100), Seen(event.cents)]
        return Decision(facts=facts, reply=Told((held.cents + event.cents) // 100))

    def evolve(held: Held, fact: Put | Seen | Sum) -> Held:
        match fact:
            case Put(euros):
                return Held(held.cents + 100 * euros)
            case Sum(euros):
                return Held(100 * euros)
            case Seen():
                return held

    def view(held: Held) -> Held:
        return held

    def snapshot(held: Held) -> Sum:
        return Sum(held.cents // 100)

    return _module(decide, evolve, view, snapshot, every, None)


# --- as it is: Put renamed, Seen with another field, the snapshot in cents -------------------------------


@dataclass(frozen=True)
class Deposited:
    cents: int


@dataclass(frozen=True)
class Total:
    cents: int


@dataclass(frozen=True)
class Answered:
    cents: int


def second(upgrade: dict[str, Callable[[dict[str, Any]], Any]] | None, every: int = 500) -> AnyModule:
    @dataclass(frozen=True)
    class Seen:  # the name it had, and another field
        amount: int

    def decide(held: Held, event: Add, now: datetime) -> Decision[Deposited | Total, Answered]:
        return Decision(facts=[Deposited(event.cents)], reply=Answered(held.cents + event.cents))

    def evolve(held: Held, fact: Any) -> Held:
        match fact:
            case Deposited(cents):
                return Held(held.cents + cents)
            case Total(cents):
                return Held(cents)
            case _:
                return held

    evolve.__annotations__["fact"] = Deposited | Total | Seen

    def view(held: Held) -> Held:
        return held

    def snapshot(held: Held) -> Total:
        return Total(held.cents)

    if upgrade is not None:
        upgrade = {"Seen": lambda was: Seen(was["cents"]), **upgrade}
    return _module(decide, evolve, view, snapshot, every, upgrade)


def _module(decide: Any, evolve: Any, view: Any, snapshot: Any, every: int, upgrade: Any) -> AnyModule:
    return Module(
        "pot",
        initial=Held(),
        key=lambda event: event.pot,
        decide=decide,
        evolve=evolve,
        view=view,
        snapshot=snapshot,
        snapshot_every=every,
        upgrade=upgrade,
    )


UPGRADE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "Put": lambda was: Deposited(100 * was["euros"]),
    "Sum": lambda was: Total(100 * was["euros"]),
}


async def become(stage: Stage, module: AnyModule) -> None:
    """Deploy another version over the same rows."""
    await stage.close()
    stage.parts = (module,)
    await stage.open()


async def add(stage: Stage, module: AnyModule, id: str, cents: int = 100) -> Any:
    return await stage.host.deliver(module, Add(id, "a", cents), caller=stage.caller())


async def held(stage: Stage, module: AnyModule) -> int:
    state: Held = await stage.host.read(module, "a", caller=stage.caller())
    return state.cents


@pytest.mark.parametrize("every", [4, 500])
async def test_renamed_and_changed_facts_and_snapshots_are_upgraded(stages: Stages, every: int) -> None:
    old, new = first(every), second(UPGRADE, every)
    stage = await stages(old)
    for n in range(9):
        await add(stage, old, f"d{n}")
    (rows,) = await (await stage.host.space("main")).look(Query(TURN))
    await become(stage, new)
    assert await held(stage, new) == 900
    facts = await stage.host.history(new, "a", caller=stage.caller())
    assert {type(row.fact).__name__ for row in facts} == {"Deposited", "Seen", *(["Total"] if every == 4 else [])}
    assert await add(stage, new, "d9", 50) == Answered(950)
    (after,) = await (await stage.host.space("main")).look(Query(TURN))
    assert after[: len(rows)] == rows  # a row stays as it was written
    await stage.crash()
    assert await held(stage, new) == 950


async def test_an_upgraded_snapshot_is_where_a_wake_and_a_prune_begin(stages: Stages) -> None:
    old, new = first(10), second(UPGRADE, 10_000)
    stage = await stages(old)
    for n in range(12):
        await add(stage, old, f"d{n}")
    await become(stage, new)
    taken = await stage.host.prune(new, "a", caller=stage.caller())
    assert taken.facts > 0
    (kept, *_) = await stage.host.history(new, "a", caller=stage.caller())
    assert isinstance(kept.fact, Total)
    await stage.crash()
    assert await held(stage, new) == 1_200


async def test_a_repeat_from_before_counts_once_though_its_reply_reads_otherwise(stages: Stages) -> None:
    old, new = first(), second(UPGRADE)
    stage = await stages(old)
    await add(stage, old, "d1")
    await become(stage, new)
    with pytest.raises(AlreadyDone):
        await add(stage, new, "d1")
    assert await add(stage, new, "d2") == Answered(200)
    assert await held(stage, new) == 200


@pytest.mark.parametrize(
    "upgrade, fact, why",
    [
        (None, "Put", "does not know"),
        ({"Put": lambda was: Deposited(was["pounds"])}, "Put", "KeyError"),
        ({"Put": lambda was: Deposited("many")}, "Put", "no fact of today"),  # type: ignore[arg-type]
        ({"Put": lambda was: None}, "Put", "no fact of today"),
    ],
)
async def test_what_cannot_be_read_waits_whole_and_comes_back_with_its_code(
    stages: Stages, upgrade: Any, fact: str, why: str
) -> None:
    old, wrong = first(), second(upgrade)
    stage = await stages(old)
    await add(stage, old, "d1")
    (rows,) = await (await stage.host.space("main")).look(Query(TURN))
    await become(stage, wrong)
    for ask in (add(stage, wrong, "d2"), held(stage, wrong), stage.host.history(wrong, "a", caller=stage.caller())):
        with pytest.raises(WaitsForCode, match=why) as waits:
            await ask
        assert (waits.value.module, waits.value.key, waits.value.fact) == ("pot", "a", fact)
    assert await stage.host.deliver(wrong, Add("d1", "b", 100), caller=stage.caller()) == Answered(100)
    (after,) = await (await stage.host.space("main")).look(Query(TURN))
    assert after[:1] == rows
    await become(stage, old)
    assert await add(stage, old, "d1") == Told(1)
    await become(stage, second(UPGRADE))
    assert await add(stage, second(UPGRADE), "d2") == Answered(200)


async def test_a_changed_fact_without_an_upgrade_says_which_field(stages: Stages) -> None:
    old, new = first(), second(None)
    new.upgrade = {"Put": UPGRADE["Put"]}
    stage = await stages(old)
    await add(stage, old, "d1")
    await become(stage, new)
    with pytest.raises(WaitsForCode, match="cannot read") as waits:
        await held(stage, new)
    assert waits.value.fact == "Seen"


async def test_who_waits_for_code_is_shown_and_goes_from_the_list_when_it_is_there(stages: Stages) -> None:
    old, wrong, new = first(), second(None), second(UPGRADE)
    stage = await stages(old)
    caller = stage.caller()
    await add(stage, old, "d1")
    await become(stage, wrong)
    assert await stage.host.parked_list(caller=caller) == []
    with pytest.raises(WaitsForCode):
        await held(stage, wrong)
    (item,) = await stage.host.parked_list(caller=caller)
    assert (item.kind, item.program, item.since) == ("code", "pot", stage.clock.moment)
    assert "'Put'" in item.cause
    assert (await stage.host.ready())["parked"] == 1
    assert await stage.host.parked_list(caller=stage.caller("other", rights=["read"])) == []
    for act in (
        stage.host.parked_retry(item.id, caller=caller),
        stage.host.parked_drop(item.id, reason="x", caller=caller),
    ):
        with pytest.raises(WaitsForCode):
            await act
    await become(stage, new)
    assert await held(stage, new) == 100
    assert await stage.host.parked_list(caller=caller) == []


async def test_an_alarm_whose_module_is_not_here_is_shown_and_rings_when_it_is(
    stages: Stages, provider: Provider
) -> None:
    stage = await stages(bank, provider.dedupes())
    caller = stage.caller()
    provider.failing = [TimeoutError("down")] * 100
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller)
    await stage.host.deliver(bank, PayOut("p1", "a", 5), caller=caller)
    await stage.settle()
    await become(stage, first())
    await stage.advance("2 hours")
    (item,) = await stage.host.parked_list(caller=caller)
    assert (item.id, item.kind, item.program) == ("code.main.bank", "code", "bank")
    assert "'bank'" in item.cause
    await stage.close()
    stage.parts = (bank, provider.dedupes())
    await stage.open()
    await stage.settle()
    assert (await stage.host.read(bank, "a", caller=caller)).last == "too late"
    assert await stage.host.parked_list(caller=caller) == []


async def test_a_parked_alarm_of_an_actor_that_waits_does_not_hide_the_others(
    stages: Stages, provider: Provider
) -> None:
    stage = await stages(first())
    caller = stage.caller()
    old = first()
    await add(stage, old, "d1")
    space = await stage.host.space("main")
    await append(space, ALARM, [(1, "pot", 0, None, 12, "it raised")])
    await become(stage, second(None))
    (item,) = await stage.host.parked_list(caller=caller)
    assert (item.kind, item.program) == ("code", "pot")
