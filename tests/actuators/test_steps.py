"""Steps: their results, attempts and arguments, and what is refused at the call."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from onefold.actuators import Retry, Run, actuator
from onefold.actuators.journal import rows
from onefold.kernel.port import Step
from onefold.terms.errors import BadArguments, StepFailed
from onefold.terms.ids import ActorId, leaving_key
from tests.actuators.home import World, played

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SEEN.clear()


class Money(BaseModel):
    amount: Decimal
    tags: list[str] = []


@dataclass(frozen=True)
class Paid:
    id: str
    at: datetime


@dataclass(frozen=True)
class Refused:
    why: str


async def test_a_result_is_the_round_tripped_value_the_first_time_too() -> None:
    async def pay(money: Money) -> Paid | Refused:
        assert money.amount == Decimal("1.50")
        return Paid("p", datetime(2026, 1, 1, 1, tzinfo=UTC))

    async def count() -> tuple[int, ...]:
        return (1, 2)

    async def main(run: Run) -> list[str]:
        paid = await run.step(pay)(Money(amount=Decimal("1.50")))
        counted = await run.step(count)()
        await run.sleep("1 second")
        return [repr(paid), repr(counted), type(paid).__name__]

    world = await played(main)
    assert world.passes == 2
    assert world.result[2] == "Paid"
    assert world.result[1] == "(1, 2)"


async def test_a_step_is_filled_in_and_its_key_now_and_principal_hold_over_attempts() -> None:
    async def flaky(step: Step, what: str) -> str:
        SEEN.append((step.key, step.now, step.attempt, step.principal))
        if step.attempt < 3:
            raise ConnectionError("no")
        return what

    async def main(run: Run) -> str:
        await run.step(flaky)("a")
        return await run.step(flaky)("b")

    world = await played(main, principal="studio")
    keys = [seen[0] for seen in SEEN]
    owner = ActorId("main", "studio", "run_1")
    assert keys == [leaving_key(owner, "s/0/flaky")] * 3 + [leaving_key(owner, "s/0/flaky#2")] * 3
    assert [seen[2] for seen in SEEN] == [1, 2, 3, 1, 2, 3]
    assert {seen[3] for seen in SEEN} == {"studio"}
    assert len({seen[1] for seen in SEEN[:3]}) == 1
    assert world.result == "b"


async def test_the_wait_between_attempts_grows_and_is_journaled() -> None:
    async def broken() -> None:
        SEEN.append(world.rows.now)
        raise ConnectionError("down")

    async def main(run: Run) -> str:
        try:
            await run.step(broken, retry=Retry(attempts=4, first="10 seconds", factor=3, at_most="1 minute"))()
        except StepFailed as failed:
            return f"{failed.step} {failed.attempts} {failed.kind} {failed.message}"
        return "?"

    world = World(actuator(main))
    await world.play()
    waits = [(b - a) / 1000 for a, b in itertools.pairwise(SEEN)]
    for wait, most in zip(waits, (10, 30, 60), strict=True):
        assert most * 0.75 <= wait <= most
    assert world.result == "broken 4 ConnectionError down"
    assert [row.kind for row in rows(world.state)] == ["retry", "again", "retry", "again", "retry", "again", "failed"]


async def test_a_waiting_retry_shows_what_it_waits_for() -> None:
    async def broken() -> None:
        raise ConnectionError("down")

    async def main(run: Run) -> None:
        await run.step(broken, name="charge")()

    world = World(actuator(main))
    await world.play(until=lambda w: w.state.status == "waiting")
    (wait,) = world.life.module.view(world.state).waits
    assert (wait.kind, wait.name, wait.message) == ("retry", "charge", "ConnectionError: down")


async def test_never_is_never_tried_again() -> None:
    async def refused() -> None:
        SEEN.append(1)
        raise PermissionError("no")

    async def main(run: Run) -> None:
        await run.step(refused, retry=Retry(never=(PermissionError,)))()

    world = await played(main)
    assert len(SEEN) == 1
    assert world.state.status == "failed"
    trouble = world.state.trouble
    assert trouble is not None
    assert (trouble.kind, trouble.message, trouble.step, trouble.attempts) == ("PermissionError", "no", "refused", 1)


class Odd(Exception):
    """Takes arguments that no reader could give it."""

    def __init__(self, code: int, client: object, *, must: str) -> None:
        SEEN.append("built")
        self.code = code
        self.client = client
        self.must = must
        super().__init__(f"code {code}")


async def test_an_exception_comes_back_as_data_and_its_class_is_never_built() -> None:
    async def fail() -> None:
        raise Odd(7, object(), must="x")

    async def main(run: Run) -> list[str]:
        try:
            await run.step(fail, retry=Retry(attempts=1))()
        except StepFailed as failed:
            await run.sleep("1 second")
            return [failed.kind, failed.message, str(failed.data)]
        return []

    world = await played(main)
    assert world.result == ["Odd", "code 7", "{'code': 7, 'must': 'x'}"]
    assert SEEN == ["built"]


async def test_a_plain_function_runs_in_a_thread() -> None:
    def where(step: Step, x: int) -> int:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return x + step.attempt

    async def main(run: Run) -> int:
        return await run.step(where)(1)

    assert (await played(main)).result == 2


async def test_a_step_past_its_timeout_fails_its_attempt() -> None:
    async def slow() -> None:
        await asyncio.Event().wait()

    async def main(run: Run) -> str:
        try:
            await run.step(slow, timeout="10 ms", retry=Retry(attempts=2))()
        except StepFailed as failed:
            return f"{failed.kind} {failed.attempts}"
        return "?"

    assert (await played(main)).result == "TimeoutError 2"


async def test_a_result_that_cannot_be_written_fails_the_run_at_once() -> None:
    async def odd() -> int:
        SEEN.append(1)
        return "text"  # type: ignore[return-value]

    async def main(run: Run) -> int:
        return await run.step(odd)()

    world = await played(main)
    assert world.state.status == "failed"
    assert world.state.trouble is not None
    assert world.state.trouble.step == "odd"
    assert len(SEEN) == 1
    assert not len(world.state.journal)


async def test_what_a_function_gives_back_must_fit_its_annotation() -> None:
    async def main(run: Run) -> int:
        return "text"  # type: ignore[return-value]

    world = await played(main)
    assert world.state.status == "failed"
    assert "whole number" in world.state.trouble.message  # type: ignore[union-attr]


async def test_wrong_arguments_are_a_type_error_before_anything_is_journaled() -> None:
    async def add(step: Step, a: int, b: int = 2) -> int:
        return a + b

    async def main(run: Run) -> list[str]:
        told = []
        for args, values in (((), {}), ((1, 2, 3), {}), ((1,), {"c": 1}), ((1,), {"a": 1})):
            try:
                _ = run.step(add)(*args, **values)
            except TypeError as wrong:
                told.append(str(wrong))
        told.append(str(await run.step(add)(1)))
        told.append(str(await run.step(add)(b=5, a=1)))
        return told

    world = await played(main)
    assert world.result[-2:] == ["3", "6"]
    assert [t.startswith("add(): ") for t in world.result[:4]] == [True] * 4
    assert len(world.state.journal) == 2


async def test_an_argument_that_cannot_be_told_apart_is_refused_by_name() -> None:
    async def use(client: object) -> None: ...

    async def main(run: Run) -> str:
        use_of: Any = run.step(use)
        try:
            _ = use_of(object())
        except TypeError as wrong:
            return str(wrong)
        return "?"

    assert (await played(main)).result.startswith("step 'use': its arguments cannot be told apart on replay")


async def test_a_step_gets_its_own_copy_of_what_it_might_change() -> None:
    async def spoil(items: list[int], money: Money) -> int:
        items.append(9)
        money.tags.append("spoilt")
        return len(items)

    async def main(run: Run) -> list[int]:
        items, money = [1], Money(amount=Decimal(1))
        await run.step(spoil)(items, money)
        await run.sleep("1 second")
        return [len(items), len(money.tags)]

    assert (await played(main)).result == [1, 0]


async def test_names_are_checked_where_the_step_is_made() -> None:
    async def nothing() -> None: ...

    async def main(run: Run) -> list[str]:
        told = []
        made: Any = (
            lambda: run.step(lambda: 1),
            lambda: run.step(nothing, name=""),
            lambda: run.step(nothing, name="a#b"),
            lambda: run.step(nothing, name="x" * 101),
            lambda: run.step(nothing, timeout="soon"),
            lambda: run.step(nothing, timeout="-1 s"),
            lambda: run.step(max),
        )
        for make in made:
            try:
                make()
            except (TypeError, ValueError, BadArguments) as wrong:
                told.append(f"{type(wrong).__name__}: {wrong}")
        return told

    told = (await played(main)).result
    assert len(told) == 7
    assert "has no name of its own; say name=…" in told[0]
    assert told[1].startswith("ValueError: the name '' of step")
    assert told[4].startswith("BadArguments")
    assert told[6].startswith("TypeError: max has no signature that can be read")


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Retry(attempts=0),
        lambda: Retry(attempts=True),
        lambda: Retry(factor=0.5),
        lambda: Retry(factor=float("nan")),
        lambda: Retry(first="soon"),
        lambda: Retry(first=timedelta(seconds=-1)),
        lambda: Retry(at_most="100 years"),
    ],
)
def test_a_policy_that_cannot_be_kept_is_refused(bad: Any) -> None:
    with pytest.raises((ValueError, BadArguments)):
        bad()


def test_retries_of_many_keys_are_spread_and_those_of_one_key_are_the_same() -> None:
    retry = Retry(first="10 seconds")
    fault = ConnectionError()
    spread = {retry.after(1, fault, f"k{n}") for n in range(200)}
    assert len(spread) > 100
    assert all(wait is not None and 7_500 <= wait <= 10_000 for wait in spread)
    assert retry.after(1, fault, "k") == retry.after(1, fault, "k")
    assert Retry(attempts=10_000, factor=1000).after(9_000, fault, "k") <= 300_000  # type: ignore[operator]
