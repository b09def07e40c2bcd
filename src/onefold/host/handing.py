"""host.handing - letters of one sender, handed to their actor together and in order.

For: reading a letter as the turn it brings; as many of them at once as may go at once; what each of them came to.
Never: keeps or removes a letter that did not go (the postman does); hands one over whose predecessor may not have gone.
Was wrong once: a program that the interpreter runs, begun while the calls before it were not committed. It had run on
a record that was no longer the newest, and ran again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from onefold.fleet.mailbox import MAIL, Waiting
from onefold.fleet.wire import boxed
from onefold.host.core import MAIN, Core
from onefold.host.guards import of_boxes
from onefold.node.brought import Brought
from onefold.node.sweeping import committed
from onefold.program.words import OneCall
from onefold.store.contract import Remove


@dataclass(frozen=True, slots=True)
class Opened:
    """A letter that was read. alone: it goes when what was before it is committed, and what is behind it waits.

    turn: begins its turn, behind that of another; returns once it is committed.
    """

    alone: bool
    turn: Callable[[Brought | None], tuple[Brought, Awaitable[Any]]]


class Handing:
    """Makes turns of letters, of actors of this process."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def open(self, mail: Waiting) -> Opened:
        """Raises: OwnedElsewhere; whatever makes it no turn of this actor."""
        core = self._core
        sent = boxed(mail.to, mail.event, mail.body)
        apart = core.standing is not None and mail.to.kind in core.standing.apart
        row = None if apart else (MAIL, (mail.n,))
        read = core.reads(sent)

        def turn(after: Brought | None) -> tuple[Brought, Awaitable[Any]]:
            brought = Brought(row, after)
            received = core.received(sent, brought, read)
            return brought, self._apart(received, mail) if apart else received

        return Opened(sent.is_program and not isinstance(read, OneCall), turn)

    async def _apart(self, received: Awaitable[Any], mail: Waiting) -> None:
        """No commit spans two files: a repeat of the letter finds that its turn is done."""
        await received
        guard = of_boxes(self._core.standing)(mail.to)
        await committed(await self._core.space(MAIN), guard, (Remove(MAIL, keys=[(mail.n,)]),), "a letter")


async def handed(opened: Sequence[Opened]) -> Sequence[BaseException | None]:
    """Hand them over in this order; what each came to, once all are through: None, or what it raised."""
    turns: list[Awaitable[Any]] = []
    before: Brought | None = None
    for each in opened:
        before, turn = each.turn(before)
        turns.append(turn)
    if len(turns) > 1:
        told = await asyncio.gather(*turns, return_exceptions=True)
        return [each if isinstance(each, BaseException) else None for each in told]
    try:
        await turns[0]
    except Exception as fault:  # noqa: BLE001 - the door: it is told, as it is of many
        return [fault]
    return [None]


def together(opened: Iterable[Opened | Exception]) -> list[Opened]:
    """Of the next letters of a sender those that may go at once: one by itself, or all before the next such one."""
    run: list[Opened] = []
    for each in opened:
        if isinstance(each, Exception) or (each.alone and run):
            break
        run.append(each)
        if each.alone:
            break
    return run
