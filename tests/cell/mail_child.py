"""A process that empties boxes, and kills itself in the middle of a commit with letters in it.

For: `python -m tests.cell.mail_child STORE MODE N [TWIN]`. `fill`: post N letters for each sender, and carry none. `before`,
`flight`, `after`: die at the N-th commit of the lane: before it is sent, while it is, or before anybody is told.
`rest`: carry all that is left, and print the names in the room.
Never: tells its parent what it did but by its rows.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import onefold
from onefold.fleet.mailbox import MAIL, Waiting
from onefold.host.caller import inside
from onefold.host.handing import Handing, Opened
from onefold.host.postman import Postman
from onefold.node.brought import Brought
from onefold.node.lane import Lane
from onefold.node.owning import UNGUARDED
from onefold.node.sweeping import committed
from onefold.store.contract import Remove
from tests.cell.rooms import Room

SENDERS = ("ada", "bob")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def fill(app: onefold.App, letters: int) -> None:
    await app.cell(Room, "lobby").spawn()

    async def posts(who: str) -> None:
        caller = replace(inside(None), name=who)
        for n in range(letters):
            source = f"enter('{who}-{n}', at_most=100000)"
            await app.host.cells.post("Room", "lobby", source, key=f"{who}-{n}", caller=caller)

    await asyncio.gather(*map(posts, SENDERS))


def dying(mode: str, left: int) -> Any:
    """The lane, whose so manieth commit with letters is its last."""
    body, landed = Lane.body, Lane.landed
    last: set[int] = set()

    def bodied(lane: Lane, answers: Any) -> Any:
        nonlocal left
        found = body(lane, answers)
        if found is not None and any(turn.takes is not None for turn in lane._flying[-1].turns):
            left -= 1
            if left == 0:
                last.add(id(lane._flying[-1]))
                if mode == "before":
                    die()
                if mode == "flight":
                    asyncio.get_running_loop().call_soon(die)
        return found

    def came(lane: Lane, outcome: Any) -> None:
        if lane._flying and id(lane._flying[0]) in last:
            die()
        landed(lane, outcome)

    return patch.multiple(Lane, body=bodied, landed=came)


def early() -> Any:
    """A drain that takes a letter away before its turn."""
    opens = Handing.open

    def opened(handing: Handing, mail: Waiting) -> Opened:
        found = opens(handing, mail)

        def turn(after: Brought | None) -> tuple[Brought, Awaitable[Any]]:
            brought, received = found.turn(after)

            async def gone() -> None:
                space = await handing._core.space("main")
                await committed(space, UNGUARDED, (Remove(MAIL, keys=[(mail.n,)]),), "a letter")
                await received

            return brought, gone()

        return Opened(found.alone, turn)

    return patch.object(Handing, "open", opened)


async def main(store: str, mode: str, n: int, twin: str) -> None:
    with early() if twin == "early" else nullcontext():
        if mode == "fill":
            with patch.object(Postman, "start", lambda postman: None):
                async with onefold.App(Room, store=store) as app:
                    await fill(app, n)
            return
        with nullcontext() if mode == "rest" else dying(mode, n):
            async with onefold.App(Room, store=store) as app:
                while not app.host.quiet:  # noqa: ASYNC110 - it tells whether it is idle, and nobody when
                    await asyncio.sleep(0)
                sys.stdout.write(json.dumps((await app.cell(Room, "lobby").read()).occupants))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), (*sys.argv, "")[4]))
