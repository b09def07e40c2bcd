"""host.letterbox - posting: letters into their boxes, and whoever carries them told of it.

For: one commit for all that are posted in the same turn of the loop, the next one behind it; the postman told within its
landing, in order.
Never: reads a program; carries.
Was wrong once: the postman told by whoever had posted. Its caller went away between the commit and that line, and the
letter lay in its box until somebody else posted there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onefold.fleet.mailbox import MAIL, Waiting, waiting
from onefold.fleet.posting import Answers, Lowest, Overtaken, Post, came, posting
from onefold.store.contract import Answer, Body, Done, Outcome, Query, Refused, Row, Space
from onefold.terms.errors import Contended, NotOpen, OnefoldError, OutcomeUnknown, StoreUnavailable
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
        self._queues: dict[str, _Queue] = {}

    async def post(self, space: Space, row: Row, digest: bytes | None) -> bool:
        """Commit it to its box; whether it was there already. Raises: KeyConflict, Busy, Contended, OutcomeUnknown."""
        queue = self._queues.get(space.name)
        if queue is None or queue.space is not space:
            queue = self._queues[space.name] = _Queue(space, self._told, self._lowest)
        return await queue.post(Post(row, digest))


@dataclass(slots=True)
class _Letter:
    post: Post
    heard: asyncio.Future[bool]
    tries: int = 0


class _Queue:
    """The letters of this process for one space, in the order of posting: one commit of them at a time.

    Where two were on their way, the first was refused for its numbers, and the second went before it.
    """

    def __init__(self, space: Space, told: Told, lowest: Lowest) -> None:
        self.space = space
        self._told = told
        self._lowest = lowest
        self._ahead: deque[_Letter] = deque()
        self._posts: _Posts | None = None  # the next commit, or the one that is on its way
        self._floor = 0  # a letter of this number stands in a box before those ahead
        self._unnumbered = 0  # how often no number was to be had
        self._later: asyncio.TimerHandle | None = None

    def post(self, post: Post) -> asyncio.Future[bool]:
        heard: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._ahead.append(_Letter(post, heard))
        if self._later is None:
            self._fill()
        return heard

    def _fill(self) -> None:
        """Add to the next commit whoever may go with it."""
        self._later = None
        try:
            while self._ahead and (self._posts is None or not self._posts.full):
                letter = self._numbered(self._ahead[0])
                if self._posts is None:
                    posts = _Posts(self._lowest, self._landed)
                    self.space.join(posts)
                    self._posts = posts
                self._posts.add(letter)
                self._ahead.popleft()
        except NotOpen as fault:
            self._refuse(fault)
        except StoreUnavailable as fault:  # more numbers are on their way
            self._unnumbered += 1
            if self._unnumbered < NUMBERED:
                self._later = asyncio.get_running_loop().call_later(PAUSE_S, self._fill)
            else:
                self._refuse(fault)

    def _numbered(self, letter: _Letter) -> _Letter:
        """Above all that went before it. Raises: StoreUnavailable."""
        number = letter.post.row[0]
        assert isinstance(number, int)
        if number <= self._floor:
            while number <= self._floor:
                number = self.space.mint(MAIL)
            letter.post = Post((number, *letter.post.row[1:]), letter.post.digest)
        self._floor, self._unnumbered = number, 0
        return letter

    def _refuse(self, fault: OnefoldError) -> None:
        self._unnumbered = 0
        letters, self._ahead = self._ahead, deque()
        for letter in letters:
            _hear(letter, fault)

    def _landed(self, came: Sequence[tuple[_Letter, OnefoldError | bool]]) -> None:
        """Told whether their callers still wait or not."""
        self._posts = None
        again: list[_Letter] = []
        for letter, told in came:
            mail = waiting(letter.post.row)
            if isinstance(told, Overtaken):
                self._floor = max(self._floor, told.n)
                letter.tries += 1
                if letter.tries < TRIES:
                    again.append(letter)
                else:
                    _hear(letter, Contended("the box of a cell"))
                continue
            if isinstance(told, OutcomeUnknown) or told is True:  # one that was there is in hand, or waits for its time
                self._told(mail.to, None)
            elif told is False:
                self._told(mail.to, mail)
            _hear(letter, told)
        self._ahead.extendleft(reversed(again))
        if self._later is None:
            self._fill()


def _hear(letter: _Letter, told: OnefoldError | bool) -> None:
    if not letter.heard.done():
        letter.heard.set_exception(told) if isinstance(told, OnefoldError) else letter.heard.set_result(told)


class _Posts:
    """Letters that are posted together, as a party of a commit."""

    def __init__(self, lowest: Lowest, landed: Callable[[Sequence[tuple[_Letter, OnefoldError | bool]]], None]) -> None:
        self._lowest = lowest
        self._landed = landed
        self._letters: list[_Letter] = []
        self._asked = False

    @property
    def full(self) -> bool:
        """Whether it takes no more: it is on its way, or has as many as may go together."""
        return self._asked or len(self._letters) >= AT_ONCE

    def add(self, letter: _Letter) -> None:
        self._letters.append(letter)

    def ask(self) -> tuple[Query, ...]:
        self._asked = True
        return ()

    def body(self, answers: tuple[Answer, ...], /) -> Body[Answers]:
        return posting(self._all(), self._lowest)

    def landed(self, outcome: Outcome[Any], /) -> None:
        told: list[OnefoldError | bool]
        if isinstance(outcome, Refused):
            told = [outcome.error] * len(self._letters)
        elif isinstance(outcome, Done):
            told = came(self._all(), outcome)
        else:
            told = [OutcomeUnknown(waiting(letter.post.row).event[2:]) for letter in self._letters]
        self._landed(list(zip(self._letters, told, strict=True)))

    def _all(self) -> list[Post]:
        return [letter.post for letter in self._letters]
