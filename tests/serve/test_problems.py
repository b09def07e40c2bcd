"""One error, told at every door."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from httpx2 import AsyncClient
from hypothesis import given
from hypothesis import strategies as st

from onefold.serve import problems
from onefold.serve.problems import HostRefused, MethodNotAllowed, failure, spoken, told
from onefold.terms import errors
from onefold.terms.codec import parse
from onefold.terms.errors import BadArguments, Busy, Fault, Finding, LoadRefused, OnefoldError, RunParked, TooLarge

MADE: dict[type[OnefoldError], OnefoldError] = {
    BadArguments: BadArguments([Fault("a", "is wrong", 1)]),
    LoadRefused: LoadRefused([Finding("x", "is wrong")]),
    MethodNotAllowed: MethodNotAllowed("PUT", ["GET"]),
}


def every_error() -> list[OnefoldError]:
    """One of each error there is, made of placeholders."""
    found = []
    for module in (errors, problems):
        for one in vars(module).values():
            if inspect.isclass(one) and issubclass(one, OnefoldError) and one.__module__ == module.__name__:
                names = list(inspect.signature(one.__init__).parameters.values())[1:]
                if one in MADE:
                    found.append(MADE[one])
                elif issubclass(one, BadArguments):
                    found.append(one([Fault("a", "is wrong")]))
                elif names and names[0].kind is not inspect.Parameter.VAR_POSITIONAL:
                    found.append(one(*(1 if "int" in str(p.annotation) else "x" for p in names)))
    return found


@pytest.mark.parametrize("error", every_error(), ids=lambda one: type(one).__name__)
def test_every_error_is_a_whole_problem(error: OnefoldError) -> None:
    answer = told(error, "/here")
    picture: Any = parse(answer.body)
    assert picture["type"] == f"urn:onefold:{error.code}"
    assert (picture["status"], answer.status) == (error.status, error.status)
    assert picture["title"][0].isupper()
    assert picture["retry"] in ("never", "same")
    assert (picture["instance"], picture["detail"]) == ("/here", str(error))
    known = {"type", "title", "status", "code", "retry", "instance", "detail", "errors", "findings", "run_id"}
    assert picture.keys() <= known


@given(got=st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.lists(st.text())), field=st.text())
def test_no_value_keeps_a_problem_from_being_told(got: Any, field: str) -> None:
    answer = told(BadArguments([Fault(field, "is wrong", got)]), "/here\ud800")
    picture: Any = parse(answer.body)
    assert picture["code"] == "bad_arguments"


def test_what_helps_a_client_stands_in_the_headers() -> None:
    assert (b"allow", b"GET") in told(MADE[MethodNotAllowed], "/").headers
    assert (b"connection", b"close") in told(TooLarge("it", 2, 1), "/").headers
    assert (b"retry-after", b"1") in told(Busy("the queue", 9), "/").headers
    assert (b"www-authenticate", b'Bearer realm="onefold"') in told(errors.Unauthenticated(), "/").headers


def test_to_an_agent_a_fault_is_a_line_a_field() -> None:
    faults = BadArguments([Fault("amount", "must be at most 500", 900), Fault("order_id", "is missing")])
    assert spoken("refund_order", faults) == (
        "refund_order: nothing was started.\n- amount: must be at most 500; sent 900\n- order_id: is missing"
    )
    assert spoken("refund_order", HostRefused("evil.test")).startswith("refund_order: The host 'evil.test'")


def test_only_a_run_that_went_wrong_is_a_failure() -> None:
    base = {"run_id": "run_1", "program": "p"}
    for status in ("running", "waiting", "done"):
        assert failure({**base, "status": status}) is None
    parked = failure({**base, "status": "parked", "error": {"code": "diverged", "message": "step b where a was."}})
    assert isinstance(parked, RunParked)
    assert "step b where a was." in str(parked)
    assert "cancelled." in str(failure({**base, "status": "cancelled"}))


@pytest.mark.parametrize("got", ["v" * 900_000, ["v" * 900_000], {"v" * 900_000: 1}, b"v" * 900_000])
def test_an_answer_does_not_send_back_all_that_came(got: Any) -> None:
    answer = told(BadArguments([Fault("f" * 900_000, "is wrong", got)] * 1_000), "/here")
    assert len(answer.body) < 100_000
    picture: Any = parse(answer.body)
    assert picture["errors"][0]["got"].endswith("…")
    assert len(spoken("tool", BadArguments([Fault("f" * 900_000, "is wrong", got)] * 1_000))) < 100_000


def test_what_came_is_sent_back_as_it_was_where_it_is_short() -> None:
    faults = [Fault("a", "is wrong", got) for got in ("x", 1, 1.5, True, [1, "x"], {"a": 1})]
    picture: Any = parse(told(BadArguments(faults), "/here").body)
    assert [error["got"] for error in picture["errors"]] == ["x", 1, 1.5, True, [1, "x"], {"a": 1}]


async def test_a_process_that_is_no_node_says_how_to_become_one(client: AsyncClient) -> None:
    told = await client.get("/fleet")
    assert (told.status_code, told.json()["code"]) == (404, "no_fleet")
    assert told.json()["detail"].endswith("Give each process a name: --node NAME.")
