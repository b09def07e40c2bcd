"""A Python function as the one thing that a reflex does."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mypy import api
from pydantic import BaseModel, Field

from onefold.reflex import Signal, Task, Write, effect
from onefold.reflex.effects import Effects
from onefold.terms.errors import BadArguments, LoadRefused


class Charge(BaseModel):
    subscription: str
    amount: Decimal = Field(gt=0)


@dataclass(frozen=True)
class Charged:
    reference: str


@dataclass(frozen=True)
class Declined:
    why: str


@dataclass(frozen=True)
class Note:
    text: str
    times: int = 1


@effect("payments.charge", writes=["charge_attempts"])
async def charge(task: Task, order: Charge) -> Charged | Declined:
    task.emit(Write("charge_attempts", "insert", {"subscription": order.subscription}))
    return Declined("no funds") if order.amount > 100 else Charged(task.key)


@charge.preview
def show(order: Charge) -> str:
    return f"charge {order.amount} for {order.subscription}"


@effect("notes.write", writes=[])
def write(task: Task, note: Note) -> list[str]:
    assert threading.current_thread() is not threading.main_thread()
    return [note.text] * note.times


@effect("beat")
async def beat(task: Task) -> None:
    task.emit(Signal("beat", None))


def attempt(emitted: list[Any] | None = None) -> Task:
    kept: list[Any] = [] if emitted is None else emitted
    return Task("k1", datetime(2026, 3, 1, tzinfo=UTC), 1, "studio_42", kept.append)


async def test_an_effect_takes_json_and_gives_json() -> None:
    emitted: list[Any] = []
    given_back = await charge.run(attempt(emitted), {"subscription": "s1", "amount": "9.90"})
    assert given_back == {"type": "Charged", "reference": "k1"}
    assert emitted == [Write("charge_attempts", "insert", {"subscription": "s1"})]
    declined = await charge.run(attempt(), {"subscription": "s1", "amount": "101"})
    assert declined == {"type": "Declined", "why": "no funds"}


async def test_a_plain_function_runs_in_a_thread_and_a_dataclass_is_an_input_too() -> None:
    assert await write.run(attempt(), {"text": "hi", "times": 2}) == ["hi", "hi"]
    assert await write.run(attempt(), {"text": "hi"}) == ["hi"]


async def test_an_effect_may_take_nothing() -> None:
    emitted: list[Any] = []
    assert await beat.run(attempt(emitted), None) is None
    assert await beat.run(attempt(emitted), {}) is None
    assert emitted == [Signal("beat", None)] * 2
    with pytest.raises(BadArguments, match="takes no input"):
        await beat.run(attempt(), {"x": 1})
    assert beat.show({}) is None


@pytest.mark.parametrize(
    "sent, field, problem",
    [
        ({"subscription": "s1", "amount": "-1"}, "amount", "more than 0"),
        ({"subscription": "s1"}, "amount", "missing"),
        ({"subscription": "s1", "amount": 1, "amuont": 2}, "amuont", "is not known"),
        ([], "", "object"),
        (None, "", "object"),
    ],
)
async def test_an_input_that_does_not_fit_is_told_field_by_field(sent: Any, field: str, problem: str) -> None:
    with pytest.raises(BadArguments) as told:
        await charge.run(attempt(), sent)
    with pytest.raises(BadArguments) as shown:
        charge.show(sent)
    assert [fault.field for fault in told.value.faults][:1] == [field]
    assert problem in str(told.value)
    assert str(shown.value) == str(told.value)


async def test_what_it_raises_is_raised() -> None:
    @effect("fails")
    def fails(task: Task) -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"):
        await fails.run(attempt(), None)


async def test_threads_that_never_end_keep_no_other_from_beginning() -> None:
    let_go = threading.Event()

    @effect("hangs")
    def hangs(task: Task) -> None:
        let_go.wait(100)

    hung = [asyncio.create_task(hangs.run(attempt(), None)) for _ in range(40)]  # more than any pool has
    assert await asyncio.wait_for(write.run(attempt(), {"text": "hi"}), 60) == ["hi"]
    for one in hung:
        one.cancel()
    assert all(isinstance(one, asyncio.CancelledError) for one in await asyncio.gather(*hung, return_exceptions=True))
    let_go.set()


async def test_an_answer_that_does_not_fit_is_the_functions_fault() -> None:
    @effect("odd")
    async def odd(task: Task) -> int:
        return "x"  # type: ignore[return-value]

    with pytest.raises(TypeError, match="odd acted, and what it gave does not fit"):
        await odd.run(attempt(), None)


@given(st.text(max_size=20), st.integers(1, 5))
def test_a_preview_sees_the_input_and_does_nothing(text: str, times: int) -> None:
    said: list[Note] = []

    @effect("said")
    async def act(task: Task, note: Note) -> None:
        raise AssertionError("a preview acts")

    @act.preview
    def preview(note: Note) -> str:
        said.append(note)
        return f"{note.text} {note.times}"

    if "\0" not in text and text.isprintable():
        assert act.show({"text": text, "times": times}) == f"{text} {times}"
        assert said == [Note(text, times)]
    assert charge.show({"subscription": "s1", "amount": 5}) == "charge 5 for s1"
    assert write.show({"text": "x"}) is None


# --- at declaration -----------------------------------------------------------------------------------


def no_task(order: Charge) -> None: ...
def bare_task(task, order: Charge) -> None: ...
def no_input_type(task: Task, order) -> None: ...
def no_return(task: Task, order: Charge): ...
def too_many(task: Task, a: Charge, b: Charge) -> None: ...
def strange(task: Task, order: Any = None) -> threading.Thread: ...  # type: ignore[empty-body]
def unknown(task: Task, order: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - it is what the test is about
def nothing() -> None: ...


@pytest.mark.parametrize(
    "function, problem",
    [
        (no_task, "annotated `Task`"),
        (bare_task, "annotated `Task`"),
        (no_input_type, "no annotation for 'order'"),
        (no_return, "no annotation for 'return'"),
        (too_many, "put 'b' into the one input"),
        (strange, "Thread"),
        (unknown, "'Nowhere' cannot be found"),
        (nothing, "annotated `Task`"),
        (Charge, "is no function"),
    ],
)
def test_a_function_that_is_no_effect_is_refused_with_its_place(function: Any, problem: str) -> None:
    with pytest.raises(LoadRefused) as told:
        effect("x")(function)
    assert problem in str(told.value)
    if function is not Charge:
        assert "test_effects.py:" in told.value.findings[0].where


def test_names_and_writes_are_checked() -> None:
    for name in ("", "Upper.case", "a b", "a..b"):
        with pytest.raises(LoadRefused):
            effect(name)(beat.function)
    with pytest.raises(TypeError, match="needs the name"):
        effect(beat.function)  # type: ignore[arg-type]
    with pytest.raises(LoadRefused, match="must be a list"):
        effect("x", writes="table")(beat.function)
    with pytest.raises(LoadRefused, match="no entity"):
        effect("x", writes=[""])(beat.function)
    assert (charge.writes, write.writes, beat.writes) == (("charge_attempts",), (), None)


def test_a_preview_is_plain_and_stands_once() -> None:
    with pytest.raises(LoadRefused, match="two previews"):
        charge.preview(show)

    async def later(note: Note) -> str:
        return ""

    with pytest.raises(LoadRefused, match="plain function"):
        write.preview(later)  # type: ignore[type-var]


def test_effects_go_by_name_and_stand_once() -> None:
    assert set(Effects([charge, write])) == {"payments.charge", "notes.write"}
    with pytest.raises(LoadRefused, match="stands twice"):
        Effects([charge, charge])
    for wrong in (no_task, Charge, "payments.charge"):
        with pytest.raises(LoadRefused, match="is no effect"):
            Effects([wrong])


# --- types ----------------------------------------------------------------------------------------------

PROGRAM = """
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from onefold.reflex import Query, Task, Write, effect, select

