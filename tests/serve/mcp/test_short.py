"""The short way and the long one give the same answers: to sound calls, and to broken ones."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.actuators.receipt import Trouble, WaitShown
from onefold.serve import Front, asgi_app
from onefold.serve.mcp import agents
from onefold.serve.mcp.short import Plain, plain
from onefold.terms.codec import canonical, parse
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import NOW, Outcome, waiting_for_manager
from tests.serve.mcp.wire import META, TASKS, envelope
from tests.serve.raw import Asgi

Headers = list[tuple[bytes, bytes]]
Case = tuple[Any, Headers]

HEADERS: Headers = [
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
    (b"mcp-protocol-version", b"2026-07-28"),
    (b"mcp-method", b"tools/call"),
    (b"mcp-name", b"refund_order"),
]


def body(**params: Any) -> Any:
    given = {"name": "refund_order", "arguments": {"order_id": "8", "amount": 40}, "_meta": envelope(), **params}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": given}


def named(tool: str) -> Headers:
    return [(name, tool.encode() if name == b"mcp-name" else value) for name, value in HEADERS]


async def answer(front: Front, case: Case, path: str = "/mcp") -> tuple[int, bytes, Any]:
    sent, headers = case
    call = await Asgi(front, "POST", path, body=canonical(sent), headers=headers).ended()
    kind = call.headers.get(b"content-type", b"").partition(b";")[0]
    return call.status, kind, parse(call.body) if kind == b"application/json" and call.body else call.body


class Both:
    """Two servers over two hosts that are alike; one of them has only the long way."""

    def __init__(self, outcome: Outcome | None = None) -> None:
        self.hosts = (FakeHost(), FakeHost())
        for host in self.hosts:
            if outcome is not None:
                host.outcomes["refund_order"] = host.outcomes["slow_report"] = lambda _: outcome
        self.short, self.long = (asgi_app(host) for host in self.hosts)

    async def ask(self, case: Case, path: str = "/mcp") -> list[tuple[int, bytes, Any]]:
        first = await answer(self.short, case, path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(agents, "plain", lambda scope, body: None)
            second = await answer(self.long, case, path)
        return [first, second]

    async def close(self) -> None:
        await self.short.aclose()
        await self.long.aclose()


CALLS: dict[str, Case] = {
    "a call": (body(), HEADERS),
    "a text as id": (body() | {"id": "seven"}, HEADERS),
    "no arguments": (body(name="slow_report"), named("slow_report")),
    "a key": (body(_meta=envelope(**{"onefold/idempotencyKey": "k"})), HEADERS),
    "an empty key": (body(_meta=envelope(**{"onefold/idempotencyKey": ""})), HEADERS),
    "a key in the header": (body(), [*HEADERS, (b"idempotency-key", b'"k"')]),
    "bad arguments": (body(arguments={"order_id": "8", "amount": 900, "x": None}), HEADERS),
    "a client that does tasks": (body(_meta=envelope(TASKS)), HEADERS),
    "a task": (body(name="slow_report", arguments={}, _meta=envelope(TASKS)), named("slow_report")),
    "a run looked at": (body(name="get_run", arguments={"run_id": "run_x"}), named("get_run")),
    "runs listed": (body(name="list_runs", arguments={"limit": 3}), named("list_runs")),
    "meta of somebody": (body(_meta=envelope(**{"example.com/x": [1, {"y": None}]})), HEADERS),
}
OUTCOMES = {
    "done": Outcome(result={"type": "Refunded", "refund_id": "ä€😀"}),
    "null": Outcome(result=None),
    "waiting": waiting_for_manager(),
    "asleep": Outcome("waiting", waits=(WaitShown("sleep", "nap", NOW, "c", NOW + 30_000),)),
    "failed": Outcome("failed", error=Trouble("step_failed", "Http: 502", "pay", 5)),
    "parked": Outcome("parked", error=Trouble("diverged", "step b where a was")),
    "cancelled": Outcome("cancelled"),
}


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_sound_calls_are_answered_alike(kind: str, outcome: str) -> None:
    both = Both(OUTCOMES[outcome])
    first, second = await both.ask(CALLS[kind])
    assert first == second
    assert first[0] == 200
    assert [len(host.acted) for host in both.hosts] in ([0, 0], [1, 1])
    assert plain({"headers": CALLS[kind][1]}, CALLS[kind][0]) is not None
    await both.close()


# --- broken on purpose ---------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(TEXT, inner, max_size=2)),
    max_leaves=4,
)
PLACES: list[tuple[str, ...]] = [
    ("jsonrpc",),
    ("id",),
    ("method",),
    ("params",),
    ("extra",),
    ("params", "name"),
    ("params", "arguments"),
    ("params", "inputResponses"),
    ("params", "requestState"),
    ("params", "task"),
    ("params", "_meta"),
    ("params", "_meta", "progressToken"),
    ("params", "_meta", f"{META}protocolVersion"),
    ("params", "_meta", f"{META}clientInfo"),
    ("params", "_meta", f"{META}clientInfo", "name"),
    ("params", "_meta", f"{META}clientInfo", "title"),
    ("params", "_meta", f"{META}clientInfo", "icons"),
    ("params", "_meta", f"{META}clientCapabilities"),
    ("params", "_meta", f"{META}clientCapabilities", "extensions"),
    ("params", "_meta", f"{META}clientCapabilities", "extensions", "a/b"),
    ("params", "_meta", f"{META}clientCapabilities", "elicitation"),
    ("params", "_meta", f"{META}clientCapabilities", "roots"),
    ("params", "_meta", f"{META}clientCapabilities", "sampling"),
    ("params", "_meta", f"{META}clientCapabilities", "experimental"),
    ("params", "_meta", f"{META}logLevel"),
    ("params", "_meta", "onefold/idempotencyKey"),
]
NEAR: list[Any] = [
    "2.0",
    "2025-11-25",
    "tools/list",
    "slow_report",
    "refund_order ",
    "nightly",
    {},
    {"form": {}},
    {"form": {}, "url": {}},
    {"form": 1},
    {"name": "x", "version": "1"},
    {"name": 1, "version": "1"},
    {"a/b": {}},
    {"a/b": 1},
    0,
    1.0,
    True,
    2**53,
    "debug",
]
VALUES: list[bytes] = [
    b"",
    b"text/plain",
    b"*/*",
    b"application/*",
    b"text/event-stream",
    b"application/json;q=0.5",
    b"application/json; charset=utf-8",
    b"APPLICATION/JSON",
    b" application/json",
    b"2025-11-25",
    b"2031-01-01",
    b"tools/list",
    b"Tools/Call",
    b"slow_report",
    b"refund_order ",
    b"=?base64?cmVmdW5kX29yZGVy?=",
    b"\xff",
]


@st.composite
def broken(draw: st.DrawFn) -> Case:
    """A sound call with one to three things changed, taken away or said twice."""
    sent, headers = copy.deepcopy(body()), list(HEADERS)
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            change(sent, draw(st.sampled_from(PLACES)), draw(st.one_of(st.sampled_from(NEAR), JSON, st.just(...))))
            continue
        name = draw(st.sampled_from([name for name, _ in HEADERS] + [b"mcp-param-x"]))
        how = draw(st.sampled_from(["leave out", "twice", "other"]))
        if how == "twice":
            headers.append((name, draw(st.sampled_from(VALUES))))
        else:
            headers = [(known, value) for known, value in headers if known != name]
            if how == "other":
                headers.append((name, draw(st.sampled_from(VALUES))))
    return sent, headers


def change(sent: Any, place: tuple[str, ...], value: Any) -> None:
    """Put a value somewhere in a request, or take away what is there; nothing where the way is gone."""
    for part in place[:-1]:
        sent = sent.get(part) if isinstance(sent, dict) else None
    if isinstance(sent, dict):
        if value is ...:
            sent.pop(place[-1], None)
        else:
            sent[place[-1]] = copy.deepcopy(value)


def run(work: Callable[[], Any]) -> None:
    with asyncio.Runner() as runner:
        runner.run(work())


@settings(max_examples=250, deadline=None)
@given(cases=st.lists(broken(), min_size=1, max_size=8))
def test_broken_calls_are_answered_alike(cases: list[Case]) -> None:
    async def ask_all() -> None:
        both = Both()
        for case in cases:
            first, second = await both.ask(case)
            assert first == second, case
        assert [one[:3] for one in both.hosts[0].acted] == [one[:3] for one in both.hosts[1].acted]
        await both.close()

    run(ask_all)


async def test_an_unknown_tool_and_one_of_another_address_take_the_long_way() -> None:
    both = Both()
    for tool in ("nightly", "nowhere"):
        first, second = await both.ask((body(name=tool), named(tool)))
        assert first == second
        assert first[2]["error"]["code"] == -32602
    first, second = await both.ask((body(), HEADERS), "/tools/slow_report/mcp")
    assert first == second
    await both.close()


def test_what_is_plain_is_read_as_it_is() -> None:
    given = plain({"headers": HEADERS}, body())
    assert given == Plain(1, "refund_order", {"order_id": "8", "amount": 40}, envelope())
