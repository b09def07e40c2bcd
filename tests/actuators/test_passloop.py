"""The loop of a pass knows its own tasks and nothing of the world."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from onefold.actuators.passloop import DurableTimer, PassLoop, PassTask, Path, Spinning
from onefold.terms.errors import OutsideStep


class Timers:
    def __init__(self) -> None:
        self.asked: list[tuple[int, DurableTimer]] = []

    def __call__(self, after: int, handle: DurableTimer) -> None:
        self.asked.append((after, handle))


def looped(main: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[PassLoop, PassTask, Timers]:
    timers = Timers()
    loop = PassLoop(timers)
    task = PassTask(main(), loop, Path("0"), None)
    loop.drive()
    return loop, task, timers


def test_it_drives_until_every_task_is_blocked() -> None:
    seen = []

    async def main() -> str:
        first, second = asyncio.Event(), asyncio.Event()

        async def other() -> None:
            await first.wait()
            seen.append("other")
            second.set()

        task = asyncio.create_task(other())
        await asyncio.sleep(0)
        first.set()
        await second.wait()
        await task
        return "done"

    _, task, _ = looped(main)
    assert task.result() == "done"
    assert seen == ["other"]


def test_tasks_have_paths_by_who_made_them() -> None:
    async def child() -> tuple[str, str]:
        inner = asyncio.create_task(asyncio.sleep(0))
        await inner
        mine: Any = asyncio.current_task()
        theirs: Any = inner
        return mine.path.name, theirs.path.name

    async def main() -> Any:
        return await asyncio.gather(child(), child())

    _, task, _ = looped(main)
    assert task.result() == [("0.0", "0.0.0"), ("0.1", "0.1.0")]


def test_timers_are_asked_of_the_pass_and_fire_only_when_told() -> None:
    async def main() -> str:
        await asyncio.sleep(0.0101)
        return "woken"

    loop, task, timers = looped(main)
    assert [after for after, _ in timers.asked] == [11]
    assert not task.done()
    loop.fire(timers.asked[0][1])
    loop.drive()
    assert task.result() == "woken"


def test_a_timer_that_is_cancelled_tells_the_pass_once() -> None:
    async def main() -> None:
        async with asyncio.timeout(5):
            await asyncio.sleep(0)
        async with asyncio.timeout(6):
            await asyncio.get_running_loop().create_future()

    told = []
    timers = Timers()

    def timer(after: int, handle: DurableTimer) -> None:
        timers(after, handle)
        handle.on_cancel = lambda: told.append(after)

    loop = PassLoop(timer)
    task = PassTask(main(), loop, Path("0"), None)
    loop.drive()
    assert told == [5000]
    loop.fire(timers.asked[1][1])
    loop.drive()
    assert isinstance(task.exception(), TimeoutError)
    assert told == [5000]


def test_a_timeout_already_past_fires_at_once() -> None:
    async def main() -> None:
        async with asyncio.timeout(-1):
            await asyncio.get_running_loop().create_future()

    _, task, timers = looped(main)
    assert isinstance(task.exception(), TimeoutError)
    assert not timers.asked


async def _connect() -> None:
    await asyncio.open_connection("127.0.0.1", 9)


async def _resolve() -> None:
    await asyncio.get_running_loop().getaddrinfo("localhost", 80)


async def _thread() -> None:
    await asyncio.to_thread(print)


async def _program() -> None:
    await asyncio.create_subprocess_exec("true")


async def _socket() -> None:
    with socket.socket() as sock:
        await asyncio.get_running_loop().sock_recv(sock, 1)


async def _serve() -> None:
    await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)


async def _soon() -> None:
    asyncio.get_running_loop().call_soon_threadsafe(print)


@pytest.mark.parametrize(
    "act, name",
    [
        (_connect, "create_connection"),
        (_resolve, "getaddrinfo"),
        (_thread, "run_in_executor"),
        (_program, "subprocess_exec"),
        (_socket, "sock_recv"),
        (_serve, "create_server"),
        (_soon, "call_soon_threadsafe"),
    ],
)
def test_the_world_is_refused_by_name(act: Any, name: str) -> None:
    _, task, _ = looped(act)
    fault = task.exception()
    assert isinstance(fault, OutsideStep)
    assert fault.name == f"loop.{name}"
    assert re.search(rf"{name} was called by test_passloop.py:\d+ outside a step", str(fault))
    assert "Put that line into a function of your own and call it by run.step." in str(fault)


def test_every_verb_of_a_loop_is_there_or_refused() -> None:
    for name in [name for name in vars(asyncio.AbstractEventLoop) if not name.startswith("_")]:
        assert getattr(PassLoop, name) is not getattr(asyncio.AbstractEventLoop, name), name


def test_it_is_the_running_loop_only_while_it_drives() -> None:
    async def main() -> Any:
        return asyncio.get_running_loop()

    loop, task, _ = looped(main)
    assert task.result() is loop
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


@pytest.mark.parametrize("make", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_it_drives_inside_another_running_loop(make: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def inner() -> Any:
        return asyncio.get_running_loop(), asyncio.current_task().path.name  # type: ignore[union-attr]

    async def outer() -> None:
        mine = asyncio.current_task()
        loop, task, _ = looped(inner)
        assert task.result() == (loop, "0")
        assert asyncio.get_running_loop() is host
        assert asyncio.current_task() is mine
        await asyncio.sleep(0)

    async def broken() -> None:
        raise KeyboardInterrupt

    async def outer_again() -> None:
        loop = PassLoop(Timers())
        loop.quiet = True
        task = PassTask(broken(), loop, Path("0"), None)
        with pytest.raises(KeyboardInterrupt):
            loop.drive()
        assert task.done()
        assert asyncio.get_running_loop() is host
        await asyncio.sleep(0)

    host = make()
    try:
        host.run_until_complete(outer())
        host.run_until_complete(outer_again())
    finally:
        host.close()


def test_a_program_that_only_spins_is_stopped() -> None:
    async def main() -> None:
        while True:  # noqa: ASYNC110 - the worst that code can do
            await asyncio.sleep(0)

    loop = PassLoop(Timers())
    loop.budget = 1000
    task = PassTask(main(), loop, Path("0"), None)
    with pytest.raises(Spinning):
        loop.drive()
    task.get_coro().close()
    loop.close()


def test_a_call_may_stand_for_a_coroutine() -> None:
    async def main() -> int:
        loop: Any = asyncio.get_running_loop()
        future: asyncio.Future[int] = loop.create_future()
        future.set_result(3)
        async with asyncio.TaskGroup() as group:
            task: Any = group.create_task(future)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a coroutine was expected"):
            assert loop.create_task(5)
        found: int = task.result()
        return found

    _, task, _ = looped(main)
    assert task.result() == 3


def test_an_async_generator_dropped_half_way_ends_in_the_pass() -> None:
    ended = []

    async def numbers() -> Any:
        try:
            yield 1
            yield 2
        finally:
            ended.append(asyncio.get_running_loop())

    async def main() -> None:
        async for _ in numbers():
            break
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    loop, task, _ = looped(main)
    assert task.done()
    assert ended == [loop]


def test_as_completed_keeps_the_order_it_was_given() -> None:
    async def tell(n: int) -> tuple[int, str]:
        return n, asyncio.current_task().path.name  # type: ignore[union-attr]

    async def main() -> Any:
        return [await coming for coming in asyncio.as_completed(map(tell, range(20)))]

    _, task, _ = looped(main)
    assert task.result() == [(n, f"0.{n}") for n in range(20)]


SETS = """
import asyncio
from onefold.actuators.passloop import PassLoop, PassTask, Path
async def name(): return asyncio.current_task().path.name
async def main():
    tasks = {asyncio.create_task(name()) for _ in range(30)}
    futures = {asyncio.get_running_loop().create_future() for _ in range(30)}
    for at, future in enumerate(futures): future.set_result(at)
    done, _ = await asyncio.wait(tasks | futures)
    return [str(t.result()) for t in tasks] + [str(t.result()) for t in done]
loop = PassLoop(lambda after, handle: None)
junk = [object() for _ in range(len(str(hash("x"))))]
task = PassTask(main(), loop, Path("0"), None)
loop.drive()
print(" ".join(task.result()))
"""


def test_sets_of_tasks_iterate_alike_under_every_hash_seed() -> None:
    told = set()
    for seed in ("0", "1", "4242"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        ran = subprocess.run([sys.executable, "-c", SETS], capture_output=True, text=True, env=env, check=True)
        told.add(ran.stdout)
    assert len(told) == 1
    assert len(told.pop().split()) == 90


def test_other_loops_keep_their_sets() -> None:
    async def main() -> Any:
        tasks = [asyncio.create_task(asyncio.sleep(0)) for _ in range(3)]
        return await asyncio.wait(tasks)

    done, pending = asyncio.run(main())
    assert type(done) is set
    assert type(pending) is set
