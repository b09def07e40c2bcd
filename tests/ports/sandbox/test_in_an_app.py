"""Deployed files as parts of an app: a store with its files, runs that begin runs, a worker that is killed beneath it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import onefold
from onefold.errors import BadArguments, RunFailed
from onefold.ports.sandbox.deployment import Outside
from tests.ports.sandbox import programs
from tests.ports.sandbox.home import TOP, deployed
from tests.ports.test_http import HOST, Provider
from tests.ports.test_http import provider as provider

SOURCE = Path(programs.__file__).read_text()
FAMILY = """
class Go(BaseModel):
    what: str
class Job(BaseModel):
    n: int = 1
@actuator
async def child(run: Run, job: Job) -> int:
    if job.n > 5:
        raise ValueError("too many")
    if job.n == 5:
        return len((await run.wait_for_event(Go)).what)
    return 2 * job.n
@actuator
async def parent(run: Run, job: Job) -> list[str]:
    told = [str(await run.call(child, Job(n=2)))]
    begun = await run.start(child, Job(n=5))
    await begun.send(Go(what="four"))
    told.append(str(await begun.result()))
    other = await run.start(child, Job(n=5), key=f"k-{run.id}")
    told.append((await other.cancel("enough")).status)
    try:
        await run.call(child, Job(n=9))
    except Exception as fault:
        told.append(type(fault).__name__)
    return told
@actuator
async def meddles(run: Run, job: Job) -> list[str]:
    kin, told, once = run._home.children, [], Retry(attempts=1)
    async def show(run_id: str) -> None:
        await kin.show(run_id)
    async def send(run_id: str) -> None:
        await kin.send(run_id, "Go", {}, "k")
    async def cancel(run_id: str) -> None:
        await kin.cancel(run_id, None)
    async def begin(name: str) -> None:
        await kin.begin(type("Other", (), {"name": name}), "null", "k", False)
    for act, places in ((show, RUNS), (send, RUNS), (cancel, RUNS), (begin, ["ours"])):
        for place in places:
            try:
                await run.step(act, retry=once)(place)
            except Exception as fault:
                told.append(fault.kind)
    return told
"""


async def call(app: onefold.App, actuator: Any, **arguments: Any) -> Any:
    return await app.call(actuator, await actuator.checked(arguments))


async def rested(app: onefold.App, run: str, *statuses: str) -> onefold.Receipt[Any]:
    receipt = await app.receipt(run)
    while receipt.status not in statuses:
        receipt = await receipt.refresh(wait="5s")
    return receipt


@pytest.mark.parametrize("store", ["sqlite", "memory:"])
async def test_a_refund_is_agreed_to_and_paid_once(store: str, tmp_path: Path) -> None:
    place = store if store == "memory:" else tmp_path / "data"
    async with deployed(SOURCE) as deployment, onefold.App(*deployment.actuators, store=place) as app:
        refund = next(one for one in deployment.actuators if one.name == "refund_order")
        begun = await app.start(refund, await refund.checked({"order_id": "7", "amount": "140"}), key="order-7")
        waiting = await rested(app, begun.run_id, "waiting")
        assert waiting.waits[0].message == "Pay back 140?"
        await app.approvals.approve(begun.run_id, "manager", by="ann")
        done = await rested(app, begun.run_id, "done", "failed", "parked")
        paid = await done.result()
        assert paid["refund_id"].startswith(f"re_7_160/~/refund_order/{begun.run_id}/s~10~1pay_back/1/")
        assert await call(app, refund, order_id="7", amount="140") == paid
        again = await app.start(refund, await refund.checked({"order_id": "7", "amount": "140"}), key="order-7")
        assert again.run_id == begun.run_id
        kinds = [row.step for row in await app.runs.journal(begun.run_id)]
        assert kinds == ["db.fetch_one", "manager", *["double"] * 5, "pay_back", "db.execute"]


async def test_arguments_are_checked_by_the_file_s_own_model_before_a_row_exists() -> None:
    async with deployed(SOURCE) as deployment, onefold.App(*deployment.actuators, store="memory:") as app:
        refund = next(one for one in deployment.actuators if one.name == "refund_order")
        for arguments, field in (
            ({"order_id": "7", "amount": "900"}, "amount"),
            ({"order_id": "7"}, "amount"),
            ({"order_id": "7", "amount": "1", "more": 1}, "more"),
            ([], ""),
        ):
            with pytest.raises(BadArguments) as refused:
                await refund.checked(arguments)
            assert refused.value.faults[0].field == field
            assert str(refused.value) == said(arguments)
        assert (await app.runs.list()).items == []


def said(arguments: Any) -> str:
    """What the same file says in this process."""
    with pytest.raises(BadArguments) as refused:
        programs.refund_order.check(arguments)
    return str(refused.value)


async def test_a_field_left_out_or_sent_as_its_default_is_the_same_call() -> None:
    async with deployed(SOURCE) as deployment, onefold.App(*deployment.actuators, store="memory:") as app:
        refund = next(one for one in deployment.actuators if one.name == "refund_order")
        for note in ({}, {"note": "none"}):
            input = await refund.checked({"order_id": "7", "amount": "1", **note})
            await app.call(refund, input, key="once")
        with pytest.raises(onefold.errors.KeyConflict):
            await app.call(refund, await refund.checked({"order_id": "7", "amount": "1", "note": "x"}), key="once")


async def test_runs_of_a_file_begin_others_of_it() -> None:
    async with (
        deployed(TOP + "RUNS = []\n" + FAMILY) as deployment,
        onefold.App(*deployment.actuators, store="memory:") as app,
    ):
        parent = next(one for one in deployment.actuators if one.name == "parent")
        assert await call(app, parent) == ["4", "4", "cancelled", "RunFailed"]


async def test_runs_of_other_files_are_out_of_reach() -> None:
    @onefold.actuator
    async def ours(run: onefold.Run) -> None:
        await run.sleep("1 day")

    async with onefold.App(ours, store="memory:") as first:
        key = (await first.start(ours, None, key="secret")).run_id
    async with (
        deployed(TOP + f"RUNS = [{key!r}, 'run_nothing']\n" + FAMILY) as deployment,
        onefold.App(ours, *deployment.actuators, store="memory:") as app,
    ):
        receipt = await app.start(ours, None, key="secret")
        assert receipt.run_id == key
        meddles = next(one for one in deployment.actuators if one.name == "meddles")
        assert await call(app, meddles) == ["NotFound"] * 7
        assert (await app.receipt(key)).status in ("running", "waiting")


async def test_a_worker_killed_beneath_an_app_is_replaced() -> None:
    body = """