@dataclass(frozen=True)
class Order:
    id: str

@effect("orders.ship", writes=["shipments"])
async def ship(task: Task, order: Order) -> str:
    task.emit(Write("shipments", "insert", {"id": order.id}))
    return task.key

@ship.preview
def show(order: Order) -> str:
    return order.id

@effect("orders.plain")
def plain(task: Task, order: Order) -> str:
    return order.id

@effect("orders.beat")
async def beat(task: Task) -> None: ...

@select("orders.open")
async def open_orders(query: Query) -> AsyncIterator[dict[str, Any]]:
    yield {"id": query.params["id"]}

@select("orders.listed")
def listed(query: Query) -> list[Order]:
    return [Order("1")]

due = select.sql("orders.due", "SELECT id FROM due WHERE tenant = :principal", on="env:SHOP_DB")
shown: str = show(Order("1"))
"""
WRONG = """
from onefold.reflex import Query, Task, effect, select
@effect("a")
async def no_task(order: str) -> str: ...
@effect("b", writes=[1])
async def wrong_writes(task: Task) -> None: ...
@effect
async def bare(task: Task) -> None: ...
@select("c")
async def no_query(params: int) -> list[str]: ...
select.sql("d", "SELECT 1")
Query({}, None).params["x"]
"""


def test_what_people_write_is_typed(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    options = ["--strict", "--cache-dir", str(tmp_path / "cache"), "--follow-imports", "silent", "--no-error-summary"]
    told, trouble, _code = api.run([*options, str(tmp_path / "right.py"), str(tmp_path / "wrong.py")])
    lines = [line for line in told.splitlines() if ": error:" in line]
    assert trouble == ""
    assert [line for line in lines if "right.py" in line] == []
    assert {int(line.split(":")[1]) for line in lines if "wrong.py" in line} >= {3, 5, 7, 9, 11, 12}
