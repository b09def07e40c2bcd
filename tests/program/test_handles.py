"""An object of the host crosses as a token of its turn: made up, spent, or of another kind, it reaches nothing."""

from __future__ import annotations

import pytest

from onefold.program.handles import Handle, Handles
from onefold.program.words import BadToken


def test_a_token_leads_back_to_its_object() -> None:
    pool, handle = Handles(), Handle[object]("seat 4")
    token = pool.give(handle, "Seat")
    assert token == "h:Seat:1"
    assert pool.take(token, "Seat") is handle
    assert pool.give(handle, "Seat") == token


def test_what_was_spent_is_refused() -> None:
    pool = Handles()
    token = pool.give(Handle("seat 4"), "Seat")
    assert pool.take(token, "Seat").spend() == "seat 4"
    with pytest.raises(BadToken, match="is spent"):
        pool.take(token, "Seat")


@pytest.mark.parametrize("token", ["h:Seat:2", "h:Seat:01", "h:Seat:1 ", "", None, 1, ["h:Seat:1"]])
def test_what_was_made_up_reaches_nothing(token: object) -> None:
    pool = Handles()
    pool.give(Handle("seat 4"), "Seat")
    with pytest.raises(BadToken, match="is none of this turn"):
        pool.take(token, "Seat")


def test_a_token_of_another_kind_is_refused() -> None:
    pool = Handles()
    token = pool.give(Handle("seat 4"), "Seat")
    with pytest.raises(BadToken, match="is a Seat, where a Room belongs"):
        pool.take(token, "Room")


def test_a_token_of_another_turn_is_refused() -> None:
    token = Handles().give(Handle("seat 4"), "Seat")
    with pytest.raises(BadToken):
        Handles().take(token, "Seat")
