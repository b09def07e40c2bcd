"""Programs to replay: data that an actuator interprets, with every way tasks can be joined.

A node is a tuple. What a program does depends on nothing but its nodes and what its steps gave back;
what the world does (how long a step takes, when the clock moves) is in the nodes too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import strategies as st

from onefold.actuators import Retry, Run, actuator
from onefold.kernel.port import Step

Node = tuple[Any, ...]
EAGER = Retry(attempts=3, first="1 second")


class Ledger:
    """What the steps did to the world: every execution, by key, with its arguments."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self.counts: Counter[str] = Counter()
        self.world: Any = None

    @property
    def arguments(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for key, told in self.done:
            found.setdefault(key, set()).add(told)
        return found


LEDGER = Ledger()


async def act(step: Step, name: str, before: str, turns: int, fails: int, ring: bool) -> str:
    """Takes `turns` turns of the host's loop, fails its first `fails` attempts, and may let the clock ring meanwhile."""
    LEDGER.done.append((step.key, f"{name}<{before}"))
    LEDGER.counts[step.key] += 1
    for _ in range(turns):
        await asyncio.sleep(0)
    if ring and LEDGER.world is not None:
        LEDGER.world.ring()
        await asyncio.sleep(0)
    if step.attempt <= fails:
        raise ValueError(f"{name} fails")
    return f"{step.key} {name}<{before[-30:]}"


async def play(run: Run, node: Node, before: str) -> str:
    """What a node gives, as text that shows in which order things came."""
    kind, *parts = node
    match kind:
        case "step":
            name, turns, fails, ring = parts
            return await run.step(act, retry=EAGER)(name, before, turns, fails, ring)
        case "sleep":
            await asyncio.sleep(parts[0])
            return "slept"
        case "rest":
            await run.sleep(f"{parts[0]} seconds")
            return "rested"
        case "chance":
            return f"{run.random.random():.6f}/{run.uuid()}"
        case "calls":
            return "+".join(await asyncio.gather(*(run.step(act)(n, before, t, 0, False) for n, t in parts[0])))
        case "wait_for":
            try:
                return await asyncio.wait_for(play(run, parts[0], before), parts[1])
            except TimeoutError:
                return "late"
        case "timeout":
            try:
                async with asyncio.timeout(parts[1]):
                    return await play(run, parts[0], before)
            except TimeoutError:
                return "too late"
        case _:
            return await JOINS[kind](run, parts[0], before)


async def seq(run: Run, nodes: list[Node], before: str) -> str:
    for node in nodes:
        before = (await play(run, node, before))[-40:]
    return before


async def gathered(run: Run, nodes: list[Node], before: str) -> str:
    return "+".join(await asyncio.gather(*(play(run, node, before) for node in nodes)))


async def grouped(run: Run, nodes: list[Node], before: str) -> str:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(play(run, node, before)) for node in nodes]
    return "|".join(task.result() for task in tasks)


async def completed(run: Run, nodes: list[Node], before: str) -> str:
    told = []
    for coming in asyncio.as_completed([play(run, node, before) for node in nodes]):
        first = await coming
        told.append(await run.step(act)("then", first[-40:], 0, 0, False))
    return ">".join(told)


async def waited(run: Run, nodes: list[Node], before: str) -> str:
    tasks = [asyncio.ensure_future(play(run, node, before)) for node in nodes]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return "&".join(task.result() for task in done)


async def queued(run: Run, nodes: list[Node], before: str) -> str:
    queue: asyncio.Queue[str] = asyncio.Queue(1)
    lock = asyncio.Lock()

    async def put(node: Node) -> None:
        async with lock:
            found = await play(run, node, before)
        await queue.put(found)

    putting = [asyncio.create_task(put(node)) for node in nodes]
    found = [await queue.get() for _ in nodes]
    await asyncio.gather(*putting)
    return ",".join(found)


JOINS: dict[str, Callable[[Run, list[Node], str], Awaitable[str]]] = {
    "seq": seq,
    "gather": gathered,
    "group": grouped,
    "completed": completed,
    "wait": waited,
    "queue": queued,
}
PROGRAM: list[Node] = [()]


@actuator
async def generated(run: Run) -> str:
    """Plays PROGRAM."""
    return await play(run, PROGRAM[0], "")


names = st.sampled_from("abcde")
steps = st.tuples(st.just("step"), names, st.integers(0, 3), st.integers(0, 1), st.booleans())
leaves = st.one_of(
    steps,
    steps,
    st.tuples(st.just("sleep"), st.sampled_from([0, 0.5, 1, 3])),
    st.tuples(st.just("rest"), st.sampled_from([0, 1, 2])),
    st.just(("chance",)),
)


def _joined(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    kinds = st.sampled_from(["seq", "seq", "gather", "group", "completed", "wait", "queue"])
    return st.one_of(
        st.tuples(kinds, several),
        st.tuples(st.just("calls"), st.lists(st.tuples(names, st.integers(0, 3)), min_size=1, max_size=3)),
        st.tuples(st.sampled_from(["wait_for", "timeout"]), inner, st.sampled_from([1, 2, 5])),
    )


nodes = st.recursive(leaves, _joined, max_leaves=8)
