"""Promise 8: no fact, run, key, reply or blob crosses a principal. None is one of them, and equals only itself."""

from __future__ import annotations

from typing import Any

import pytest

from onefold import Run, Step, actuator
from onefold.host.caller import Caller
from onefold.terms.errors import Forbidden, NotFound
from onefold.testing import Stage
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Accepted, Deposit, PayOut, Provider, bank

EVERYBODY = (None, "-", "=", "None", "anna", "Anna")
KEYS: list[tuple[str, str | None]] = []


@actuator
async def who(run: Run) -> str:
    """Say for whom it runs."""
    return await run.step(note)()


async def note(step: Step) -> str:
    KEYS.append((step.key, step.principal))
    return repr(step.principal)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    KEYS.clear()


def as_caller(stage: Stage, principal: str | None) -> Caller:
    return stage.caller(principal, rights=("call", "read"))


async def test_facts_replies_and_keys_of_one_are_no_others(stage: Stage, provider: Provider) -> None:
    for n, principal in enumerate(EVERYBODY, 1):
        caller = as_caller(stage, principal)
        assert await stage.host.deliver(bank, Deposit("d1", "a", n), caller=caller) == Accepted(n)
        assert await stage.host.deliver(bank, PayOut("p1", "a", n, key="k"), caller=caller) == Accepted(0)
    await stage.crash()
    await stage.settle()
    for n, principal in enumerate(EVERYBODY, 1):
        caller = as_caller(stage, principal)
        assert await stage.host.deliver(bank, Deposit("d1", "a", n), caller=caller) == Accepted(n)
        facts: list[Any] = [row.fact for row in await stage.host.history(bank, "a", caller=caller)]
        assert facts[0].amount == n
        assert [item["key"] for item in (await stage.host.actors("bank", caller=caller)).items] == ["a"]
    assert sorted(provider.paid.values()) == list(range(1, len(EVERYBODY) + 1))
    with pytest.raises(NotFound):
        await stage.host.facts("bank", "a", caller=as_caller(stage, "bert"))


async def test_a_run_its_key_and_its_journal_are_one_principals(stages: Stages) -> None:
    stage = await stages(who)
    runs: dict[str | None, str] = {}
    for principal in EVERYBODY:
        caller = as_caller(stage, principal)
        runs[principal] = (await stage.host.start("who", {}, key="k", caller=caller)).receipt.run_id
    await stage.advance("1s")

    assert len(set(runs.values())) == len(EVERYBODY)
    assert len({key for key, _ in KEYS}) == len(EVERYBODY)
    assert {principal for _, principal in KEYS} == set(EVERYBODY)
    for principal, run in runs.items():
        caller = as_caller(stage, principal)
        again = await stage.host.start("who", {}, key="k", caller=caller)
        assert (again.replayed, again.receipt.run_id) == (True, run)
        assert (await stage.host.receipt(run, caller=caller)).to_json()["result"] == repr(principal)
        assert [receipt.run_id for receipt in (await stage.host.runs_list(caller=caller)).items] == [run]
        for other in EVERYBODY:
            if other != principal:
                with pytest.raises(NotFound):
                    await stage.host.receipt(run, caller=as_caller(stage, other))
                with pytest.raises(NotFound):
                    await stage.host.run_journal(run, caller=as_caller(stage, other))


async def test_what_is_parked_is_shown_to_its_own_principal_and_to_who_operates(
    stages: Stages, provider: Provider
) -> None:
    stage = await stages(bank, provider.dedupes())
    provider.failing = [ConnectionError("down")] * 100
    for principal in ("anna", "bert"):
        caller = as_caller(stage, principal)
        await stage.host.deliver(bank, Deposit("d1", "a", 5), caller=caller)
        await stage.host.deliver(bank, PayOut("p1", "a", 5, minutes=100_000), caller=caller)
    await stage.advance("4h")
    mine = {who: await stage.host.parked_list(caller=as_caller(stage, who)) for who in ("anna", "bert", None)}
    assert [len(items) for items in mine.values()] == [1, 1, 0]
    assert mine["anna"] != mine["bert"]
    assert len(await stage.host.parked_list(caller=stage.caller(None))) == 2


async def test_only_who_operates_prunes_retries_and_drops(stages: Stages, provider: Provider) -> None:
    """Whoever owns an item is shown it, and that is all: what a person decides is an operator's."""
    stage = await stages(bank, provider.neither())
    provider.failing = [ConnectionError("down")]
    anna = as_caller(stage, "anna")
    await stage.host.deliver(bank, Deposit("d1", "a", 5), caller=anna)
    await stage.host.deliver(bank, PayOut("p1", "a", 5), caller=anna)
    await stage.settle()
    (item,) = await stage.host.parked_list(caller=anna)
    for verb in (
        stage.host.parked_retry(item.id, caller=anna),
        stage.host.parked_drop(item.id, reason="no", caller=anna),
        stage.host.prune(bank, "a", caller=anna),
    ):
        with pytest.raises(Forbidden, match="operate"):
            await verb
    assert await stage.host.parked_list(caller=anna) == [item]
    assert len(provider.calls) == 1
