"""Promises 1, 2 and 10: whatever a commit comes to, nobody is told what is not so, and nothing is kept in part."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest

from onefold.kernel.tables import KERNEL
from onefold.store.contract import Query
from onefold.terms.errors import OutcomeUnknown, StoreUnavailable
from onefold.testing import Stage
from tests.guarantees.shop import Accepted, Declined, Deposit, PaidOut, PayOut, Provider, bank


def failing(point: str, *, times: int = 1) -> Callable[[str], None]:
    left = times

    def fail(name: str) -> None:
        nonlocal left
        if name == point and left > 0:
            left -= 1
            raise OSError(errno.EIO, "Input/output error")

    return fail


async def rows(stage: Stage) -> list[Any]:
    space = await stage.host.space("main")
    return [await space.look(Query(table)) for table in KERNEL.tables]


async def balance(stage: Stage, key: str = "a") -> int:
    found: int = (await stage.host.read(bank, key, caller=stage.caller())).balance
    return found


async def test_a_refused_commit_leaves_every_row_as_it_was(stage: Stage) -> None:
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller)
    before = await rows(stage)

    stage.failpoint = failing("before-commit")
    with pytest.raises(StoreUnavailable) as refused:
        await stage.host.deliver(bank, PayOut("p1", "a", 4), caller=caller)

    assert refused.value.retry == "same"
    assert await rows(stage) == before
    assert await balance(stage) == 10


async def test_the_same_again_counts_after_the_disk_recovered(stage: Stage, provider: Provider) -> None:
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller)
    stage.failpoint = failing("before-commit", times=3)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await stage.host.deliver(bank, PayOut("p1", "a", 4), caller=caller)

    assert await stage.host.deliver(bank, PayOut("p1", "a", 4), caller=caller) == Accepted(6)
    await stage.settle()
    assert list(provider.paid.values()) == [4]


async def test_a_decline_is_not_answered_from_a_head_that_was_taken_back(stage: Stage) -> None:
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller)
    stage.failpoint = failing("before-commit")

    answers = await asyncio.gather(
        stage.host.deliver(bank, PayOut("p1", "a", 10), caller=caller),
        stage.host.deliver(bank, PayOut("p2", "a", 10), caller=caller),
        return_exceptions=True,
    )

    assert [type(answer) for answer in answers] == [StoreUnavailable, StoreUnavailable]
    assert await stage.host.deliver(bank, PayOut("p2", "a", 10), caller=caller) == Accepted(0)
    assert await stage.host.deliver(bank, PayOut("p1", "a", 10), caller=caller) == Declined(10)


async def test_a_commit_whose_answer_was_lost_is_looked_up_and_counts_once(stage: Stage) -> None:
    caller = stage.caller()
    stage.failpoint = failing("after-commit")

    assert await stage.host.deliver(bank, Deposit("d1", "a", 10), caller=caller) == Accepted(10)

    assert await balance(stage) == 10
    assert len(await stage.host.history(bank, "a", caller=caller)) == 1


async def test_many_commits_whose_answers_were_lost_lose_and_double_nothing(stage: Stage) -> None:
    caller = stage.caller()
    hits = 0

    def sometimes(name: str) -> None:
        nonlocal hits
        if name in ("after-commit", "before-commit"):
            hits += 1
            if hits % 3 == 0:
                raise OSError(errno.EIO, "Input/output error")

    async def until_told(n: int) -> None:
        for _ in range(50):
            try:
                await stage.host.deliver(bank, Deposit(f"d{n}", f"a{n % 3}", 1), caller=caller)
                return
            except (OutcomeUnknown, StoreUnavailable):
                continue
        raise AssertionError("never told")

    stage.failpoint = sometimes
    for start in range(0, 60, 6):
        await asyncio.gather(*(until_told(n) for n in range(start, start + 6)))
    stage.live_on()
    await stage.crash()

    assert [await balance(stage, f"a{n}") for n in range(3)] == [20, 20, 20]


@pytest.mark.parametrize("point", ["statement", "before-commit", "after-commit", "before-reply"])
async def test_killed_at_any_point_an_event_is_whole_or_absent_and_counts_once(
    stage: Stage, provider: Provider, point: str
) -> None:
    caller = stage.caller()
    await stage.host.deliver(bank, Deposit("d1", "a", 100), caller=caller)
    await stage.settle()
    for hit in range(1, 60):
        id = f"p{hit}"
        met = [0]

        def counting(name: str, met: list[int] = met, hit: int = hit) -> None:
            met[0] += name == point
            if met[0] >= hit:
                raise Gone

        stage.failpoint = counting
        attempt = asyncio.ensure_future(stage.host.deliver(bank, PayOut(id, "a", 1), caller=caller))
        await stage.let_die()
        done = attempt.done() and not attempt.cancelled() and attempt.exception() is None
        attempt.cancel()
        stage.live_on()
        await stage.open()
        paid = [row.fact.key for row in await stage.host.history(bank, "a", caller=caller) if hasattr(row.fact, "key")]
        assert not done or id in paid
        await stage.host.deliver(bank, PayOut(id, "a", 1), caller=caller)
        await stage.advance("1m")
        facts = [row.fact for row in await stage.host.history(bank, "a", caller=caller)]
        assert sum(isinstance(fact, PaidOut) and fact.key == id for fact in facts) == 1
        if met[0] < hit:
            break
    else:
        raise AssertionError("the sweep did not end")

    assert sum(provider.paid.values()) == hit
    assert await balance(stage) == 100 - hit


class Gone(BaseException):
    """The process was killed here."""
