"""Programs to replay: data that an actuator interprets, with every way tasks can be joined.

A node is a tuple. What a program does depends on nothing but its nodes and what its steps gave back;
what the world does (how long a step takes, when the clock moves) is in the nodes too.
"""

from __future__ import annotations

import asyncio
from collections import Counter
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


async def play(run: Run, node: Node, before: str) -> str:  # noqa: C901 - one case a kind of node
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
        case "seq":
            for part in parts[0]:
                before = (await play(run, part, before))[-40:]
            return before
        case "gather":
            return "+".join(await asyncio.gather(*(play(run, part, before) for part in parts[0])))
        case "calls":
            return "+".join(await asyncio.gather(*(run.step(act)(n, before, t, 0, False) for n, t in parts[0])))
        case "group":
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(play(run, part, before)) for part in parts[0]]
            return "|".join(task.result() for task in tasks)
        case "completed":
            told = []
            for coming in asyncio.as_completed([play(run, part, before) for part in parts[0]]):
                first = await coming
                told.append(await run.step(act)("then", first[-40:], 0, 0, False))
            return ">".join(told)
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
        case "wait":
            tasks = [asyncio.ensure_future(play(run, part, before)) for part in parts[0]]
            done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
            return "&".join(task.result() for task in done)
        case "queue":
            queue: asyncio.Queue[str] = asyncio.Queue(1)
            lock = asyncio.Lock()

            async def put(part: Node) -> None:
                async with lock:
                    found = await play(run, part, before)
                await queue.put(found)

            putting = [asyncio.create_task(put(part)) for part in parts[0]]
            found = [await queue.get() for _ in parts[0]]
            await asyncio.gather(*putting)
            return ",".join(found)
        case _:
            raise AssertionError(kind)


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
