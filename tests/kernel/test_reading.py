"""Facts of any age: as they are where they fit, through `upgrade` where not, by name where neither."""

from __future__ import annotations

from typing import Any

import pytest

from onefold.kernel.reading import Unreadable, is_snapshot, kinds_of, read_facts
from tests.guarantees.shop import Account, Balance, Deposited, make

NOW = b'{"amount":5,"type":"Deposited"}'
OLD = b'{"cents":700,"type":"PaidIn"}'


def bank(**upgrade: Any) -> Any:
    module = make()
    module.upgrade = upgrade
    return module


def test_a_fact_that_fits_is_read_as_it_is() -> None:
    def never(was: dict[str, Any]) -> Any:
        raise AssertionError("it fits")

    assert read_facts(bank(Deposited=never), b"[" + NOW + b"]") == [Deposited(5)]


def test_facts_of_two_ages_in_one_turn_keep_their_order() -> None:
    module = bank(PaidIn=lambda was: Deposited(was["cents"] // 100))
    assert read_facts(module, b"[" + NOW + b"," + OLD + b"," + NOW + b"]") == [Deposited(5), Deposited(7), Deposited(5)]
    assert read_facts(module, b"[" + OLD + b"," + NOW + b"]", 1) == [Deposited(5)]


def test_what_is_in_front_of_a_snapshot_need_not_be_readable() -> None:
    assert read_facts(bank(), b"[" + OLD + b"," + NOW + b"]", 1) == [Deposited(5)]


@pytest.mark.parametrize(
    "module, raw, kind, why",
    [
        (bank(), OLD, "PaidIn", None),
        (bank(), b'{"amount":"x","type":"Deposited"}', "Deposited", "amount"),
        (bank(PaidIn=lambda was: was["pounds"]), OLD, "PaidIn", "KeyError"),
        (bank(PaidIn=lambda was: "text"), OLD, "PaidIn", "no fact of today"),
        (bank(PaidIn=lambda was: was.amount), OLD, "PaidIn", "AttributeError"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_name(module: Any, raw: bytes, kind: str, why: str | None) -> None:
    with pytest.raises(Unreadable) as told:
        read_facts(module, b"[" + raw + b"]")
    assert told.value.kind == kind
    assert (told.value.why is None) if why is None else (why in str(told.value.why))


def test_an_old_snapshot_is_known_by_what_it_is_read_as() -> None:
    module = bank(PaidIn=lambda was: Deposited(1), Standing=lambda was: Balance(Account()))
    raw = b'[{"type":"Standing"},' + OLD + b"]"
    assert kinds_of(raw) == ["Standing", "PaidIn"]
    assert [is_snapshot(module, raw, place) for place in (0, 1)] == [True, False]
    assert not is_snapshot(bank(PaidIn=lambda was: was["no"]), raw, 1)
