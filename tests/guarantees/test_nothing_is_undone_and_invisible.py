"""Promise 6: an item is done, pending with a due time, or parked with cause and a way out."""

from __future__ import annotations

import pytest

from onefold import Step, port
from onefold.terms.errors import NotFound
from onefold.testing import Stage
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Deposit, PaidOut, PayOut, Provider, Released, Sent, Transfer, bank


async def facts(stage: Stage) -> list[object]:
    return [row.fact for row in await stage.host.history(bank, "a", caller=stage.caller())]


async def pay(stage: Stage) -> None:
    await stage.host.deliver(bank, Deposit("d1", "a", 100), caller=stage.caller())
    await stage.host.deliver(bank, PayOut("p1", "a", 40, minutes=100_000), caller=stage.caller())


async def test_a_send_that_never_works_is_parked_with_its_last_words(stage: Stage, provider: Provider) -> None:
    provider.failing = [ConnectionError(f"down {n}") for n in range(100)]
    await pay(stage)
    await stage.advance("12h")

    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert (item.kind, item.program) == ("owed", "bank")
    assert item.cause == "transfer: ConnectionError: down 19"
    calls = len(provider.calls)
    await stage.advance("3 days")
    assert len(provider.calls) == calls == 20


async def test_what_is_parked_stays_parked_over_a_crash_and_is_retried_on_request(
    stage: Stage, provider: Provider
) -> None:
    provider.failing = [ConnectionError("down")] * 20
    await pay(stage)
    await stage.advance("12h")
    await stage.crash()
    await stage.advance("1d")
    (item,) = await stage.host.parked_list(caller=stage.caller())

    await stage.host.parked_retry(item.id, caller=stage.caller())
    await stage.settle()

    assert list(provider.paid.values()) == [40]
    assert PaidOut("p1", "ref 1") in await facts(stage)
    assert await stage.host.parked_list(caller=stage.caller()) == []


async def test_a_drop_comes_back_to_the_actor_as_an_answer(stage: Stage, provider: Provider) -> None:
    provider.failing = [ConnectionError("down")] * 20
    await pay(stage)
    await stage.advance("12h")
    (item,) = await stage.host.parked_list(caller=stage.caller())

    await stage.host.parked_drop(item.id, reason="the bank is gone", caller=stage.caller())

    assert Released("p1", "the bank is gone") in await facts(stage)
    assert (await stage.host.read(bank, "a", caller=stage.caller())).balance == 100
    assert await stage.host.parked_list(caller=stage.caller()) == []
    with pytest.raises(NotFound):
        await stage.host.parked_retry(item.id, caller=stage.caller())


async def test_a_port_that_can_do_neither_parks_a_doubtful_send_for_a_person(
    stages: Stages, provider: Provider
) -> None:
    stage = await stages(bank, provider.neither())

    stage.kill_at("after-send")
    await pay(stage)
    await stage.let_die()
    stage.live_on()
    await stage.open()
    await stage.advance("1h")

    assert len(provider.calls) == 1
    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert item.kind == "uncertain"
    await stage.host.parked_drop(item.id, reason="it was paid by hand", caller=stage.caller())
    assert Released("p1", "it was paid by hand") in await facts(stage)


async def test_a_port_that_can_be_asked_is_asked_after_a_doubtful_send(stages: Stages, provider: Provider) -> None:
    stage = await stages(bank, provider.lookup())

    stage.kill_at("after-send")
    await pay(stage)
    await stage.let_die()
    stage.live_on()
    await stage.open()
    await stage.advance("1h")

    assert len(provider.calls) == 1
    assert PaidOut("p1", "found") in await facts(stage)


async def test_a_send_that_raised_after_it_acted_is_not_repeated_blindly(stages: Stages, provider: Provider) -> None:
    """The provider paid, and its answer was lost: who cannot dedupe is asked, or a person is."""
    provider.lose_answers = 1
    stage = await stages(bank, provider.lookup())
    await pay(stage)
    await stage.advance("1h")
    assert len(provider.calls) == 1
    assert PaidOut("p1", "found") in await facts(stage)


