"""Paths are cut first and decoded afterwards; headers and queries say one thing or are refused."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.serve.problems import MethodNotAllowed
from onefold.serve.routes import Answer, Ask, Route, Table, idempotency_key, parts_of, prefer_wait
from onefold.terms.errors import BadArguments, UnknownName


async def nothing(ask: Ask) -> Answer:
    return Answer(204)


def table(*routes: str) -> Table:
    return Table([Route(*route.split(" "), nothing, None) for route in routes])  # type: ignore[arg-type, call-arg]


@given(key=st.text(min_size=1).filter(lambda text: text.isprintable() or "/" in text))
def test_any_key_comes_through_a_path_unchanged(key: str) -> None:
    raw = f"/modules/bank/{quote(key, safe='')}/facts".encode()
    scope = {"path": "unused", "raw_path": raw, "root_path": ""}
    assert parts_of(scope) == ("", ["modules", "bank", key, "facts"])
    _, params = table("GET /modules/{module}/{key}/facts").find("GET", parts_of(scope)[1])
    assert params == {"module": "bank", "key": key}


@given(root=st.sampled_from(["", "/onefold", "/a b/ü"]), raw=st.booleans())
def test_a_mounted_path_is_cut_off_with_raw_path_or_without(root: str, raw: bool) -> None:
    scope = {"path": f"{root}/runs/x", "root_path": root}
    if raw:
        scope["raw_path"] = quote(scope["path"]).encode()  # type: ignore[assignment]
    assert parts_of(scope) == (root, ["runs", "x"])


def test_a_fixed_part_goes_before_a_named_one_and_a_method_may_take_the_other() -> None:
    found = table("POST /m/{module}/events", "GET /m/{module}/{key}")
    assert found.find("POST", ["m", "x", "events"])[0].method == "POST"
    assert found.find("GET", ["m", "x", "events"])[1] == {"module": "x", "key": "events"}
    assert found.find("HEAD", ["m", "x", "events"])[0].method == "GET"
    with pytest.raises(MethodNotAllowed) as refused:
        found.find("PUT", ["m", "x", "events"])
    assert refused.value.allowed == ("GET", "HEAD", "POST")
    for parts in (["m"], ["m", "x"], ["m", "", "k"], ["m", "x", "k", "y"], []):
        with pytest.raises(UnknownName):
            found.find("GET", parts)


def test_two_routes_of_one_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="two routes"):
        table("GET /a", "GET /a")
    with pytest.raises(ValueError, match="two routes"):
        table("GET /a/{x}", "GET /a/{y}")


def test_a_named_part_is_called_as_its_own_route_calls_it() -> None:
    found = table("POST /facts/{signal}", "POST /facts/{id}/release")
    assert found.find("POST", ["facts", "stripe"])[1] == {"signal": "stripe"}
    assert found.find("POST", ["facts", "fact_3", "release"])[1] == {"id": "fact_3"}


@pytest.mark.parametrize(
    "header,seconds",
    [
        (None, 20),
        ("", 20),
        ("wait=0", 0),
        ("wait=10", 10),
        ("wait=25", 25),
        ("wait=26", 25),
        ("wait=99999999999999999999", 25),
        ("WAIT = 5 ; x=1, respond-async", 5),
        ('wait="7"', 7),
        ("respond-async", 0),
        ("respond-async, wait=3", 3),
        ("wait=-1", 20),
        ("wait=x", 20),
        ("wait=\uff15", 20),
        ("return=minimal", 20),
    ],
)
def test_a_preference_that_cannot_be_followed_is_not(header: str | None, seconds: int) -> None:
    assert prefer_wait(header) == seconds


@pytest.mark.parametrize(
    "value,key", [(b"k", "k"), (b'"k"', "k"), (b' "a b" ', "a b"), (b'"a\\"b"', 'a"b'), ("ü".encode(), "ü")]
)
def test_a_key_is_read_bare_or_quoted(value: bytes, key: str) -> None:
    assert idempotency_key([value]) == key


@pytest.mark.parametrize("given", [[b""], [b'""'], [b'"'], [b'"x'], [b"\xff"], [b"a", b"a"]])
def test_a_key_that_is_none_is_refused(given: list[bytes]) -> None:
    with pytest.raises(BadArguments):
        idempotency_key(given)