@actuator
async def slow(run: Run) -> str:
    return await run.step(act)()
async def act(step: Step) -> str:
    await asyncio.sleep(0.3)
    return step.key
"""
    async with deployed(TOP + body) as deployment, onefold.App(*deployment.actuators, store="memory:") as app:
        (slow,) = deployment.actuators
        begun = await app.start(slow)
        while not deployment.warm:  # noqa: ASYNC110 - its start has no event
            await asyncio.sleep(0.01)
        worker = deployment._worker
        assert worker is not None
        while not worker._serving:  # noqa: ASYNC110 - nor has its first pass
            await asyncio.sleep(0.01)
        os.kill(worker._process.pid, signal.SIGKILL)
        assert await begun.result() == f"~/slow/{begun.run_id}/s~10~1act"
        assert deployment._worker is not worker


async def test_a_closing_deployment_lets_its_passes_end() -> None:
    body = """
@actuator
async def slow(run: Run) -> str:
    return await run.step(act)()
async def act() -> str:
    await asyncio.sleep(0.3)
    return "done"
"""
    async with deployed(TOP + body) as deployment, onefold.App(*deployment.actuators, store="memory:") as app:
        begun = await app.start(deployment.actuators[0])
        while not (deployment.warm and deployment._worker and deployment._worker._serving):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
        await deployment.aclose(grace_s=30)
        assert (await app.receipt(begun.run_id)).status == "done"


class Word(BaseModel):
    """An event, as the file itself has it."""

    text: str


async def test_long_values_are_there_in_the_next_pass() -> None:
    """They stand in the blobs, and in the rows only by their digest."""
    body = """
class Word(BaseModel):
    text: str
@actuator
async def long(run: Run, word: Word) -> list[int]:
    first = await run.step(grow)(word.text)
    given = await run.wait_for_event(Word)
    second = await run.wait_for_event(Word)
    return [len(word.text), len(first), len(given.text), len(second.text)]
def grow(text: str) -> str:
    return text * 2
"""
    async with deployed(TOP + body) as deployment, onefold.App(*deployment.actuators, store="memory:") as app:
        (long,) = deployment.actuators
        begun = await app.start(long, await long.checked({"text": "x" * 10_000}))
        await rested(app, begun.run_id, "waiting")
        for size in (20_000, 30_000):
            await begun.send(Word(text="z" * size))
        assert await begun.result() == [10_000, 20_000, 20_000, 30_000]


async def test_an_error_of_the_program_is_the_caller_s() -> None:
    async with deployed(SOURCE) as deployment, onefold.App(*deployment.actuators, store="memory:") as app:
        fails = next(one for one in deployment.actuators if one.name == "fails")
        with pytest.raises(RunFailed, match="no 3"):
            await call(app, fails, n=3)


# --- the way out --------------------------------------------------------------------------------------------

PAYS = """
@actuator(capabilities=["https://ORIGIN", "env:TOKEN"])
async def pays(run: Run) -> str:
    return await run.step(pay)()
async def pay(step: Step) -> str:
    import httpx2
    headers = {"Idempotency-Key": step.key, "Authorization": os.environ["TOKEN"]}
    async with httpx2.AsyncClient(timeout=10) as http:
        return (await http.post("https://ORIGIN/v1", headers=headers, json={"bill": 1})).text
"""


async def test_a_declared_host_is_reached_with_its_own_name_and_the_step_s_key(
    provider: Provider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def here(name: str, port: int) -> Sequence[str]:
        assert name == HOST
        return ["127.0.0.1"]

    outside = Outside(here, lambda address: True, str(tmp_path / f"{HOST}.pem"))
    source = TOP + PAYS.replace("ORIGIN", f"{HOST}:{provider.port}")
    async with (
        deployed(source, environment={"TOKEN": "Bearer canary"}, outside=outside) as deployment,
        onefold.App(*deployment.actuators, store="memory:") as app,
    ):
        assert await call(app, deployment.actuators[0]) == '{"ok": true}'
    ((line, headers, body),) = provider.asked
    assert line == "POST /v1 HTTP/1.1"
    assert headers["idempotency-key"].startswith("~/pays/run_")
    assert headers["authorization"] == "Bearer canary"
    assert body == b'{"bill":1}'
    assert "canary" not in caplog.text
