"""Two things never share an id, and one thing never has two."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from onefold.terms.errors import BadArguments, LoadRefused
from onefold.terms.ids import (
    ActorId,
    check_name,
    check_text,
    delivered_id,
    door_id,
    join,
    leaving_key,
    nearest,
    owed_id,
    principal_of,
    principal_text,
    run_id,
    run_id_random,
    step_id,
)
from onefold.terms.limits import MAX_ID_BYTES, MAX_KEY_BYTES

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
ids = texts.filter(bool)
tricky = st.text("/~01-=ab", max_size=6)
parts = st.none() | tricky | texts
hashes = st.text("0123456789abcdef", min_size=64, max_size=64)


@given(st.none() | ids)
def test_a_principal_comes_back_from_its_row(principal: str | None) -> None:
    assert principal_of(principal_text(principal)) == principal


@given(ids)
def test_none_is_no_text_of_a_principal(principal: str) -> None:
    assert principal_text(principal) != principal_text(None)


@pytest.mark.parametrize("text", ["", "=", "x", "--", "a=b"])
def test_other_text_is_no_principal(text: str) -> None:
    with pytest.raises(BadArguments):
        principal_of(text)


@given(st.lists(parts, min_size=1, max_size=4), st.lists(parts, min_size=1, max_size=4))
def test_two_lists_never_join_to_one_text(one: list[str | None], other: list[str | None]) -> None:
    assume(one != other)
    assert join(*one) != join(*other)


@given(st.lists(st.none() | st.text("/~01", max_size=3), min_size=1, max_size=3), st.data())
def test_lists_that_look_alike_stay_apart(one: list[str | None], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(one) - 1))
    for put in ([None], [""], ["~"], ["~0"], ["/"], [*one]):
        other = [*one[:at], *put, *one[at + 1 :]]
        assert (join(*one) == join(*other)) == (one == other)


@given(st.lists(st.text(max_size=200).filter(lambda t: "\0" not in t and t.isascii()), min_size=1, max_size=4))
def test_a_joined_key_is_never_longer_than_may_leave(some: list[str]) -> None:
    assert len(join(*some)) <= MAX_KEY_BYTES


def test_a_hash_cannot_be_named_by_hand() -> None:
    long = "x" * (MAX_KEY_BYTES + 1)
    hashed = join(long)
    assert len(hashed) == 64
    assert join(hashed) != hashed


@given(hashes, hashes)
def test_what_looks_like_a_hash_still_joins_apart(one: str, other: str) -> None:
    assert (join(one) == join(other)) == (one == other)


def test_two_long_keys_of_one_beginning_stay_apart() -> None:
    assert join("x" * 300 + "a") != join("x" * 300 + "b")
    assert join("é" * 100) == "é" * 100  # 200 bytes exactly
    assert len(join("é" * 101)) == 64


@pytest.mark.parametrize("bad", [[], ["\0"], ["a", "\ud800"], [5], [0], [b"a"]])
def test_what_is_no_text_is_not_joined(bad: list[object]) -> None:
    with pytest.raises(BadArguments):
        join(*bad)  # type: ignore[arg-type]


actors = st.builds(ActorId, st.sampled_from(["a", "b"]), st.none() | ids, ids)


@given(actors, ids, actors, ids)
def test_two_actors_never_let_one_key_leave(a: ActorId, key: str, b: ActorId, other: str) -> None:
    assume((a, key) != (b, other))
    assert leaving_key(a, key) != leaving_key(b, other)


def test_a_principal_is_no_part_of_a_key() -> None:
    assert leaving_key(ActorId("k", "a:b", "c"), "x") != leaving_key(ActorId("k", "a", "b:c"), "x")
    assert leaving_key(ActorId("k", "a/b", "c"), "x") != leaving_key(ActorId("k", "a", "b/c"), "x")
    assert leaving_key(ActorId("k", None, "c"), "x") != leaving_key(ActorId("k", "~", "c"), "x")


@given(ids)
def test_each_source_has_ids_of_its_own(id: str) -> None:
    assert len({door_id(id), owed_id(id), delivered_id(id), step_id(id)}) == 4


BAD_TEXTS = ["", "a\0b", "\ud800", "x" * (MAX_ID_BYTES + 1), "é" * (MAX_ID_BYTES // 2 + 1), None, 5, b"id"]


@pytest.mark.parametrize("bad", BAD_TEXTS)
@pytest.mark.parametrize("make", [door_id, owed_id, delivered_id, step_id, lambda t: run_id(None, "a", t)])
def test_an_id_that_no_store_can_hold_is_refused(make, bad) -> None:
    with pytest.raises(BadArguments) as refused:
        make(bad)
    assert "\0" not in str(refused.value)
    str(refused.value).encode()  # the refusal itself can be written


def test_the_longest_id_is_taken() -> None:
    assert check_text("x" * MAX_ID_BYTES) == "x" * MAX_ID_BYTES


# Two names of one person, or of two: not for us to say.
@pytest.mark.parametrize("one, other", [("é", "e\u0301"), ("A", "a"), ("a", "a."), ("a", " a")])
def test_ids_that_look_alike_are_two(one: str, other: str) -> None:
    assert door_id(one) != door_id(other)


@given(st.none() | ids, ids, ids, st.none() | ids, ids, ids)
def test_a_key_names_one_run(p: str | None, a: str, k: str, q: str | None, b: str, m: str) -> None:
    assert (run_id(p, a, k) == run_id(q, b, m)) == ((p, a, k) == (q, b, m))


@given(st.binary(min_size=16, max_size=32), st.none() | ids, ids)
def test_a_run_without_a_key_is_no_run_with_one(chance: bytes, principal: str | None, key: str) -> None:
    random = run_id_random("refund", chance)
    assert random != run_id(principal, "refund", key)
    assert random.startswith("run_")
    assert len(random) == len(run_id(principal, "refund", key))
    assert random == run_id_random("refund", chance)


def test_little_chance_is_refused() -> None:
    with pytest.raises(BadArguments):
        run_id_random("refund", b"short")


@pytest.mark.parametrize("name", ["a", "refund_order", "a2", "z" * 32])
def test_a_good_name_is_taken(name: str) -> None:
    assert check_name(name, "module") == name


@pytest.mark.parametrize("name", ["", "A", "2a", "_a", "a-b", "a.b", "ä", "z" * 33, "a\n", "a b", None, 5, "\uff41"])
def test_a_bad_name_is_refused_at_load(name) -> None:
    with pytest.raises(LoadRefused, match="module"):
        check_name(name, "module")


@pytest.mark.parametrize("name", ["billing.charge-due", "a.b.c", "subscriptions.due"])
def test_a_reflex_may_have_dots(name: str) -> None:
    assert check_name(name, "reflex", dots=True) == name


@pytest.mark.parametrize("name", [".a", "a.", "a..b", "A.b", "a.2", "a" * 33, "a." * 200 + "a"])
def test_a_reflex_may_not_have_any_dots(name: str) -> None:
    with pytest.raises(LoadRefused):
        check_name(name, "reflex", dots=True)


@pytest.mark.parametrize("name, kind", [("get_run", "actuator"), ("cancel_run", "actuator"), ("graph", "reflex")])
def test_our_own_names_are_taken(name: str, kind: str) -> None:
    with pytest.raises(LoadRefused, match="own"):
        check_name(name, kind, dots=kind == "reflex")
    assert check_name(name, "module") == name


@pytest.mark.parametrize(
    "word, meant", [("amout", "amount"), ("Amount", "amount"), ("order", "order_id"), ("zzz", None), ("", None)]
)
def test_what_was_perhaps_meant(word: str, meant: str | None) -> None:
    assert nearest(word, ["amount", "order_id"]) == meant
