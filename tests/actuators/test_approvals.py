"""Approvals: asked once, decided once, expired as its own outcome."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from onefold.actuators import Approved, Expired, Rejected, Run, actuator
from onefold.terms.errors import BadArguments
from tests.actuators.home import T0, World

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    SEEN.clear()


async def played(function: Any, input: Any = None, **more: Any) -> World:
    world = World(actuator(function) if not hasattr(function, "function") else function, input, **more)
    await world.play()
    return world


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
