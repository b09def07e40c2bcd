"""host.letterbox - posting: letters into their boxes, and whoever carries them told of it.

For: one commit for all that are posted in the same turn of the loop; the postman told within its landing, in order.
Never: reads a program; carries.
Was wrong once: the postman told by whoever had posted. Its caller went away between the commit and that line, and the
letter lay in its box until somebody else posted there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from onefold.fleet.mailbox import MAIL, Waiting, waiting
from onefold.fleet.posting import Answers, Lowest, Overtaken, Post, came, posting
from onefold.store.contract import Answer, Body, Done, Outcome, Query, Refused, Row, Space
from onefold.terms.errors import Contended, OnefoldError, OutcomeUnknown, StoreUnavailable
from onefold.terms.ids import ActorId

AT_ONCE = 256  # letters of one commit: beyond it a commit gets longer, not cheaper a letter
TRIES = 8  # of a letter that others of its sender overtake, through other nodes
NUMBERED, PAUSE_S = 500, 0.004  # how often numbers are asked for, where a block of them is on its way
Told = Callable[[ActorId, Waiting | None], None]


class Letterbox:
    """Of one process. `told` hears of each letter that is in its box, or may be. shared: other processes post, too."""

    def __init__(self, told: Told, *, shared: bool) -> None:
        self._told = told
        self._lowest = Lowest(shared=shared)
        self._open: dict[str, _Posts] = {}

    async def post(self, space: Space, row: Row, digest: bytes | None) -> bool:
        """Commit it to its box; whether it was there already. Raises: KeyConflict, Busy, Contended, OutcomeUnknown."""
        for _ in range(TRIES):
            try:
                return await self._posted(space, Post(row, digest))
            except Overtaken as overtaken:
                row = (await _above(space, overtaken.n), *row[1:])
        raise Contended("the box of a cell")

    def _posted(self, space: Space, post: Post) -> asyncio.Future[bool]:
        heard: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        posts = self._open.get(space.name)
        if posts is None or posts.full:
            posts = self._open[space.name] = _Posts(self._told, self._lowest)
            space.join(posts)
        posts.add(post, heard)
        return heard


async def _above(space: Space, n: int) -> int:
    """A number for a letter above this one. Raises: StoreUnavailable."""
    for left in reversed(range(NUMBERED)):
        try:
            while (number := space.mint(MAIL)) <= n:
                pass
            return number
        except StoreUnavailable:  # more numbers are on their way
            if not left:
                raise
            await asyncio.sleep(PAUSE_S)
    raise AssertionError


class _Posts:
    """Letters that are posted together, as a party of a commit."""

    def __init__(self, told: Told, lowest: Lowest) -> None:
        self._told = told
        self._lowest = lowest
        self._posts: list[Post] = []
        self._heard: list[asyncio.Future[bool]] = []
        self._asked = False

    @property
    def full(self) -> bool:
        """Whether it takes no more: it is on its way, or has as many as may go together."""
        return self._asked or len(self._posts) >= AT_ONCE

    def add(self, post: Post, heard: asyncio.Future[bool]) -> None:
        self._posts.append(post)
        self._heard.append(heard)

    def ask(self) -> tuple[Query, ...]:
        self._asked = True
        return ()

    def body(self, answers: tuple[Answer, ...], /) -> Body[Answers]:
        return posting(self._posts, self._lowest)

    def landed(self, outcome: Outcome[Any], /) -> None:
        """Told whether their callers still wait or not."""
        if isinstance(outcome, Refused):
            self._answer([outcome.error] * len(self._posts))
        elif isinstance(outcome, Done):
            self._answer(came(self._posts, outcome))
        else:
            self._answer([OutcomeUnknown(waiting(post.row).event[2:]) for post in self._posts])

    def _answer(self, came: list[OnefoldError | bool]) -> None:
        for post, heard, told in zip(self._posts, self._heard, came, strict=True):
            mail = waiting(post.row)
            if isinstance(told, OutcomeUnknown) or told is True:  # one that was there is in hand, or waits for its time
                self._told(mail.to, None)
            elif told is False:
                self._told(mail.to, mail)
            if not heard.done():
                heard.set_exception(told) if isinstance(told, OnefoldError) else heard.set_result(told)
