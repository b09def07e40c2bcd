"""Approvals: asked once, decided once, expired as its own outcome."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from msgspec import Raw
from pydantic import BaseModel, Field, field_validator

from onefold.actuators import Approved, Expired, Rejected, Run, actuator
from onefold.actuators.approving import refusal
from onefold.actuators.parts import NULL
from onefold.actuators.words import Decided
from onefold.terms.errors import BadArguments
from tests.actuators.home import T0, World, played

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SEEN.clear()


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
        ({"need": 0}, "approval 'm': need=0 must be a whole number from 1 to 100"),
        ({"need": True}, "approval 'm': need=True must be a whole number"),
        ({"not_by": []}, "approval 'm': not_by must name at least one person"),
        ({"offer": {"amount": 5}}, "approval 'm': the offer must be a pydantic model, not dict"),
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


class Signed(BaseModel):
    by: str


async def test_what_is_left_out_or_put_in_the_wrong_place_is_told_with_the_right_form() -> None:
    async def main(run: Run) -> list[str]:
        told = []
        ask: Any = run
        for make in (
            lambda: ask.wait_for_approval("m", "Pay?", timeout="1 day"),
            lambda: ask.wait_for_approval("m", "Pay?"),
            lambda: ask.wait_for_event("go"),
            lambda: ask.wait_for_event("go", Signed, timeout="1 day"),
            lambda: ask.wait_for_event(Signed, "1 day"),
        ):
            try:
                make()
            except TypeError as wrong:
                told.append(str(wrong))
        return told

    told = (await played(main)).result
    assert told[0].startswith("approval 'm' does not say notify. Write it like run.wait_for_approval(\"boss\", ")
    assert told[1].startswith("approval 'm' does not say notify and timeout. ")
    assert "run.wait_for_event(Go, name='go', timeout=" in told[2]
    assert "run.wait_for_event(Signed, name='go', timeout=" in told[3]
    assert "takes the class of the event, and its options by name" in told[4]


@pytest.mark.parametrize(
    "outcome", [Approved(("a",), datetime.now(UTC)), Rejected("a", datetime.now(UTC)), Expired(datetime.now(UTC))]
)
def test_an_outcome_has_no_truth_value(outcome: Any) -> None:
    with pytest.raises(TypeError, match="tell outcomes apart with `match`"):
        bool(outcome)


# --- several people, edits ----------------------------------------------------------------------------


async def test_as_many_people_must_agree_as_are_needed_and_each_counts_once() -> None:
    async def main(run: Run) -> list[str]:
        match await run.wait_for_approval("m", "Pay?", notify=["a", "b"], timeout=None, need=2, not_by="chris"):
            case Approved(by=by):
                return list(by)
            case Rejected(by=by):
                return [f"no {by}"]

    world = World(actuator(main))
    await world.play()
    assert world.rows.notices[0].need == 2
    assert world.decide("m", True, by="chris").outcome == "refused"
    assert world.decide("m", True, by="anna").outcome == "decided"
    assert world.decide("m", True, by="anna").outcome == "already_decided"
    world.restart()
    await world.play()
    assert world.state.status == "waiting"
    assert world.decide("m", True, by="bob").outcome == "decided"
    await world.play()
    assert world.result == ["anna", "bob"]
    verdict = world.decide("m", True, by="dora")
    assert (verdict.outcome, verdict.by) == ("already_decided", "anna, bob")


async def test_one_rejection_is_enough_where_two_must_agree() -> None:
    async def main(run: Run) -> str:
        return type(await run.wait_for_approval("m", "Pay?", notify="a", timeout=None, need=2)).__name__

    world = World(actuator(main))
    await world.play()
    world.decide("m", True, by="anna")
    world.decide("m", False, by="bob")
    await world.play()
    assert world.result == "Rejected"


class Payment(BaseModel):
    amount: Decimal = Field(gt=0, le=50)
    note: str = ""

    @field_validator("note")
    @classmethod
    def _polite(cls, note: str) -> str:
        if note == "rude":
            raise ValueError("be polite")
        return note


async def offered(run: Run) -> str:
    offer = Payment(amount=Decimal("40.50"))
    match await run.wait_for_approval("m", "Pay?", notify="a", timeout=None, offer=offer):
        case Approved(value=Payment(amount=amount, note=note)):
            return f"{amount} {note}"
        case _:
            return "?"


@pytest.mark.parametrize(
    "value, told",
    [(NULL, "40.50 "), (Raw(b'{"amount":"12.00","note":"less"}'), "12.00 less"), (Raw(b'{"amount":5}'), "5 ")],
)
async def test_an_offer_comes_back_as_it_was_or_edited_within_its_rules(value: Raw, told: str) -> None:
    world = World(actuator(offered))
    await world.play()
    assert bytes(world.rows.notices[0].offer) == b'{"amount":"40.50","note":""}'
    assert world.decide("m", True, value=value).outcome == "decided"
    await world.play()
    assert world.result == told


async def test_an_edit_that_breaks_the_rules_decides_nothing_and_is_told_at_the_door() -> None:
    world = World(actuator(offered))
    await world.play()
    edit = Decided("e", "run_1", "m", True, "anna", value=Raw(b'{"amount":"900"}'))
    refused = refusal(world.state, edit)
    assert refused is not None
    assert str(refused) == "Nothing was decided. value.amount: must be at most 50; sent 900."
    assert world.decide("m", True, value=Raw(b'{"amount":"900"}')).outcome == "refused"
    assert world.decide("m", True).outcome == "decided"
    assert refusal(world.state, edit) is None


async def test_a_value_where_nothing_was_offered_is_refused() -> None:
    world = World(actuator(ask))
    await world.play(until=lambda w: bool(w.rows.notices))
    refused = refusal(world.state, Decided("e", "run_1", "manager", True, "anna", value=Raw(b"5")))
    assert "nothing was offered to be edited" in str(refused)


async def test_an_edit_that_only_the_model_refuses_is_told_to_the_program() -> None:
    world = World(actuator(offered))
    await world.play()
    world.decide("m", True, value=Raw(b'{"amount":"5","note":"rude"}'))
    await world.play()
    assert world.state.status == "failed"
    assert "be polite" in world.state.trouble.message  # type: ignore[union-attr]


# --- too late, twice, another -------------------------------------------------------------------------


async def test_a_second_decision_changes_nothing_and_says_who_decided() -> None:
    world = World(actuator(ask))
    await world.play(until=lambda w: bool(w.rows.notices))
    assert world.decide("manager", True).outcome == "decided"
    again = world.decide("manager", False, by="bob", reason="late")
    assert (again.outcome, again.by, again.at) == ("already_decided", "anna", T0)
    await world.play()
    assert world.result == "yes anna None"


async def test_a_decision_after_the_timeout_changes_nothing_and_says_so() -> None:
    world = World(actuator(ask))
    await world.play(until=lambda w: bool(w.rows.notices))
    world.rows.now += 86_400_000  # due, but its alarm has not rung yet
    late = world.decide("manager", True)
    assert (late.outcome, late.at) == ("expired", T0 + 86_400_000)
    await world.play()
    assert world.result.startswith("nobody")
    assert world.decide("manager", True).outcome == "expired"


async def test_a_decision_for_a_cancelled_run_says_so() -> None:
    world = World(actuator(ask))
    await world.play(until=lambda w: bool(w.rows.notices))
    world.cancel()
    assert world.decide("manager", True).outcome == "cancelled"


async def test_an_approval_nobody_asked_for_is_unknown() -> None:
    world = World(actuator(ask))
    assert world.decide("director", True).outcome == "unknown"


async def test_a_link_of_the_first_question_never_answers_the_second() -> None:
    async def main(run: Run) -> list[str]:
        told = []
        for n in range(2):
            found = await run.wait_for_approval("m", f"Pay {n}?", notify="a", timeout=None)
            told.append(type(found).__name__)
        return told

    world = World(actuator(main))
    await world.play()
    assert world.decide("m", True, wait="0#0").outcome == "decided"
    await world.play()
    assert world.decide("m", True, wait="0#0").outcome == "already_decided"
    assert world.decide("m", False, wait="0#1").outcome == "decided"
    await world.play()
    assert world.result == ["Approved", "Rejected"]


async def test_an_approval_whose_task_was_cancelled_says_so() -> None:
    async def main(run: Run) -> str:
        async def asks() -> None:
            await run.wait_for_approval("m", "Pay?", notify="a", timeout=None)

        task = asyncio.create_task(asks())
        await run.sleep("1 hour")
        task.cancel()
        await run.sleep("1 hour")
        return "x"

    world = World(actuator(main))
    await world.play(until=lambda w: w.count > 0)
    await world.play()
    assert world.result == "x"
    assert world.decide("m", True).outcome == "cancelled"
