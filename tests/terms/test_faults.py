"""What is wrong can always be told, whatever came and whatever raised."""

from __future__ import annotations

from typing import Any

import pytest

from onefold.terms.codec import canonical, shown
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.faults import says, short


class Mute:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Unsayable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_an_exception_that_cannot_say_what_it_is_is_told_of() -> None:
    assert says(ValueError("as it is")) == "as it is"
    assert says(Unsayable()) == "it cannot say what it is: RuntimeError"


@pytest.mark.parametrize("value", [10**5_000, Mute()], ids=["a giant", "a mute"])
def test_a_value_that_cannot_be_shown_is_named(value: Any) -> None:
    named = f"a {type(value).__name__} that cannot be shown"
    assert short(value) == shown(value) == named
    assert named in str(Fault("amount", "is wrong", value))


@pytest.mark.parametrize("value", [10**5_000, [10**5_000], {"a": Mute()}], ids=["alone", "in a list", "in an object"])
def test_what_is_no_json_is_refused_and_never_breaks_the_refusal(value: Any) -> None:
    with pytest.raises(BadArguments, match="cannot be shown"):
        canonical(value)
