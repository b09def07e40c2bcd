"""Promise 3: an owed key leaves with the same bytes only, and its row goes only after the port confirmed."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from onefold import Decision, Owed, port
from onefold.kernel.port import Step
from onefold.terms.errors import KeyConflict
from onefold.testing import Stage
from onefold.testing.host_suite.vault import Act, Fact, Parcel, Reply, Slip, Total, Vault, make
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Accepted, Deposit, PaidOut, PayOut, Provider, Sent, Transfer, bank


async def facts(stage: Stage, key: str = "a") -> list[object]:
    return [row.fact for row in await stage.host.history(bank, key, caller=stage.caller())]


async def paid_in(stage: Stage, amount: int = 100) -> None:
    await stage.host.deliver(bank, Deposit("d1", "a", amount), caller=stage.caller())


async def test_what_is_owed_leaves_after_the_commit_and_its_answer_is_an_event(
    stage: Stage, provider: Provider
) -> None:
    await paid_in(stage)
    await stage.host.deliver(bank, PayOut("p1", "a", 40), caller=stage.caller())
    await stage.settle()

    assert list(provider.paid.values()) == [40]
    assert PaidOut("p1", "ref 1") in await facts(stage)


async def test_each_retry_sends_the_same_bytes_under_the_same_key(stage: Stage, provider: Provider) -> None:
    await paid_in(stage)
    provider.failing = [ConnectionError("down")] * 3
    await stage.host.deliver(bank, PayOut("p1", "a", 40), caller=stage.caller())
    await stage.advance("1m")

    assert len(provider.calls) == 4
    assert len({(key, body) for key, body, _ in provider.calls}) == 1
    assert [attempt for _, _, attempt in provider.calls] == [1, 2, 3, 4]
    assert PaidOut("p1", "ref 1") in await facts(stage)


async def test_a_lost_answer_is_asked_for_again_and_pays_once(stage: Stage, provider: Provider) -> None:
    await paid_in(stage)
    provider.lose_answers = 2
    await stage.host.deliver(bank, PayOut("p1", "a", 40), caller=stage.caller())
    await stage.advance("1m")

    assert len(provider.calls) == 3
    assert list(provider.paid.values()) == [40]


async def test_a_crash_before_the_answer_sends_again_and_folds_once(stage: Stage, provider: Provider) -> None:
    await paid_in(stage)
    provider.failing = [ConnectionError("down")]
    await stage.host.deliver(bank, PayOut("p1", "a", 40), caller=stage.caller())
    await stage.settle()
    await stage.crash()
    await stage.advance("1m")
    await stage.crash()
    await stage.advance("1m")

    assert list(provider.paid.values()) == [40]
    assert (await facts(stage)).count(PaidOut("p1", "ref 1")) == 1


async def test_a_repeat_of_the_event_owes_nothing_more(stage: Stage, provider: Provider) -> None:
    await paid_in(stage)
    for _ in range(3):
        assert await stage.host.deliver(bank, PayOut("p1", "a", 40), caller=stage.caller()) == Accepted(60)
        await stage.settle()

    assert len(provider.calls) == 1


async def test_a_named_key_is_never_used_for_other_bytes(stage: Stage, provider: Provider) -> None:
    await paid_in(stage)
    await stage.host.deliver(bank, PayOut("p1", "a", 40, key="rent"), caller=stage.caller())
    await stage.settle()
    await stage.crash()

    with pytest.raises(KeyConflict) as refused:
        await stage.host.deliver(bank, PayOut("p2", "a", 50, key="rent"), caller=stage.caller())

    assert refused.value.key == "rent"
    assert list(provider.paid.values()) == [40]
    assert (await stage.host.read(bank, "a", caller=stage.caller())).balance == 60


async def test_a_named_key_owed_again_with_the_same_bytes_is_sent_once(stage: Stage, provider: Provider) -> None:
    await paid_in(stage)
    for id in ("p1", "p2"):
        await stage.host.deliver(bank, PayOut(id, "a", 40, key="rent"), caller=stage.caller())
        await stage.settle()

    assert len(provider.calls) == 1


async def test_a_conflict_refuses_its_own_fold_and_no_other_of_the_batch(stage: Stage, provider: Provider) -> None:
    import asyncio

    await paid_in(stage)
    caller = stage.caller()
    answers = await asyncio.gather(
        stage.host.deliver(bank, PayOut("p1", "a", 10, key="rent"), caller=caller),
        stage.host.deliver(bank, PayOut("p2", "a", 20, key="rent"), caller=caller),
        stage.host.deliver(bank, PayOut("p3", "a", 30), caller=caller),
        stage.host.deliver(bank, Deposit("d2", "b", 5), caller=caller),
        return_exceptions=True,
    )
    await stage.settle()

    assert answers[0] == Accepted(90)
    assert isinstance(answers[1], KeyConflict)
    assert list(answers[2:]) == [Accepted(60), Accepted(5)]
    assert sorted(provider.paid.values()) == [10, 30]


async def test_keys_that_leave_are_no_other_actors(stage: Stage, provider: Provider) -> None:
    for principal in ("anna", "bert", None):
        for key in ("a", "b"):
            caller = stage.caller(principal)
            await stage.host.deliver(bank, Deposit("d1", key, 10), caller=caller)
            await stage.host.deliver(bank, PayOut("p1", key, 10), caller=caller)
    await stage.settle()

    assert len(provider.paid) == 6


async def test_a_row_whose_port_nobody_provides_waits_and_leaves_once_somebody_does(
    stages: Stages, provider: Provider
) -> None:
    stage = await stages(bank)
    await paid_in(stage)
    await stage.host.deliver(bank, PayOut("p1", "a", 40), caller=stage.caller())
    await stage.advance("1m")
    assert PaidOut("p1", "ref 1") not in await facts(stage)

    stage.parts = (bank, provider.dedupes())
    await stage.restart()
    await stage.advance("20m")

    assert PaidOut("p1", "ref 1") in await facts(stage)


async def test_what_the_port_gave_back_but_the_module_cannot_fold_is_not_lost(stages: Stages) -> None:
    @port.dedupes("transfer")
    async def transfer(step: Step, body: Transfer) -> Sent | str:
        return "no Sent at all"

    stage = await stages(bank, transfer)
    await paid_in(stage)
    await stage.host.deliver(bank, PayOut("p1", "a", 40, minutes=100_000), caller=stage.caller())
    await stage.advance("12h")

    parked = await stage.host.parked_list(caller=stage.caller())
    assert [item.kind for item in parked] == ["owed"]
    assert "answer could not be folded" in parked[0].cause


@pytest.mark.parametrize("crash", [False, True])
async def test_what_is_owed_for_later_leaves_at_its_instant_and_not_before(stages: Stages, crash: bool) -> None:
    left: list[datetime] = []

    @port.dedupes("courier")
    async def courier(step: Step, body: Parcel) -> Slip:
        left.append(stage.clock.moment)
        return Slip("ok")

    def later(vault: Vault, event: Act, now: datetime) -> Decision[Fact, Reply]:
        at = now + timedelta(minutes=5)
        return Decision(owed=[Owed("courier", event.id, Parcel(1), at=at)], reply=Total(0))

    vault = make(decide=later)
    stage = await stages(vault, courier)
    await stage.host.deliver(vault, Act("1"), caller=stage.caller())
    due = stage.clock.moment + timedelta(minutes=5)
    await stage.advance("4m")
    if crash:
        await stage.crash()
    await stage.advance("59s")
    assert left == []
    await stage.advance("1m")
    assert left == [due]
