"""The verbs of a run: what they journal, what they give back, and what they refuse at the call."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from onefold.actuators import Approved, Expired, Rejected, Retry, Run, actuator
from onefold.actuators.journal import rows
from onefold.kernel.port import Step
from onefold.kernel.port import _port as port_of
from onefold.terms.errors import BadArguments, OutsideStep, StepFailed
from onefold.terms.ids import ActorId, leaving_key
from tests.actuators.home import T0, Killed, World, until

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SEEN.clear()


async def played(function: Any, input: Any = None, **more: Any) -> World:
    world = World(actuator(function) if not hasattr(function, "function") else function, input, **more)
    await world.play()
    return world


# --- steps ------------------------------------------------------------------------------------------


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


# --- now, chance --------------------------------------------------------------------------------------


async def test_now_random_and_uuid_are_the_same_on_every_replay() -> None:
    async def tick() -> None:
        world.rows.now += 1_500

    async def main(run: Run) -> str:
        SEEN.append([])

        def look() -> str:
            told = f"{run.now().isoformat()} {run.random.random()} {run.uuid()}"
            SEEN[-1].append(told)
            return told

        look()
        await run.step(tick)()
        look()
        await run.sleep("1 hour")
        look()
        await asyncio.sleep(1)
        return look()

    world = World(actuator(main))
    await world.play()
    assert len(SEEN) == 3
    for earlier, later in itertools.pairwise(SEEN):
        assert later[: len(earlier)] == earlier
    instants = [datetime.fromisoformat(told.split()[0]) for told in SEEN[-1]]
    assert instants[0].timestamp() * 1000 == T0
    assert [(b - a).total_seconds() for a, b in itertools.pairwise(instants)] == [1.5, 3600, 1]
    assert len({UUID(told.split()[2]) for told in SEEN[-1]}) == 4


async def test_two_runs_have_different_chances() -> None:
    async def main(run: Run) -> str:
        return f"{run.id} {run.random.random()}"

    made = actuator(main)
    one, two = World(made), World(made)
    two.life.state.run = "run_2"
    for world in (one, two):
        await world.play()
    assert one.result.split()[1] != two.result.split()[1]
    assert isinstance(random.Random, type)


async def test_a_run_knows_its_id_key_and_principal() -> None:
    async def main(run: Run) -> list[str | None]:
        return [run.id, run.key, run.principal]

    assert (await played(main, key="order-7", principal="studio")).result == ["run_1", "order-7", "studio"]


# --- sleeping -----------------------------------------------------------------------------------------


async def test_a_sleep_ends_a_pass_and_is_one_wait() -> None:
    async def main(run: Run) -> str:
        await run.sleep(timedelta(hours=2))
        return run.now().isoformat()

    world = World(actuator(main))
    await world.play(until=lambda w: w.state.status == "waiting")
    (wait,) = world.life.module.view(world.state).waits
    assert (wait.kind, wait.until) == ("sleep", T0 + 7_200_000)
    await world.play()
    assert world.passes == 2
    assert datetime.fromisoformat(world.result).timestamp() * 1000 == T0 + 7_200_000


async def test_a_past_instant_goes_on_at_once() -> None:
    async def main(run: Run) -> int:
        await run.sleep_until(run.now() - timedelta(days=1))
        await run.sleep_until(run.now())
        await run.sleep("0 seconds")
        await asyncio.sleep(0)
        return 1

    world = await played(main)
    assert world.result == 1
    assert world.rows.now == T0


async def test_an_instant_past_by_the_real_clock_only_is_due_in_the_same_commit() -> None:
    async def late() -> None:
        world.rows.now += 10_000

    async def main(run: Run) -> int:
        target = run.now() + timedelta(seconds=5)
        asleep = asyncio.create_task(later(run, target))
        await run.step(late)()
        await asleep
        return 1

    async def later(run: Run, target: datetime) -> None:
        await run.sleep_until(target)

    world = World(actuator(main))
    await world.play()
    assert world.result == 1
    assert world.rows.now == T0 + 10_000


@pytest.mark.parametrize("bad", [5, "5", "-1 s", "nan s", "soon", timedelta(days=5000), None, float("inf")])
async def test_a_duration_that_is_none_is_refused_at_the_call(bad: Any) -> None:
    async def main(run: Run) -> str:
        try:
            _ = run.sleep(bad)
        except BadArguments as wrong:
            return str(wrong)
        return "?"

    assert (await played(main)).result.startswith("Nothing was started.")


async def test_a_naive_instant_is_refused_at_the_call() -> None:
    async def main(run: Run) -> str:
        try:
            _ = run.sleep_until(datetime(2030, 1, 1))  # noqa: DTZ001 - what is tested
        except BadArguments as wrong:
            return str(wrong)
        return "?"

    assert "has no time zone" in (await played(main)).result


async def test_a_timeout_cuts_a_running_step_which_is_abandoned() -> None:
    async def slow() -> None:
        SEEN.append("begun")
        world.ring()
        try:
            await asyncio.Event().wait()
        finally:
            SEEN.append("cut")

    async def main(run: Run) -> str:
        try:
            await asyncio.wait_for(run.step(slow)(), 5)
        except TimeoutError:
            return "late"
        return "?"

    async def settle() -> None:
        """The clock rings once the timer is durable."""
        await until(lambda: world.state.agenda)
        world.ring()

    world = World(actuator(main))
    ringing = asyncio.create_task(settle())
    await world.play()
    await ringing
    assert world.result == "late"
    assert SEEN == ["begun", "cut"]
    assert [row.kind for row in rows(world.state)] == ["due"]


async def test_a_wait_nobody_needs_any_more_wakes_nobody() -> None:
    async def quick() -> int:
        await until(lambda: world.state.agenda)
        return 1

    async def main(run: Run) -> int:
        found = await asyncio.wait_for(run.step(quick)(), 3600)
        await run.sleep("1 day")
        return found

    world = World(actuator(main))
    await world.play(until=lambda w: w.state.status == "waiting")
    assert [wait.until for wait in world.state.open.values()] == [T0 + 86_400_000]
    await world.play()
    assert world.result == 1


async def test_a_wait_nobody_needs_any_more_is_released_after_a_crash_too() -> None:
    async def quick() -> int:
        await until(lambda: world.state.agenda)
        return 1

    async def main(run: Run) -> int:
        found = await asyncio.wait_for(run.step(quick)(), 3600)
        await run.sleep("1 day")
        return found

    world = World(actuator(main))
    world.restart(kill_at=4, before=True)  # the timer and the step are committed, the end of the pass is not
    with pytest.raises(Killed):
        await world.play()
    world.restart()
    assert [wait.name for wait in world.state.open.values()] == ["timer"]
    await world.play(until=lambda w: w.state.status == "waiting")
    assert [wait.name for wait in world.state.open.values()] == ["sleep"]
    await world.play()
    assert world.result == 1


# --- events -------------------------------------------------------------------------------------------


class Shipped(BaseModel):
    parcel: str


async def ship(run: Run) -> str:
    event = await run.wait_for_event(Shipped)
    return event.parcel


async def test_an_event_reaches_the_wait() -> None:
    world = World(actuator(ship))
    await world.play()
    assert world.state.status == "waiting"
    assert world.send("Shipped", b'{"parcel":"p1"}').outcome == "taken"
    await world.play()
    assert world.result == "p1"
    assert world.send("Shipped", b'{"parcel":"p2"}').outcome == "over"


async def test_an_event_sent_early_is_kept_and_consumed_first_come_first_taken() -> None:
    async def main(run: Run) -> list[str]:
        await run.sleep("1 hour")
        return [(await run.wait_for_event(Shipped)).parcel for _ in range(3)]

    world = World(actuator(main))
    for n in range(2):
        assert world.send("Shipped", b'{"parcel":"p%d"}' % n).outcome == "kept"
    await world.play()
    assert world.state.status == "waiting"
    world.send("Other", b"{}")
    assert world.send("Shipped", b'{"parcel":"last"}').outcome == "taken"
    await world.play()
    assert world.result == ["p0", "p1", "last"]


async def test_two_waits_of_one_name_take_events_in_their_own_order() -> None:
    async def main(run: Run) -> list[str]:
        async def one() -> str:
            return (await run.wait_for_event(Shipped)).parcel

        return list(await asyncio.gather(one(), one()))

    world = World(actuator(main))
    await world.play()
    world.send("Shipped", b'{"parcel":"a"}')
    world.send("Shipped", b'{"parcel":"b"}')
    await world.play()
    assert world.result == ["a", "b"]


async def test_an_event_that_does_not_come_expires() -> None:
    async def main(run: Run) -> str:
        match await run.wait_for_event(Shipped, timeout="1 day", name="parcel"):
            case Expired(deadline=deadline):
                return deadline.isoformat()
            case Shipped(parcel=parcel):
                return parcel

    world = await played(main)
    assert datetime.fromisoformat(world.result).timestamp() * 1000 == T0 + 86_400_000


async def test_an_event_that_fits_no_model_is_told_to_the_program() -> None:
    async def main(run: Run) -> str:
        try:
            await run.wait_for_event(Shipped)
        except BadArguments as wrong:
            return str(wrong)
        return "?"

    world = World(actuator(main))
    world.send("Shipped", b'{"wrong":1}')
    await world.play()
    assert "parcel" in world.result


async def test_an_event_that_met_a_cancelled_wait_reaches_the_next() -> None:
    async def main(run: Run) -> str:
        async def first() -> str:
            return (await run.wait_for_event(Shipped)).parcel

        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(first(), 60)
        return (await run.wait_for_event(Shipped)).parcel

    world = World(actuator(main))
    await world.play(until=lambda w: w.state.status == "waiting")
    # Both land before the pass looks: the timer first, then an event for the wait that the timer will cut.
    world.ring()
    assert world.send("Shipped", b'{"parcel":"kept"}').outcome == "taken"
    await world.play()
    assert world.result == "kept"
    world.restart()
    assert world.state.status == "done"


async def test_an_event_given_back_reaches_a_wait_that_is_open_already() -> None:
    async def main(run: Run) -> list[str]:
        async def take() -> str:
            return (await run.wait_for_event(Shipped)).parcel

        async def cut() -> str:
            try:
                return await asyncio.wait_for(take(), 60)
            except TimeoutError:
                return "cut"

        return list(await asyncio.gather(cut(), take()))

    world = World(actuator(main))
    await world.play(until=lambda w: w.state.status == "waiting")
    world.ring()
    world.send("Shipped", b'{"parcel":"kept"}')
    await world.play()
    assert world.result == ["cut", "kept"]


# --- approvals ----------------------------------------------------------------------------------------


async def ask(run: Run) -> str:
    match await run.wait_for_approval("manager", "Pay 150?", notify=["shop_manager"], timeout="24 hours"):
        case Approved(by=by, comment=comment):
            return f"yes {','.join(by)} {comment}"
        case Rejected(by=by, reason=reason):
            return f"no {by} {reason}"
        case Expired(deadline=deadline):
            return f"nobody {deadline.isoformat()}"


async def test_an_approval_asks_once_and_its_decision_counts() -> None:
    world = World(actuator(ask))
    await world.play(until=lambda w: bool(w.rows.notices))
    (notice,) = world.rows.notices
    assert (notice.name, notice.message, notice.notify, notice.call) == (
        "manager",
        "Pay 150?",
        ("shop_manager",),
        "0#0",
    )
    assert (notice.since, notice.until, bytes(notice.shown)) == (T0, T0 + 86_400_000, b"null")
    assert world.decide("manager", True, comment="fine").outcome == "decided"
    await world.play()
    assert world.result == "yes anna fine"
    assert len(world.rows.notices) == 1


async def test_a_rejection_brings_its_reason() -> None:
    world = World(actuator(ask))
    world.people = [lambda w: bool(w.decide("manager", False, by="bob", reason="too much"))]
    await world.play()
    assert world.result == "no bob too much"


async def test_nobody_decided_is_its_own_outcome() -> None:
    assert (await played(ask)).result.startswith("nobody 2027-01-16")


async def test_a_wait_without_an_end_stays_open() -> None:
    async def main(run: Run) -> str:
        match await run.wait_for_approval("manager", "Pay?", notify="m", timeout=None):
            case Approved():
                return "yes"
            case Rejected():
                return "no"

    world = World(actuator(main))
    await world.play()
    assert world.state.status == "waiting"
    assert world.life.module.wake(world.state) is None
    world.decide("manager", True)
    await world.play()
    assert world.result == "yes"


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({"name": ""}, "the name '' of an approval"),
        ({"message": " "}, "approval 'm': the message must not be empty"),
        ({"message": "x" * 4001}, "approval 'm': the message has 4001 characters; at most 4000 are shown"),
        ({"message": "a\0b"}, "approval 'm': the message holds a NUL character"),
        ({"message": 5}, "approval 'm': the message must be text, not int"),
        ({"notify": []}, "approval 'm': notify must name at least one person or URL"),
        ({"notify": [5]}, "approval 'm': notify must name at least one person or URL"),
        ({"notify": None}, "approval 'm': notify must name at least one person or URL"),
        ({"timeout": 5}, "timeout"),
    ],
)
async def test_what_cannot_be_asked_is_refused_at_the_call(arguments: dict[str, Any], told: str) -> None:
    async def main(run: Run) -> str:
        good: dict[str, Any] = {"name": "m", "message": "Pay?", "notify": "m", "timeout": "1 day"}
        try:
            _ = run.wait_for_approval(**{**good, **arguments})
        except (TypeError, ValueError, BadArguments) as wrong:
            return str(wrong)
        return "?"

    assert told in (await played(main)).result


async def test_the_timeout_of_an_approval_is_always_said() -> None:
    async def main(run: Run) -> str:
        try:
            _ = run.wait_for_approval("m", "Pay?", notify="m")  # type: ignore[call-overload]
        except TypeError as wrong:
            return str(wrong)
        return "?"

    assert "timeout" in (await played(main)).result


@pytest.mark.parametrize(
    "outcome", [Approved(("a",), datetime.now(UTC)), Rejected("a", datetime.now(UTC)), Expired(datetime.now(UTC))]
)
def test_an_outcome_has_no_truth_value(outcome: Any) -> None:
    with pytest.raises(TypeError, match="tell outcomes apart with `match`"):
        bool(outcome)


# --- where a run may be used --------------------------------------------------------------------------


async def test_a_verb_used_inside_a_step_is_refused() -> None:
    held: list[Run] = []

    async def sneaky() -> str:
        try:
            _ = held[0].sleep("1 s")
        except RuntimeError as wrong:
            return str(wrong)
        return "?"

    async def main(run: Run) -> str:
        held.append(run)
        return await run.step(sneaky)()

    assert "was used outside its function: inside a step" in (await played(main)).result


async def test_a_port_called_outside_a_step_is_refused_and_one_not_declared_too() -> None:
    async def send(step: Step, body: str) -> str:
        SEEN.append(step.key)
        return body.upper()

    upper = port_of("upper", "dedupes")(send)

    async def main(run: Run) -> list[str]:
        told = []
        try:
            upper("x")
        except OutsideStep as wrong:
            told.append(str(wrong))
        told.append(await run.step(upper)("x"))
        return told

    world = World(actuator(capabilities=[upper])(main))
    await world.play()
    assert world.result == [
        "upper was called outside a step, where its effect could happen twice. Use run.step(upper).",
        "X",
    ]
    world = await played(main)
    assert world.state.status == "failed"
    assert "main does not declare 'upper'" in world.state.trouble.message  # type: ignore[union-attr]