async def test_a_send_that_raised_through_a_port_that_can_do_neither_waits_for_a_person(
    stages: Stages, provider: Provider
) -> None:
    provider.lose_answers = 1
    stage = await stages(bank, provider.neither())
    await pay(stage)
    await stage.advance("1 day")
    await stage.crash()
    await stage.advance("1 day")

    assert len(provider.calls) == 1
    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert item.kind == "uncertain"
    assert "TimeoutError: the answer was lost" in item.cause
    await stage.host.parked_retry(item.id, caller=stage.caller())
    await stage.settle()
    assert len(provider.calls) == 2
    assert PaidOut("p1", "ref 1") in await facts(stage)


async def test_a_port_that_can_be_asked_and_never_heard_of_it_is_sent_to(stages: Stages, provider: Provider) -> None:
    stage = await stages(bank, provider.lookup())

    stage.kill_at("before-send")
    await pay(stage)
    await stage.let_die()
    stage.live_on()
    await stage.open()
    await stage.advance("1h")

    assert len(provider.calls) == 1
    assert PaidOut("p1", "ref 1") in await facts(stage)


async def test_an_attempt_of_a_port_that_cannot_dedupe_is_committed_before_its_first_byte(
    stages: Stages, provider: Provider
) -> None:
    stage = await stages(bank, provider.neither())
    commits: list[str] = []
    stage.failpoint = commits.append
    await pay(stage)
    await stage.settle()

    order = [name for name in commits if name in ("after-commit", "before-send", "after-send")]
    assert order == ["after-commit"] * 3 + ["before-send", "after-send", "after-commit"]


async def test_a_send_that_kills_the_process_each_time_is_counted_and_parked(
    stages: Stages, provider: Provider
) -> None:
    stage = await stages(bank, provider.dedupes())
    stage.kill_at("before-send")
    await pay(stage)
    await stage.let_die()
    for _ in range(40):
        stage.live_on()
        await stage.open()
        stage.kill_at("before-send")
        stage.clock.step_to(stage.clock.now() + 20 * 60_000)
        await stage.let_die()
    stage.live_on()
    await stage.open()
    await stage.settle()

    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert item.kind == "owed"
    assert provider.calls == []


async def test_a_look_up_that_kills_the_process_each_time_is_counted_and_parked(
    stages: Stages, provider: Provider
) -> None:
    asked: list[str] = []

    async def find(step: Step, body: Transfer) -> Sent | None:
        asked.append(step.key)
        stage.failpoint("before-send")  # dead here, whatever else is met
        return None

    @port.lookup("transfer", find=find)
    async def transfer(step: Step, body: Transfer) -> Sent:
        return provider.take(step, body)

    stage = await stages(bank, transfer)
    stage.kill_at("after-send")
    await pay(stage)
    await stage.let_die()
    for _ in range(40):
        stage.live_on()
        await stage.open()
        stage.kill_at("before-send")
        stage.clock.step_to(stage.clock.now() + 20 * 60_000)
        await stage.let_die()
    stage.live_on()
    await stage.open()
    await stage.settle()

    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert item.kind == "owed"
    assert len(provider.calls) == 1
    assert 10 < len(asked) < 25


@pytest.mark.parametrize("retried", [False, True])
async def test_a_doubt_outlives_a_version_without_the_port(stages: Stages, provider: Provider, retried: bool) -> None:
    stage = await stages(bank, provider.neither())
    stage.kill_at("after-send")
    await pay(stage)
    await stage.let_die()
    stage.live_on()
    stage.parts = (bank,)
    await stage.open()
    await stage.advance("1h")
    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert item.kind == "port"
    if retried:
        await stage.host.parked_retry(item.id, caller=stage.caller())
        await stage.settle()

    stage.parts = (bank, provider.neither())
    await stage.restart()
    await stage.advance("1h")
    assert len(provider.calls) == 1
    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert item.kind == "uncertain"
