"""A run that is started with a delay is committed at once, and begins when its time has come: not before, and after any crash."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from pydantic import BaseModel

from onefold import Run, actuator, testing
from onefold.errors import BadArguments, KeyConflict, RunCancelled
from onefold.testing import Durable, Stuck
from tests.guarantees.conftest import Stages


class Order(BaseModel):
    number: str = "7"


@actuator(tool=False)
async def when(run: Run, order: Order) -> str:
    """Says when it ran."""
    return run.now().isoformat()


@actuator(tool=False)
async def at_once(run: Run) -> str:
    """Ends without an act."""
    return "done"


DAY_MS = 86_400_000


async def test_it_begins_when_its_time_has_come_on_every_store(stages: Stages) -> None:
    stage = await stages(when)
    caller = stage.caller()
    started = await stage.host.start_checked(when, Order(), key="k", caller=caller, after_ms=DAY_MS)
    run = started.receipt.run_id
    await stage.settle()
    began = stage.clock.now()
    await stage.advance("23 hours")
    assert (await stage.host.receipt(run, caller=caller)).status == "running"
    await stage.crash()
    await stage.advance("59 minutes")
    assert await stage.host.run_journal(run, caller=caller) == []
    assert (await stage.host.receipt(run, caller=caller)).status == "running"
    await stage.advance("2 minutes")
    shown = (await stage.host.receipt(run, caller=caller)).to_json()
    assert shown["status"] == "done"
    ran = datetime.fromisoformat(str(shown["result"])).timestamp() * 1000
    assert began + DAY_MS <= ran <= began + DAY_MS + 1


def test_a_delay_is_a_duration_and_no_part_of_what_a_key_stands_for(durable: Durable) -> None:
    app = durable(when, at_once)
    for delay in ("soon", "-1 day", timedelta(days=-1)):
        with pytest.raises(BadArguments, match="delay"):
            app.start(when, Order(), delay=delay)
    first = app.start(when, Order(), key="k", delay="1 day")
    assert app.start(when, Order(), key="k").run_id == first.run_id
    assert app.start(when, Order(), key="k", delay=timedelta(days=9)).run_id == first.run_id
    with pytest.raises(KeyConflict):
        app.start(when, Order(number="8"), key="k", delay="1 day")
    app.clock.advance("1 day")
    assert first.result() == (app.clock.now()).isoformat()


def test_what_would_end_at_once_waits_for_its_time_too(durable: Durable) -> None:
    app = durable(at_once)
    assert app.start(at_once).status == "done"
    later = app.start(at_once, delay="1 hour")
    assert later.status == "running"
    with pytest.raises(Stuck, match=r"its next alarm at 2026-01-01T01:00:00Z"):
        later.result()
    app.clock.advance("1 hour")
    assert later.result() == "done"


def test_a_run_that_is_cancelled_before_its_time_never_begins(durable: Durable) -> None:
    app = durable(when)
    receipt = app.start(when, Order(), delay="1 day")
    assert receipt.cancel("not any more").status == "cancelled"
    app.clock.advance("2 days")
    with pytest.raises(RunCancelled):
        receipt.result()
    assert app.runs.journal(receipt.run_id) == []


def test_killed_anywhere_it_begins_once_and_not_before_its_time() -> None:
    for app in testing.every_crash(when):
        began = app.clock.now()
        receipt = app.start(when, Order(), key="k", delay="1 hour")
        app.clock.advance("59 minutes")
        assert app.receipt(receipt.run_id).status == "running"
        app.clock.advance("2 minutes")
        told = datetime.fromisoformat(app.receipt(receipt.run_id).result())
        assert told >= began + timedelta(hours=1)
