"""`onefold.App` as a person meets it: entered, called, mounted, and its blocking twin beside it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import BaseModel

import onefold
from onefold import App, Run, actuator, blocking
from onefold.host import automations, borrow, names, verbs
from onefold.terms.errors import BadArguments, LoadRefused, NotFound, NotOpen, RunFailed, StoreLocked
from tests.guarantees.shop import Accepted, Deposit, bank, make


class Name(BaseModel):
    name: str


async def hello(name: str) -> str:
    if name == "nobody":
        raise ValueError("there is nobody")
    return f"hello {name}"


@actuator
async def greet(run: Run, who: Name) -> str:
    """Say hello."""
    return await run.step(hello, retry=onefold.Retry(attempts=1))(who.name)


@actuator
def greet_slowly(run: blocking.Run, who: Name) -> str:
    """Say hello from a thread."""
    return run.step(hello)(who.name)


class Signed(BaseModel):
    by: str


@actuator
async def sign(run: Run, who: Name) -> str:
    """Wait for a signature."""
    return f"{who.name} signed by {(await run.wait_for_event(Signed)).by}"


def app_of(tmp_path: Path) -> App:
    return App(greet, greet_slowly, sign, bank, store=tmp_path / "store")


async def test_an_app_is_entered_and_called(tmp_path: Path) -> None:
    async with app_of(tmp_path) as app:
        assert await app.call(greet, Name(name="you"), key="k") == "hello you"
        assert await app.call(greet_slowly, Name(name="you")) == "hello you"
        assert await app.deliver(bank, Deposit("d1", "a", 10)) == Accepted(10)
        assert (await app.read(bank, "a")).balance == 10
        assert [row.seq for row in await app.history(bank, "a")] == [1]
        assert await app.actors(bank) == [{"key": "a"}]
        assert [each.status for each in (await app.runs.list()).items] == ["done", "done"]


async def test_a_failed_step_is_raised_with_its_run_step_and_message(tmp_path: Path) -> None:
    async with app_of(tmp_path) as app:
        with pytest.raises(RunFailed) as failed:
            await app.call(greet, Name(name="nobody"))
        assert (failed.value.step, failed.value.kind, failed.value.message) == (
            "hello",
            "ValueError",
            "there is nobody",
        )


async def test_a_receipt_sends_refreshes_and_gives_the_result(tmp_path: Path) -> None:
    async with app_of(tmp_path) as app:
        receipt = await app.start(sign, Name(name="it"), key="k")
        assert (await receipt.refresh(wait="5s")).status == "waiting"
        with pytest.raises(TimeoutError):
            await receipt.result(timeout="1 ms")
        await receipt.send(Signed(by="anna"), key="s")
        assert await receipt.result(timeout="10s") == "it signed by anna"
        assert (await (await app.receipt(receipt.run_id)).refresh()).status == "done"


async def test_giving_up_the_wait_leaves_the_run_going(tmp_path: Path) -> None:
    async with app_of(tmp_path) as app:
        waiting = asyncio.create_task(app.call(sign, Name(name="it"), key="k"))
        receipt = await app.start(sign, Name(name="it"), key="k")
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await receipt.send(Signed(by="anna"))
        assert await receipt.result(timeout="10s") == "it signed by anna"


async def test_another_principal_sees_nothing_of_it(tmp_path: Path) -> None:
    async with app_of(tmp_path) as app:
        anna, bert = app.acting_as("anna"), app.acting_as("bert")
        await anna.deliver(bank, Deposit("d1", "a", 10))
        assert (await bert.read(bank, "a")).balance == 0
        mine = await anna.start(greet, Name(name="x"), key="k")
        theirs = await bert.start(greet, Name(name="x"), key="k")
        assert mine.run_id != theirs.run_id


async def test_a_second_app_on_the_same_folder_is_told_who_holds_it(tmp_path: Path) -> None:
    async with app_of(tmp_path):
        with pytest.raises(StoreLocked):
            async with app_of(tmp_path):
                raise AssertionError("it opened")
    async with app_of(tmp_path) as app:
        assert await app.call(greet, Name(name="again")) == "hello again"


async def test_an_app_that_is_not_open_says_so(tmp_path: Path) -> None:
    app = app_of(tmp_path)
    with pytest.raises(NotOpen):
        await app.call(greet, Name(name="you"))


def test_two_parts_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadRefused, match="stands twice"), App(greet, greet, store="memory:"):
        raise AssertionError("it opened")


def test_a_script_needs_no_await(tmp_path: Path) -> None:
    with app_of(tmp_path) as app:
        assert app.call(greet, Name(name="you"), key="k") == "hello you"
        assert app.deliver(bank, Deposit("d1", "a", 10)) == Accepted(10)
        receipt = app.start(sign, Name(name="it"))
        assert receipt.refresh(wait="5s").status == "waiting"
        receipt.send(Signed(by="anna"))
        assert receipt.result(timeout="10s") == "it signed by anna"
        assert {each.program for each in app.runs.list().items} == {"greet", "sign"}
        with pytest.raises(NotFound):
            app.receipt("run_none")
        with pytest.raises(BadArguments):
            app.acting_as("")


def test_facts_are_pruned_and_replies_swept_with_and_without_await(tmp_path: Path) -> None:
    saved = make(snapshot_every=3)
    with App(saved, greet, store=tmp_path) as app:
        for n in range(8):
            app.deliver(saved, Deposit(f"d{n}", "a", 1))
        whole = app.history(saved, "a")
        pruned = app.prune(saved, "a")
        kept = app.history(saved, "a")
        assert (whole.begins, kept.begins) == (1, pruned.begins)
        assert list(kept) == whole[pruned.facts :]
        assert app.sweep(runs="1 day", replies="1 day", dry_run=True) == app.sweep(runs="1 day", replies="1 day")
        assert app.deliver(saved, Deposit("d0", "a", 1)) == Accepted(1)

    async def again() -> None:
        async with App(saved, greet, store=tmp_path) as app:
            assert (await app.prune(saved, "a")).facts == 0
            assert (await app.history(saved, "a")).begins == pruned.begins
            with pytest.raises(NotFound, match="'nobody'"):
                await app.host.prune_named(saved.name, "nobody", caller=app.caller)
            assert (await app.host.prune_named(saved.name, "a", caller=app.caller)).begins == pruned.begins
            with pytest.raises(BadArguments):
                await app.sweep()
            with pytest.raises(BadArguments):
                await app.sweep(replies="soon")
            with pytest.raises(BadArguments, match=r"^Nothing was swept\. replies: "):
                await app.sweep(replies="5 parsecs")

    asyncio.run(again())


PAIRS = [
    (onefold.App, blocking.App),
    (onefold.Receipt, blocking.Receipt),
    (verbs.Runs, blocking.Runs),
    (verbs.Approvals, blocking.Approvals),
    (verbs.Parked, blocking.Parked),
    (verbs.Blobs, blocking.Blobs),
    (names.Names, names.BlockingNames),
    (borrow.Borrow, blocking.Borrow),
    (borrow.Custody, blocking.Custody),
    (automations.Automations, automations.BlockingAutomations),
]
ONLY_ASYNC = {"asgi", "drain", "host", "parts", "said", "settled", "to_json"}


@pytest.mark.parametrize("first,second", PAIRS, ids=lambda each: each.__module__)
def test_the_two_sets_of_names_are_equal_argument_by_argument(first: type, second: type) -> None:
    def told(of: type) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in dir(of):
            value = inspect.getattr_static(of, name)
            if not name.startswith("_") and inspect.isfunction(value):
                parameters = list(inspect.signature(value).parameters.values())[1:]
                found[name] = [(each.name, each.kind, each.default) for each in parameters]
        return found

    one, two = told(first), told(second)
    for name in ONLY_ASYNC - two.keys():
        one.pop(name, None)
    two.pop("wait_for", None)
    assert one == two


async def test_one_line_puts_it_beside_another_application(tmp_path: Path) -> None:
    async def other(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"other"})

    app = app_of(tmp_path)
    both: Callable[..., Any] = app.asgi(other, at="/onefold")
    async with app:
        transport = httpx2.ASGITransport(app=both, client=("127.0.0.1", 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8600") as client:
            assert (await client.get("/elsewhere")).text == "other"
            assert (await client.get("/onefold/healthz")).json() == {"ok": True}
            called = await client.post("/onefold/tools/greet", json={"name": "you"})
    assert called.json()["result"] == "hello you"


async def test_its_lifespan_opens_and_closes_it(tmp_path: Path) -> None:
    app = app_of(tmp_path)
    to: asyncio.Queue[Any] = asyncio.Queue()
    said: asyncio.Queue[Any] = asyncio.Queue()
    life = asyncio.create_task(app({"type": "lifespan"}, to.get, said.put))
    await to.put({"type": "lifespan.startup"})
    assert (await said.get())["type"] == "lifespan.startup.complete"
    assert await app.call(greet, Name(name="you")) == "hello you"
    await to.put({"type": "lifespan.shutdown"})
    assert (await said.get())["type"] == "lifespan.shutdown.complete"
    await life
    with pytest.raises(NotOpen):
        await app.call(greet, Name(name="you"))


async def test_a_receipt_has_its_verbs_wherever_it_comes_from() -> None:
    """Was wrong once: what `app.runs` gave was the picture alone, and had no `result`."""
    async with App(greet, store="memory:") as app:
        failed = await app.start(greet, Name(name="nobody"))
        with pytest.raises(RunFailed):
            await failed.result()
        again = await app.runs.retry(failed.run_id)
        with pytest.raises(RunFailed):
            await again.result()
        with pytest.raises(RunFailed):
            await (await app.runs.cancel(failed.run_id)).result()
        assert await app.call(greet, Name(name="Ada")) == "hello Ada"
        (latest, *_) = (await app.runs.list(status="done")).items
        assert await latest.result() == "hello Ada"
        assert (await latest.refresh()).status == "done"


def test_a_blocking_receipt_has_its_verbs_wherever_it_comes_from() -> None:
    with App(greet, store="memory:") as app:
        assert app.call(greet, Name(name="Ada")) == "hello Ada"
        (latest,) = app.runs.list().items
        assert latest.result() == "hello Ada"
        assert latest.to_json()["status"] == "done"
        fork = app.runs.fork(latest.run_id, "hello")
        assert fork.result() == "hello Ada"
