"""`@actuator` reads a signature and refuses, with a sentence, what it cannot offer."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, Field

from onefold.actuators import Actuator, Run, actuator
from onefold.actuators import blocking as plain
from onefold.kernel.port import Step, dedupes
from onefold.terms.errors import BadArguments, LoadRefused, TooLarge


class Refund(BaseModel):
    order_id: str
    amount: Decimal = Field(gt=0, le=500)
    note: str | None = None


class Refunded(BaseModel):
    refund_id: str


class Declined(BaseModel):
    reason: str


@dedupes("pay")
async def pay(step: Step, body: Refund) -> Refunded:
    return Refunded(refund_id=step.key)


@actuator(
    description="Pay an order back.",
    capabilities=["https://pay.example.com", "https://pay.example.com:8443", "env:PAY_URL", pay],
    migrations=["CREATE TABLE refunds (id TEXT)"],
    dedupe_by=["order_id"],
    webhook="stripe",
    long_wait="receipt",
    hints={"idempotent": True},
)
async def refund_order(run: Run, order: Refund) -> Refunded | Declined:
    """Never shown: the description is given."""
    return Declined(reason="no")


def test_a_declared_actuator_is_a_value() -> None:
    assert isinstance(refund_order, Actuator)
    assert (refund_order.name, refund_order.description) == ("refund_order", "Pay an order back.")
    assert refund_order.model is Refund
    assert refund_order.is_async
    assert refund_order.ports == {"pay"}
    assert refund_order.tool
    assert refund_order.hints == {"read_only": False, "destructive": True, "idempotent": True, "open_world": True}
    assert repr(refund_order) == "<actuator refund_order>"
    assert refund_order.function.__name__ == "refund_order"
    assert refund_order.module.name == "refund_order"
    assert refund_order.module is refund_order.module


def test_name_and_description_are_the_functions_own() -> None:
    @actuator
    async def nightly(run: Run) -> int:
        """Send everyone
        their statement.
        """
        return 1

    assert (nightly.name, nightly.description) == ("nightly", "Send everyone\ntheir statement.")
    assert nightly.check(None) is None
    assert nightly.check({}) is None
    assert nightly.written(None) == b"null"
    with pytest.raises(BadArguments, match="x: is not known; sent 1"):
        nightly.check({"x": 1})


def test_a_plain_function_takes_the_blocking_run() -> None:
    @actuator(tool=False)
    def report(run: plain.Run, order: Refund) -> int:
        return 1

    assert not report.is_async
    assert not report.tool


def test_it_cannot_be_called_as_a_function() -> None:
    with pytest.raises(TypeError, match=r"refund_order is an actuator; start it with app\.call or app\.start"):
        refund_order(1)


def test_the_input_is_kept_as_canonical_json_and_read_back() -> None:
    order = Refund(order_id="7", amount=Decimal("1.50"))
    assert refund_order.written(order) == b'{"amount":"1.50","note":null,"order_id":"7"}'
    assert refund_order.read_input(refund_order.written(order)) == order
    with pytest.raises(TypeError, match="refund_order takes Refund, not dict"):
        refund_order.written({"order_id": "7"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"takes Refund, not nothing; write call\(refund_order, Refund\(…\)\)"):
        refund_order.written(None)  # as `run.call(refund_order)(order)` does, which is how a step is called


def test_an_input_that_no_row_can_hold_is_refused() -> None:
    with pytest.raises(TooLarge, match="the input of refund_order has"):
        refund_order.written(Refund(order_id="x" * 1_000_000, amount=Decimal(1)))


def test_calls_agree_by_the_fields_the_author_named() -> None:
    one = Refund(order_id="7", amount=Decimal(1))
    two = Refund(order_id="7", amount=Decimal(2))
    other = Refund(order_id="8", amount=Decimal(1))
    assert refund_order.agreeing(one) == refund_order.agreeing(two) is not None
    assert refund_order.agreeing(one) != refund_order.agreeing(other)

    @actuator
    async def free(run: Run, order: Refund) -> int:
        return 1

    assert free.agreeing(one) is None


def test_the_event_that_creates_a_run_carries_what_the_run_must_know() -> None:
    start = refund_order.start(run="run_1", input=b"{}", key="k", principal="p", dedupe="d", nonce="n")
    assert (start.run, start.program, bytes(start.input), start.key) == ("run_1", "refund_order", b"{}", "k")
    assert (start.principal, start.dedupe, start.nonce, start.id) == ("p", "d", "n", "start")


async def nothing() -> int:
    return 1


async def bare(run) -> int:
    return 1


async def wrong_run(run: plain.Run) -> int:
    return 1


def plain_wrong_run(run: Run) -> int:
    return 1


async def many(run: Run, a: int, b: int) -> int:
    return 1


async def no_model(run: Run, order_id: str) -> int:
    return 1


async def no_result(run: Run):
    return 1


async def unknown(run: Run, order: Missing) -> int:  # type: ignore[name-defined]  # noqa: F821 - what is tested
    return 1


class Deep(BaseModel):
    pass


async def odd_result(run: Run) -> object | set[object]:
    return 1


async def get_run(run: Run) -> int:
    return 1


async def Big(run: Run) -> int:
    return 1


@pytest.mark.parametrize(
    "function, told",
    [
        (nothing, "actuator nothing: takes no parameter; its first is `run: Run`"),
        (bare, "actuator bare: parameter 'run' must be annotated `onefold.Run`"),
        (wrong_run, "parameter 'run' must be annotated `onefold.Run`, or write it as `def`"),
        (plain_wrong_run, "parameter 'run' must be annotated `onefold.blocking.Run`, or write it as `async def`"),
        (many, "takes more than (run, input): 'b'; put all arguments into one pydantic model"),
        (no_model, "parameter 'order_id' must be annotated with one pydantic model"),
        (no_result, "has no return annotation; the signature is the schema"),
        (unknown, "the annotation 'Missing' cannot be found; define the type at the top of the file"),
        (odd_result, "any JSON beside another type cannot be told from it"),
        (get_run, "this name is Onefold's own; choose another"),
        (Big, "a name has lower-case letters"),
    ],
)
def test_a_signature_that_cannot_be_offered_is_refused(function: Any, told: str) -> None:
    with pytest.raises(LoadRefused) as refused:
        actuator(function)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "options, told",
    [
        ({"dedupe_by": ["order"]}, "dedupe_by names 'order', which its input does not have; did you mean 'order_id'?"),
        ({"dedupe_by": "order_id"}, "dedupe_by must be a list, not 'order_id'"),
        ({"capabilities": ["http://pay.example.com"]}, "capability 'http://pay.example.com' is none of"),
        ({"capabilities": ["https://pay.example.com/path"]}, "is none of"),
        ({"capabilities": ["env:no-such"]}, "is none of"),
        ({"migrations": [" "]}, "migration ' ' is not a statement of SQL"),
        ({"webhook": "paypal"}, "webhook='paypal' must be one of None, 'standard', 'stripe', 'github', 'slack'"),
        ({"long_wait": "never"}, "long_wait='never' must be one of 'auto', 'receipt', 'task'"),
        ({"hints": {"safe": True}}, "hint 'safe' is not known; there are read_only, destructive"),
        ({"hints": {"read_only": 1}}, "hint 'read_only' must be True or False, not 1"),
        ({"name": "Refund Order"}, "a name has lower-case letters"),
        ({"name": "a" * 33}, "at most 32 long"),
    ],
)
def test_an_option_that_cannot_be_kept_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(LoadRefused) as refused:
        actuator(**{"name": "refund", **options})(refund_order.function)
    assert told in str(refused.value)


def test_an_option_that_is_none_is_refused() -> None:
    decorator: Any = actuator
    with pytest.raises(LoadRefused, match="@actuator: has no option 'anything'"):
        decorator(anything=None)(refund_order.function)
