"""Beside another application: reflexes run for as long as the server does, and their doors stand below the mount."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2

import onefold
from onefold.reflex import Signal
from tests.host.automated import Effect, automated, reflex

GREET = reflex("greet", on={"fact": {"signal": "go"}}, effect={"name": "thank", "input": {"$": "fact.payload"}})


async def other(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"other"})


async def test_one_line_mounts_the_doors_of_facts_and_the_driver_runs_beside(tmp_path: Path) -> None:
    done = asyncio.Event()
    effect = Effect(does=lambda task, input: done.set())
    app = onefold.App(automated(GREET, effects=[effect]), store=tmp_path)
    both = app.asgi(other, at="/onefold")
    async with app:
        transport = httpx2.ASGITransport(app=both, client=("127.0.0.1", 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8600") as client:
            fact = {"kind": "signal", "name": "go", "payload": {"n": 1}}
            told = await client.post("/onefold/facts", json=fact)
            assert (told.status_code, told.json()["duplicate"]) == (202, False)
            await asyncio.wait_for(done.wait(), 60)
            page = (await client.get("/onefold/console/reflexes/greet")).text
            assert 'href="/onefold/console/reflex-runs/reflex_run_1"' in page
            assert (await client.get("/elsewhere")).text == "other"


def test_a_script_without_await_is_driven_too(tmp_path: Path) -> None:
    effect = Effect()
    with onefold.App(automated(GREET, effects=[effect]), store=tmp_path) as app:
        fact = app.ingest(Signal("go", {"n": 2}))
        while not (runs := app.reflexes.runs("greet").items) or runs[0].state != "settled":
            pass
        assert app.reflexes.explain(runs[0].id)[-1].id == fact.id
    assert [input for *_, input in effect.seen] == [{"n": 2}]


async def test_a_slow_effect_keeps_no_fact_and_no_clock_of_others_waiting(tmp_path: Path) -> None:
    slow, quick = asyncio.Event(), asyncio.Event()

    class Slow(Effect):
        async def run(self, task: Any, input: Any, /) -> Any:
            await slow.wait()

    sleeps = reflex("sleeps", on={"fact": {"signal": "slow"}}, effect={"name": "slow"})
    effect = Effect(does=lambda task, input: quick.set())
    async with onefold.App(automated(GREET, sleeps, effects=[effect, Slow("slow")]), store=tmp_path) as app:
        await app.ingest(Signal("slow", {}))
        await asyncio.sleep(0)
        await app.ingest(Signal("go", {}))
        await asyncio.wait_for(quick.wait(), 60)
        assert not slow.is_set()
        slow.set()
