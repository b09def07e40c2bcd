"""A run that is taken along is the same run: its journal, its open waits, what came early, and long values too."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec import json
from pydantic import BaseModel

from onefold import Failed, Retry, Run, actuator, testing
from onefold.actuators.carried import Rested, Returned
from onefold.actuators.history import state_of
from onefold.actuators.replay import replayed
from onefold.actuators.state import State
from onefold.host.caller import Caller
from onefold.serve.runs import journal_row
from onefold.terms.codec import canonical, parse
from onefold.terms.errors import BadArguments

LONG = "x" * 100_000
CALLER = Caller(None, frozenset({"call", "read", "operate"}))


class Order(BaseModel):
    text: str


class Early(BaseModel):
    text: str


class Late(BaseModel):
    text: str


async def give(text: str) -> str:
    return text


async def fail(text: str) -> str:
    raise ValueError(text)


@actuator
async def everything(run: Run, order: Order) -> str:
    """A step, its failures, an event, a timeout, an approval, and waits that stay open."""
    text = await run.step(give)(order.text)
    try:
        await run.step(fail, retry=Retry(attempts=2, first="1 second"))(text[:3])
    except Failed:
        await run.sleep("1 minute")
    await run.wait_for_event(Late, timeout="1 minute")
    await run.wait_for_approval("boss", "?", notify="chef", timeout=None, offer=Late(text="draft"))
    run.random.random()
    waits = [run.wait_for_event(Late), run.step(fail, retry=Retry(attempts=9, first="1 hour"))(str(run.uuid()))]
    await asyncio.gather(*waits)
    return text


async def test_what_is_taken_along_is_the_run_as_it_stood() -> None:
    async with testing.open(everything) as app:
        receipt = await app.start(everything, Order(text=LONG))
        await receipt.send(Early(text=LONG))
        await app.clock.advance(timedelta(minutes=5))
        await app.approve(receipt, "boss", by="anna", comment="go", value={"text": "edited"})
        await app.clock.advance(timedelta(minutes=5))
        host = app._stage.host
        rows, history = await host.run_history(receipt.run_id, caller=CALLER)
        told = parse(canonical({"items": [journal_row(row) for row in rows], "history": history}), "it")
        read = state_of(told["history"], told["items"])
        whole: State = await host._taken(receipt.run_id, CALLER)
        kinds = {row.kind for row in rows}
    assert kinds == {"step", "retry", "again", "failed", "due", "approved"}
    names = "run program key principal seed input begins round open kept returned".split()
    for name in names:
        had = getattr(whole, name)
        if name == "input":
            assert json.decode(read.input) == json.decode(had)
        else:
            assert json.decode(json.encode(getattr(read, name))) == json.decode(json.encode(had)), name
    assert json.decode(json.encode(list(read.journal))) == json.decode(json.encode(list(whole.journal)))
    assert await replayed(read, everything) == await replayed(whole, everything)
    assert isinstance(await replayed(read, everything), Rested | None)


async def test_a_run_that_has_ended_ends_again() -> None:
    @actuator
    async def short(run: Run) -> str:
        """Done at once."""
        return await run.step(give)(str(run.uuid()))

    async with testing.open(short) as app:
        receipt = await app.start(short)
        value = await receipt.result()
        rows, history = await app._stage.host.run_history(receipt.run_id, caller=CALLER)
        items = [journal_row(row) for row in rows]
    ended = await replayed(state_of(history, items), short)
    assert isinstance(ended, Returned)
    assert json.decode(ended.result) == value, "a UUID of the run is the same one"
    for broken in ({**history, "entries": []}, {**history, "entries": [{"type": "Odd"}]}, {"run_id": 1}):
        with pytest.raises(BadArguments):
            state_of(broken, items)
