"""A plain function has the same verbs, in a thread of its own, replayed the same way."""

from __future__ import annotations

import inspect
import threading
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from onefold.actuators import Approved, Expired, Rejected, Retry, actuator
from onefold.actuators import blocking as plain
from onefold.actuators import run as awaited
from onefold.actuators.database import Database
from onefold.actuators.executing import run_pass
from onefold.kernel.port import Step
from onefold.store.contract import Tx
from onefold.terms.errors import StepFailed, Suspended
from tests.actuators.home import Killed, World, until

SEEN: list[Any] = []
TABLE = ["CREATE TABLE refunds (id TEXT PRIMARY KEY, amount TEXT)"]


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    SEEN.clear()
    before = threading.active_count()
    yield
    assert threading.active_count() <= before + 4, "a thread was left behind"


class Order(BaseModel):
    id: str
    amount: int = 5


async def pay(step: Step, order: str, amount: int) -> str:
    SEEN.append((step.key, order, amount))
    return f"paid {order}"


def insert(tx: Tx, id: str) -> int:
    return tx.execute("INSERT INTO refunds VALUES (:id, '1')", id=id)


def whole(run: plain.Run, order: Order) -> list[str]:
    """Use every verb."""
    told = [run.id, str(run.key), run.now().isoformat(), str(run.uuid()), f"{run.random.random():.4f}"]
    match run.wait_for_approval("manager", f"Pay {order.amount}?", notify="m", timeout="1 day"):
        case Approved(by=by):
            told.append(f"approved by {','.join(by)}")
        case Rejected() | Expired():
            told.append("no")
    told.append(run.step(pay)(order.id, amount=order.amount))
    run.sleep("1 hour")
    run.sleep_until(run.now() + timedelta(hours=1))
    told.append(str(run.db.execute("INSERT INTO refunds VALUES (:id, '1')", id=order.id)))
    told.append(str(run.db.step(insert)("other")))
    told.append(str(run.db.fetch("SELECT id FROM refunds ORDER BY id")))
    told.append(str(run.db.fetch_one("SELECT id FROM refunds WHERE id = :id", id="nobody")))
    told.append(run.wait_for_event(Order).id)
    told.append(run.now().isoformat())
    return told


def world_of(function: Any, input: Any = None, **options: Any) -> World:
    world = World(actuator(**options)(function), input, key="k")
    return world


async def test_every_verb_works_without_await() -> None:
    world = world_of(whole, Order(id="7"), migrations=TABLE)
    world.send("Order", b'{"id":"sent"}')
    world.people = [lambda w: bool(w.decide("manager", True))]
    await world.play()
    assert world.result[:3] == ["run_1", "k", "2027-01-15T08:00:00+00:00"]
    assert world.result[5:] == [
        "approved by anna",
        "paid 7",
        "1",
        "1",
        "[{'id': '7'}, {'id': 'other'}]",
        "None",
        "sent",
        "2027-01-15T10:00:00+00:00",
    ]
    assert world.passes == 5
    assert len(SEEN) == 1


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("kill_at", range(2, 16, 2))
async def test_killed_anywhere_it_pays_once(kill_at: int, before: bool) -> None:
    world = world_of(whole, Order(id="7"), migrations=TABLE)
    world.send("Order", b'{"id":"sent"}')
    world.people = [lambda w: bool(w.decide("manager", True))]
    try:
        await world.survive(kill_at, before=before)
    except Killed:
        world.restart()
    if world.state.closed == {} and not world.people:
        world.people = [lambda w: bool(w.decide("manager", True))]
    await world.play()
    assert world.result[5:7] == ["approved by anna", "paid 7"]
    assert len(set(SEEN)) == 1
    assert list(world.rows.tables.execute("SELECT count(*) FROM refunds")) == [(2,)]


async def test_suspended_unwinds_the_thread_and_its_finally_blocks() -> None:
    def main(run: plain.Run) -> str:
        try:
            run.sleep("1 hour")
        except Exception:  # noqa: BLE001 - what must not catch it
            SEEN.append("caught")
        finally:
            if not SEEN:
                SEEN.append(threading.current_thread().name)
                for verb in (lambda: run.step(pay)("late", 1), lambda: run.sleep("1 s"), run.uuid):
                    with pytest.raises(Suspended):
                        verb()
        return "done"

    world = world_of(main)
    await world.one_pass()
    assert SEEN == ["run run_1"]
    assert world.state.status == "waiting"
    for thread in threading.enumerate():
        if thread.name == "run run_1":
            thread.join(60)  # it has told its end, and is about to be gone
            assert not thread.is_alive()
    await world.play()
    assert world.result == "done"


