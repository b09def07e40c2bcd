"""Bad arguments cost nothing: every faulty field is named, in plain words, and nothing was started."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pytest
from pydantic import AnyUrl, AwareDatetime, BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from onefold.actuators import Run, actuator
from onefold.actuators.arguments import check_arguments
from onefold.terms.errors import BadArguments


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Line(BaseModel):
    sku: str
    count: int = 1


class Order(BaseModel):
    order_id: str = Field(min_length=2, max_length=5, pattern="^[a-z0-9]+$")
    amount: Decimal = Field(gt=0, le=500, max_digits=5, decimal_places=2)
    note: str | None = None
    limit: int | None = 10
    tries: int = Field(default=1, ge=1, multiple_of=1)
    lines: list[Line] = Field(default=[], max_length=2)
    extra: dict[str, int] = {}
    colour: Colour = Colour.RED
    kind: Literal["a", "b"] = "a"
    rate: float = 0.5
    urgent: bool = False
    day: date | None = None
    at: AwareDatetime | None = None
    naive: datetime | None = None
    clock: time | None = None
    id: UUID | None = None
    link: AnyUrl | None = None
    either: int | Line | None = None
    secret: SecretStr | None = None

    @field_validator("note")
    @classmethod
    def _no_shouting(cls, note: str | None) -> str | None:
        if note and note.isupper():
            raise ValueError("Must not shout.")
        return note

    @model_validator(mode="after")
    def _together(self) -> Order:
        if self.urgent and self.amount > 100:
            raise ValueError("an urgent order has at most 100")
        return self


@actuator
async def order(run: Run, order: Order) -> int:
    return 1


GOOD = {"order_id": "o7", "amount": "40.50"}


def faults(**sent: Any) -> list[str]:
    with pytest.raises(BadArguments) as bad:
        order.check({**GOOD, **sent})
    assert str(bad.value).startswith("Nothing was started. ")
    assert "pydantic" not in str(bad.value)
    assert "http" not in str(bad.value) or "link" in str(bad.value)
    return [str(fault) for fault in bad.value.faults]


def test_good_arguments_are_a_model() -> None:
    assert order.check(GOOD) == Order(order_id="o7", amount=Decimal("40.50"))


@pytest.mark.parametrize(
    "sent, told",
    [
        ({"amount": 900}, ["amount: must be at most 500; sent 900"]),
        ({"amount": 0}, ["amount: must be more than 0; sent 0"]),
        ({"amount": "1.999"}, ["amount: must have at most 2 decimal places; sent 1.999"]),
        ({"amount": "much"}, ["amount: must be a decimal number; sent much"]),
        ({"amount": [1]}, ["amount: must be a decimal number; sent [1]"]),
        ({"order_id": "x"}, ["order_id: must have at least 2 characters; sent x"]),
        ({"order_id": "xxxxxx"}, ["order_id: must have at most 5 characters; sent xxxxxx"]),
        ({"order_id": "A!"}, ["order_id: must match the pattern ^[a-z0-9]+$; sent A!"]),
        ({"order_id": 5}, ["order_id: must be text; sent 5"]),
        ({"tries": 0}, ["tries: must be at least 1; sent 0"]),
        ({"tries": 1.5}, ["tries: must be a whole number; sent 1.5"]),
        ({"tries": "x"}, ["tries: must be a whole number; sent x"]),
        ({"lines": [{}, {"sku": 5}]}, ["lines[0].sku: is missing", "lines[1].sku: must be text; sent 5"]),
        ({"lines": [{"sku": "a"}] * 3}, None),
        ({"lines": "x"}, ["lines: must be a list; sent x"]),
        ({"lines": [5]}, ["lines[0]: must be an object; sent 5"]),
        ({"extra": {"a": "x"}}, ["extra.a: must be a whole number; sent x"]),
        ({"extra": 5}, ["extra: must be an object; sent 5"]),
        ({"colour": "green"}, ["colour: must be 'red' or 'blue'; sent green"]),
        ({"kind": "c"}, ["kind: must be 'a' or 'b'; sent c"]),
        ({"rate": "x"}, ["rate: must be a number; sent x"]),
        ({"urgent": "x"}, ["urgent: must be true or false; sent x"]),
        ({"day": "tomorrow"}, ["day: must be a date such as 2026-01-31; sent tomorrow"]),
        ({"at": "2026-01-31T09:00:00"}, None),
        ({"at": "soon"}, ["at: must be an instant such as 2026-01-31T09:00:00Z; sent soon"]),
        ({"clock": "x"}, ["clock: must be a time of day such as 09:30; sent x"]),
        ({"id": "x"}, ["id: must be a UUID; sent x"]),
        ({"link": "x"}, ["link: must be a URL such as https://example.com; sent x"]),
        ({"note": "LOUD"}, ["note: must not shout; sent LOUD"]),
        ({"urgent": True, "amount": 200}, None),
        ({"ammount": 5}, ["ammount: is not known; sent 5"]),
        ({"nte": "x"}, ["nte: is not known; did you mean 'note'?; sent x"]),
        ({"either": "x"}, None),
    ],
)
def test_each_faulty_field_is_told_in_plain_words(sent: dict[str, Any], told: list[str] | None) -> None:
    found = faults(**sent)
    if told is not None:
        assert found == told
    else:
        assert len(found) == 1


def test_all_faults_come_at_once_and_one_a_field() -> None:
    with pytest.raises(BadArguments) as bad:
        order.check({"amount": 900, "tries": "x", "unknown": 1})
    assert [fault.field for fault in bad.value.faults] == ["unknown", "order_id", "amount", "tries"]
    assert "order_id: is missing." in str(bad.value)


def test_what_the_branches_of_a_union_say_is_one_fault() -> None:
    (fault,) = faults(either="x")
    assert fault == "either: must be a whole number, or must be an object; sent x"


def test_a_rule_over_several_fields_names_no_field() -> None:
    (fault,) = faults(urgent=True, amount=200)
    assert fault.startswith("an urgent order has at most 100")


def test_a_secret_is_not_echoed() -> None:
    (fault,) = faults(secret=5)
    assert fault == "secret: must be text"


@pytest.mark.parametrize("sent", [[], "x", 5, True])
def test_arguments_are_one_object(sent: Any) -> None:
    with pytest.raises(BadArguments, match="the arguments must be one object"):
        order.check(sent)


@pytest.mark.parametrize(
    "sent",
    [
        {"note": None},
        {"tries": None},
        {"lines": None},
        {"day": None, "either": None},
        {"day": "null", "tries": "null"},
    ],
)
def test_null_missing_and_the_default_are_alike(sent: dict[str, Any]) -> None:
    assert order.check({**GOOD, **sent}) == order.check(GOOD)


def test_null_is_kept_where_the_author_gave_it_a_meaning() -> None:
    found: Any = order.check({**GOOD, "limit": None})
    assert found.limit is None
    assert order.check(GOOD).limit == 10


def test_null_for_a_field_that_must_be_there_is_a_fault() -> None:
    assert faults(amount=None) == ["amount: must be a decimal number"]


def test_lists_and_objects_may_come_as_json_text_once() -> None:
    found: Any = order.check({**GOOD, "lines": '[{"sku": "a"}]', "extra": '{"a": 1}', "either": '{"sku": "b"}'})
    assert found.lines == [Line(sku="a")]
    assert found.extra == {"a": 1}
    assert found.either == Line(sku="b")
    assert faults(lines='"[]"') == ['lines: must be a list; sent "[]"']
    assert faults(lines="[1") == ["lines: must be a list; sent [1"]


def test_text_that_looks_like_json_stays_text() -> None:
    found: Any = order.check({**GOOD, "note": "null"})
    assert found.note == "null"
    found = order.check({**GOOD, "note": "[1]"})
    assert found.note == "[1]"


class Session(BaseModel):
    sessionId: str


def test_what_clients_put_beside_the_arguments_is_stripped() -> None:
    assert order.check({**GOOD, "toolCallId": "x", "sessionId": "y", "chatInput": "z"}) == order.check(GOOD)

    @actuator
    async def session(run: Run, session: Session) -> int:
        return 1

    found: Any = session.check({"sessionId": "s", "toolCallId": "x"})
    assert found.sessionId == "s"


class Aliased(BaseModel):
    order_id: str = Field(alias="orderId")
    size: int | None = Field(default=None, alias="theSize")


def test_names_in_json_are_the_aliases() -> None:
    @actuator(dedupe_by=["orderId"])
    async def aliased(run: Run, input: Aliased) -> int:
        return 1

    found = aliased.check({"orderId": "7", "theSize": None})
    assert found.order_id == "7"
    assert aliased.read_input(aliased.written(found)) == found
    assert aliased.agreeing(found) is not None
    with pytest.raises(BadArguments, match="order_id: is not known; did you mean 'orderId'"):
        aliased.check({"order_id": "7"})


class Nested(BaseModel):
    order: Order


def test_a_float_for_money_keeps_its_digits() -> None:
    found: Any = order.check({**GOOD, "amount": 40.1})
    assert found.amount == Decimal("40.1")


def test_a_model_that_says_what_becomes_of_unknown_fields_is_heard() -> None:
    class Delivery(BaseModel):
        model_config = ConfigDict(extra="ignore")
        action: str

    class Anything(BaseModel):
        model_config = ConfigDict(extra="allow")
        action: str

    sent = {"action": "opened", "sender": {"id": 1}}
    properties = {"action": {"type": "string"}}
    assert check_arguments(Delivery, properties, sent) == Delivery(action="opened")
    assert check_arguments(Anything, properties, sent) == Anything.model_validate(sent)
    with pytest.raises(BadArguments, match="action: is missing"):
        check_arguments(Delivery, properties, {"sender": 1})
