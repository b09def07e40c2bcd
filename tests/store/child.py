"""What the store's tests run as a process of its own, to be killed: `python -m tests.store.child MODE FOLDER [NUMBER]`.

It prints one line for each thing that the store acknowledged, after it did.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from onefold.store.contract import Answer, Append, Cas, Done, Inc, Last, Query, Remove, Unknown, Verb
from onefold.store.sqlite import SqliteWorld
from onefold.terms.errors import HostError
from tests.store.tables import OWED, SCHEMA, SENT, TASK, TURN

Asking: TypeAlias = "Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Any]]"


def clock() -> int:
    return 1_000


def child(mode: str, folder: Path, *rest: object) -> subprocess.Popen[str]:
    """Start it; used as a context manager, it is waited for at the end."""
    command = [sys.executable, "-m", "tests.store.child", mode, str(folder), *map(str, rest)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def write(folder: Path, first: int, failpoint: Callable[[str], None] | None = None) -> None:
    """Turns with an owed row each, several to a commit, for ever; the number of each, once it is acknowledged.

    A number says who wrote it: its event and its owed row carry it too.
    """
    world = SqliteWorld(folder, clock=clock, failpoint=failpoint)
    space = await world.open("main", [SCHEMA])
    say("open")

    async def one(number: int) -> None:
        actor = number % 5

        def body() -> Asking:
            (head,) = yield (Query(TURN, where=(("actor", "=", actor),), order=("-n",), limit=1),)
            n, o = space.mint(TURN), space.mint(OWED)
            return Last(
                (
                    Append(TURN, [(n, actor, head[0][0] if head else None, f"e{number}", b"x" * (number % 300))]),
                    Append(OWED, [(o, actor, str(number).encode())]),
                    Cas(SENT, [((0, "count"), {}, {"digest": b""})]),
                ),
                n,
            )

        outcome = await space.transact(body)
        assert isinstance(outcome, Done), outcome
        say(number)

    number = first
    while True:
        width = number % 7 + 1
        await asyncio.gather(*(one(number + i) for i in range(width)))
        number += width


async def sweep(folder: Path, point: int) -> None:
    """Two commits of one body each; this process is killed at its `point`-th failpoint."""
    left = [point]

    def fail(_: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    world = SqliteWorld(folder, clock=clock, failpoint=fail)
    space = await world.open("main", [SCHEMA])
    for name in ("a", "b"):

        def body(name: str = name) -> Asking:
            (head,) = yield (Query(TURN, where=(("actor", "=", 1),), order=("-n",), limit=1),)
            turn = (space.mint(TURN), 1, head[0][0] if head else None, name, None)
            return Last((Append(TURN, [turn]), Append(OWED, [(space.mint(OWED), 1, name.encode())])), None)

        assert isinstance(await space.transact(body), Done)
        say(name)
    await world.close()
    say("closed")


async def share(folder: Path, who: int, count: int) -> None:
    """One of several: each event once, in an order of its own, several to a commit; says what is sure to be there."""
    world = SqliteWorld(folder, clock=clock, node=str(who), shared=True)
    space = await world.open("main", [SCHEMA])
    say("open")

    async def one(number: int) -> None:
        actor, event = number % 5, f"e{number}"

        def body() -> Asking:
            (met, head) = yield (
                Query(TURN, on=("actor", "event"), keys=[(actor, event)]),
                Query(TURN, where=(("actor", "=", actor),), order=("-n",), limit=1),
            )
            if met:
                return Last((), None)
            row = (space.mint(TURN), actor, head[0][0] if head else None, event, b"%d" % who)
            owed = (space.mint(OWED), actor, b"%d" % number)
            counted = Cas(TASK, [((actor,), {}, {"tries": Inc(1)})])
            return Last((Append(TURN, [row]), Append(OWED, [owed]), counted), None)

        outcome: Any = None
        while not isinstance(outcome, Done):
            outcome = await space.transact(body)
        say(number)

    order = list(range(count))
    random.Random(who).shuffle(order)
    while order:
        some = [order.pop() for _ in range(min(len(order), len(order) % 4 + 1))]
        await asyncio.gather(*map(one, some))
    await world.close()
    say("closed")


async def hold(folder: Path, shared: bool) -> None:
    """Hold the space until stdin ends."""
    world = SqliteWorld(folder, clock=clock, node="a", shared=shared)
    await world.open("main", [SCHEMA])
    say("open")
    sys.stdin.read()
    await world.close()


async def fill(folder: Path) -> None:
    """On a small disk: write until it is full, say how each write ended, make room when told to, and go on."""
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(300_000))
    world = SqliteWorld(folder / "store", clock=clock)
    space = await world.open("main", [SCHEMA])
    number, full = 0, False
    while number < 400:
        number += 1
        rows = [(space.mint(OWED), number, os.urandom(3_000)) for _ in range(3)]
        try:
            outcome = await space.transact(partial(_append, rows))
        except HostError as error:
            say("raised", number, error)
            continue
        say("done" if isinstance(outcome, Done) else "unknown" if isinstance(outcome, Unknown) else "refused", number)
        if isinstance(outcome, Done):
            if full:
                break
            continue
        say("why", outcome.error)
        found = await space.look(Query(OWED, where=(("actor", "=", number),)))
        say("left", len(found[0]))
        full = True
        ballast.unlink(missing_ok=True)
    found = await space.look(Query(OWED))
    say("rows", len(found[0]))
    assert isinstance(await space.transact(_remove), Done)
    await world.close()
    say("closed")


def _append(rows: list[tuple[int, int, bytes]]) -> Asking:
    yield from ()
    return Last((Append(OWED, rows),), None)


def _remove() -> Asking:
    yield from ()
    return Last((Remove(OWED, where=(("n", "<", 4),)), Cas(SENT, [((0, "x"), {}, {"digest": b""})])), Inc(1))


if __name__ == "__main__":
    mode, where, *rest = sys.argv[1:]
    if mode == "write":
        asyncio.run(write(Path(where), int(rest[0])))
    elif mode == "sweep":
        asyncio.run(sweep(Path(where), int(rest[0])))
    elif mode == "hold":
        asyncio.run(hold(Path(where), rest == ["shared"]))
    elif mode == "share":
        asyncio.run(share(Path(where), int(rest[0]), int(rest[1])))
    elif mode == "fill":
        asyncio.run(fill(Path(where)))