async def test_a_run_cancelled_while_its_thread_is_at_work_ends_quietly() -> None:
    going = threading.Event()

    def main(run: plain.Run) -> str:
        host.call_soon_threadsafe(world.cancel)
        going.wait(60)
        with pytest.raises(Suspended):
            run.sleep("1 s")
        SEEN.append("seen")
        return "x"

    import asyncio

    host = asyncio.get_running_loop()
    world = world_of(main)
    playing = asyncio.create_task(world.one_pass())
    await until(lambda: world.state.status == "cancelled")
    going.set()
    await playing
    assert SEEN == ["seen"]
    assert world.state.status == "cancelled"


async def test_what_the_function_raises_fails_the_run() -> None:
    def main(run: plain.Run) -> str:
        raise LookupError("nothing there")

    world = world_of(main)
    await world.play()
    assert world.state.trouble is not None
    assert (world.state.trouble.kind, world.state.trouble.message) == ("LookupError", "nothing there")


async def test_a_failed_step_is_raised_where_it_was_called() -> None:
    async def broken() -> None:
        raise ConnectionError("down")

    def main(run: plain.Run) -> str:
        try:
            run.step(broken, retry=Retry(attempts=2))()
        except StepFailed as failed:
            return f"{failed.kind} {failed.attempts}"
        return "?"

    world = world_of(main)
    await world.play()
    assert world.result == "ConnectionError 2"


async def test_arguments_are_checked_at_the_call() -> None:
    def main(run: plain.Run) -> list[str]:
        told = []
        for call in (
            lambda: run.step(pay)("x"),  # type: ignore[call-arg]
            lambda: run.sleep("soon"),
            lambda: run.wait_for_approval("m", "", notify="m", timeout=None),
        ):
            try:
                call()
            except Exception as wrong:  # noqa: BLE001 - what is told
                told.append(type(wrong).__name__)
        return told

    world = world_of(main)
    await world.play()
    assert world.result == ["TypeError", "BadArguments", "ValueError"]
    assert not len(world.state.journal)


async def test_another_thread_may_not_use_the_run() -> None:
    def main(run: plain.Run) -> list[str]:
        told: list[str] = []

        def other() -> None:
            try:
                run.sleep("1 s")
            except RuntimeError as wrong:
                told.append(str(wrong))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return told

    world = world_of(main)
    await world.play()
    assert world.result == ["`run` was used in another thread; only the function's own thread may, or replay differs"]


async def test_forty_functions_that_wait_hold_up_no_step() -> None:
    import asyncio

    def where(n: int) -> int:
        return n

    def main(run: plain.Run) -> int:
        return run.step(where)(1) + run.step(where)(2)

    made = actuator(main)
    worlds = [World(made) for _ in range(40)]
    await asyncio.gather(*(world.play() for world in worlds))
    assert {world.result for world in worlds} == {3}


async def test_the_step_order_is_checked_on_replay_too() -> None:
    def one(run: plain.Run) -> str:
        run.step(pay)("a", 1)
        run.sleep("1 hour")
        return "x"

    def two(run: plain.Run) -> str:
        run.step(pay)("b", 1)
        run.sleep("1 hour")
        return "x"

    world = World(actuator(name="order")(one))
    await world.play(until=lambda w: w.state.status == "waiting")
    world.actuator = actuator(name="order")(two)
    world.restart()
    await world.play()
    assert world.state.status == "parked"


async def test_a_drained_pass_leaves_its_thread_suspended() -> None:
    import asyncio

    def main(run: plain.Run) -> str:
        try:
            run.step(never)()
        except Suspended:
            SEEN.append("suspended")
            raise
        return "x"

    async def never() -> None:
        SEEN.append("begun")
        await asyncio.Event().wait()

    world = world_of(main)
    passing = asyncio.create_task(run_pass(world.life, world.actuator))
    await until(lambda: SEEN)
    passing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await passing
    for thread in threading.enumerate():
        if thread.name == "run run_1":
            thread.join(60)
    assert SEEN == ["begun", "suspended"]
    assert not len(world.state.journal)


# --- the two sets of names ----------------------------------------------------------------------------


def _public(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if not name.startswith("_") and callable(value)}


@pytest.mark.parametrize("one, two", [(awaited.Run, plain.Run), (Database, plain.Database)])
def test_the_blocking_set_is_equal_argument_by_argument(one: type, two: type) -> None:
    assert _public(one).keys() == _public(two).keys()
    for name, verb in _public(one).items():
        mine = inspect.signature(verb).parameters.values()
        theirs = inspect.signature(_public(two)[name]).parameters.values()
        assert [(p.name, p.kind, p.default) for p in mine] == [(p.name, p.kind, p.default) for p in theirs], name


async def test_a_system_without_threads_is_a_fault_of_the_host_and_the_pass_is_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def main(run: plain.Run) -> str:
        return "x"

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    world = world_of(main)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            await run_pass(world.life, world.actuator)
    await world.play()
    assert world.result == "x"
