"""Promise 2: sent again, an event gives the first reply; never a second fact, owed row or alarm."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

import pytest

from onefold import Decision, Module, Owed
from onefold.terms.errors import BadArguments, DecideFailed, KeyConflict
from onefold.testing import Stage
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Accepted, Account, Break, Declined, Deposit, PayOut, Provider, Transfer, bank


@dataclass(frozen=True)
class Knock:
    id: str
    at: str


@dataclass(frozen=True)
class Opened:
    by: str


def open_once(opened: int, event: Knock, now: datetime) -> Decision[Opened, int]:
    if opened:
        raise RuntimeError("it is open")
    return Decision(facts=[Opened(event.id)], reply=1)


def owe_under_one_key(opened: int, event: Knock, now: datetime) -> Decision[Opened, int]:
    return Decision(facts=[Opened(event.id)], owed=[Owed("transfer", key="toll", body=Transfer(opened))], reply=opened)


def evolve(opened: int, fact: Opened) -> int:
    return opened + 1


def view(opened: int) -> int:
    return opened


once = Module("once", initial=0, key=lambda knock: knock.at, decide=open_once, evolve=evolve, view=view)
toll = Module("toll", initial=0, key=lambda knock: knock.at, decide=owe_under_one_key, evolve=evolve, view=view)


async def balance(stage: Stage, key: str = "a", principal: str | None = None) -> Account:
    account: Account = await stage.host.read(bank, key, caller=stage.caller(principal))
    return account


async def test_a_repeat_gives_the_first_reply_and_changes_nothing(stage: Stage) -> None:
    caller = stage.caller()
    assert await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller) == Accepted(10)
    await stage.host.deliver(bank, Deposit("d2", "a", 5), caller=caller)
    before = await stage.host.history(bank, "a", caller=caller)

    assert await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller) == Accepted(10)

    assert await stage.host.history(bank, "a", caller=caller) == before
    assert (await balance(stage)).balance == 15


async def test_a_repeat_counts_once_after_a_crash(stage: Stage) -> None:
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller)
    await stage.crash()

    assert await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller) == Accepted(10)
    assert (await balance(stage)).balance == 10


async def test_repeats_at_the_same_moment_wait_for_the_first(stage: Stage) -> None:
    caller = stage.caller()
    deliveries = [stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller) for _ in range(20)]

    assert await asyncio.gather(*deliveries) == [Accepted(10)] * 20
    assert (await balance(stage)).balance == 10


async def test_the_same_id_with_other_content_is_a_conflict(stage: Stage) -> None:
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller)

    with pytest.raises(KeyConflict) as refused:
        await stage.host.deliver(bank, Deposit("d1", "a", 11), caller=caller)

    assert refused.value.key == "d1"
    assert (await balance(stage)).balance == 10


async def test_two_contents_under_one_id_at_the_same_moment_count_one(stage: Stage) -> None:
    caller = stage.caller()
    answers = await asyncio.gather(
        stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller),
        stage.host.deliver(bank, Deposit("d1", "a", 99), caller=caller),
        return_exceptions=True,
    )

    assert answers[0] == Accepted(10)
    assert isinstance(answers[1], KeyConflict)


async def test_a_decline_counts_and_is_answered_the_same_for_ever(stage: Stage) -> None:
    caller = stage.caller()
    assert await stage.host.deliver(bank, PayOut("p1", "a", 50), caller=caller) == Declined(50)
    await stage.host.deliver(bank, Deposit("d1", "a", 100), caller=caller)
    await stage.crash()

    assert await stage.host.deliver(bank, PayOut("p1", "a", 50), caller=caller) == Declined(50)
    assert (await balance(stage)).balance == 100


async def test_what_is_refused_leaves_its_id_free(stage: Stage, provider: Provider) -> None:
    caller = stage.caller()
    with pytest.raises(DecideFailed) as failed:
        await stage.host.deliver(bank, Break("e1", "a"), caller=caller)
    assert failed.value.message == "the module is broken"
    assert await stage.host.history(bank, "a", caller=caller) == []

    assert await stage.host.deliver(bank, Deposit("e1", "a", 1), caller=caller) == Accepted(1)


async def test_one_broken_turn_takes_none_of_its_company_along(stage: Stage) -> None:
    caller = stage.caller()
    answers = await asyncio.gather(
        stage.host.deliver(bank, Deposit("d1", "a", 1), caller=caller),
        stage.host.deliver(bank, Break("e1", "a"), caller=caller),
        stage.host.deliver(bank, Deposit("d2", "a", 2), caller=caller),
        stage.host.deliver(bank, Deposit("d3", "b", 3), caller=caller),
        return_exceptions=True,
    )

    assert [answers[0], answers[2], answers[3]] == [Accepted(1), Accepted(3), Accepted(3)]
    assert isinstance(answers[1], DecideFailed)


async def test_an_empty_id_is_refused(stage: Stage) -> None:
    with pytest.raises(BadArguments):
        await stage.host.deliver(bank, Deposit("", "a", 1), caller=stage.caller())


async def test_the_same_id_of_two_principals_is_two_events(stage: Stage) -> None:
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=stage.caller("anna"))
    await stage.host.deliver(bank, Deposit("d1", "a", 20), caller=stage.caller("bert"))
    await stage.host.deliver(bank, Deposit("d1", "a", 30), caller=stage.caller(None))

    found = [(await balance(stage, "a", who)).balance for who in ("anna", "bert", None, "-")]
    assert found == [10, 20, 30, 0]


async def test_json_and_code_are_one_door(stage: Stage) -> None:
    caller = stage.caller()
    raw = b'{"type":"Deposit","id":"d1","account":"a","amount":10}'
    told = b'{"balance":10,"type":"Accepted"}'
    assert await stage.host.deliver_raw("bank", raw, caller=caller) == (told, False)
    assert await stage.host.deliver_raw("bank", raw, caller=caller) == (told, True)

    assert await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller) == Accepted(10)
    assert (await balance(stage)).balance == 10


async def test_repeats_and_conflicts_among_new_events_are_each_answered_as_alone(stage: Stage) -> None:
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller)
    await stage.host.deliver(bank, PayOut("p1", "a", 4, key="rent"), caller=caller)

    events: list[Deposit | PayOut] = [
        Deposit("d2", "a", 1),
        Deposit("d1", "a", 10),
        Deposit("d3", "b", 2),
        Deposit("d1", "a", 11),
    ]
    events += [PayOut("p1", "a", 4, key="rent"), Deposit("d2", "a", 1), Deposit("d4", "c", 3)]
    answers = await asyncio.gather(
        *(stage.host.deliver(bank, event, caller=caller) for event in events), return_exceptions=True
    )

    assert isinstance(answers[3], KeyConflict)
    assert [answers[place] for place in (1, 2, 6)] == [Accepted(10), Accepted(2), Accepted(3)]
    assert answers[0] == answers[5] == Accepted(7)
    assert answers[4] == Accepted(6)
    assert [(await balance(stage, key)).balance for key in "abc"] == [7, 2, 3]


async def test_a_repeat_that_could_not_be_decided_any_more_gives_the_first_reply(stages: Stages) -> None:
    stage = await stages(once)
    caller = stage.caller()
    assert await stage.host.deliver(once, Knock("k1", "door"), caller=caller) == 1

    assert await stage.host.deliver(once, Knock("k1", "door"), caller=caller) == 1
    with pytest.raises(DecideFailed):
        await stage.host.deliver(once, Knock("k2", "door"), caller=caller)
    assert await stage.host.deliver(once, Knock("k1", "door"), caller=caller) == 1


async def test_a_repeat_that_would_owe_other_bytes_now_gives_the_first_reply(
    stages: Stages, provider: Provider
) -> None:
    stage = await stages(toll, provider.dedupes())
    caller = stage.caller()
    assert await stage.host.deliver(toll, Knock("k1", "door"), caller=caller) == 0

    assert await stage.host.deliver(toll, Knock("k1", "door"), caller=caller) == 0
    with pytest.raises(KeyConflict):
        await stage.host.deliver(toll, Knock("k2", "door"), caller=caller)
    assert await stage.host.deliver(toll, Knock("k1", "door"), caller=caller) == 0


async def test_many_callers_of_one_actor_lose_nothing(stage: Stage) -> None:
    caller = stage.caller()
    replies = await asyncio.gather(
        *(stage.host.deliver(bank, Deposit(f"d{i}", "a", 1), caller=caller) for i in range(300))
    )

    assert sorted(reply.balance for reply in replies) == list(range(1, 301))
    await stage.crash()
    assert (await balance(stage)).balance == 300
