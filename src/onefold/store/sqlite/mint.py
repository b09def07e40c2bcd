"""store.sqlite.mint - numbers that no row has had: raised in memory, or taken from the file in blocks.

For: `Numbers` of a process that has its file alone; `Blocks` where several have it: each takes blocks from a row of
the file, and goes above whatever it reads of a history.
Never: sends a statement (engine does); gives a number twice, whatever becomes of the transaction it was given in.
Was wrong once: a block taken inside a body's savepoint. The body was refused, the row went back, and two processes had
the same numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

BLOCK = 4096  # numbers reserved at a time; why: one small write each so many rows, a gap of at most so many a crash
MOST = 2**62  # a row above it was numbered by nobody; what is beyond is not given
LOW = BLOCK // 2  # numbers left, below which a commit takes the next block along

Lines: TypeAlias = "list[tuple[str, Any]]"


class Source(Protocol):
    """The numbers of one file's serial keys, by table. `held` are the store's own notes in the file."""

    def opened(self, held: Mapping[str, Any], highest: Callable[[str], int]) -> None: ...
    def taken(self) -> Lines: ...
    def begun(self, held: Mapping[str, Any]) -> None: ...
    def mint(self, table: str) -> int: ...
    def seen(self, table: str, number: int) -> None: ...
    def lines(self, *, last: bool) -> Lines: ...
    def committed(self, lines: Sequence[tuple[str, Any]]) -> None: ...
    def rolled_back(self) -> None: ...


def note_of(table: str) -> str:
    """The name of the row that says which number nobody may have had yet."""
    return f"next.{table}"


class Numbers:
    """Of who has the file alone. A commit notes how far its numbers went, and a block ahead."""

    def __init__(self, tables: Iterable[str]) -> None:
        self._next = dict.fromkeys(tables, 1)
        self._bound = dict(self._next)

    def opened(self, held: Mapping[str, Any], highest: Callable[[str], int]) -> None:
        for table, number in self._next.items():
            bound = held.get(note_of(table), 1)
            # What was minted before the file was closed by an error may still be under way.
            self._next[table] = max(number, bound, highest(table) + 1)
            self._bound[table] = bound

    def taken(self) -> Lines:
        """What the opening itself must note."""
        return []

    def begun(self, held: Mapping[str, Any]) -> None:
        """Nobody else changes the file."""

    def mint(self, table: str) -> int:
        number = self._next[table]
        self._next[table] = number + 1
        return number

    def seen(self, table: str, number: int) -> None:
        """The next is above it anyhow."""

    def lines(self, *, last: bool) -> Lines:
        """What a commit must note. `last`: the file is closed behind it."""
        ends = [(t, n) for t, n in self._next.items() if last or n > self._bound[t]]
        return [(note_of(table), number if last else number + BLOCK) for table, number in ends]

    def committed(self, lines: Sequence[tuple[str, Any]]) -> None:
        noted = dict(lines)
        for table in self._bound:
            self._bound[table] = noted.get(note_of(table), self._bound[table])

    def rolled_back(self) -> None:
        """What was noted before is still so."""


class Blocks:
    """Of one of several processes. What a transaction takes is its own from the commit on; until then the numbers go
    only to bodies inside it, and are nobody's when it is rolled back: their runs are then void too."""

    def __init__(self, tables: Iterable[str], take: Callable[[str, int], int]) -> None:
        """`take`: the first of a new block above a number, by a commit of its own. Raises: StoreUnavailable."""
        self._take = take
        self._have: dict[str, deque[range]] = {table: deque() for table in tables}
        self._new: dict[str, deque[range]] = {table: deque() for table in self._have}
        self._above = dict.fromkeys(self._have, 0)
        self._free: dict[str, int] | None = None  # the first number nobody took, while a transaction is open
        self._took: set[str] = set()

    def opened(self, held: Mapping[str, Any], highest: Callable[[str], int]) -> None:
        ends = {table: highest(table) for table in self._have}
        self.begun({note_of(t): max(held.get(note_of(t), 1), n + 1 if n < MOST else 1) for t, n in ends.items()})

    def taken(self) -> Lines:
        """What the opening must note: a first block of each."""
        return self.lines(last=False)

    def begun(self, held: Mapping[str, Any]) -> None:
        self._free = {table: held.get(note_of(table), 1) for table in self._have}

    def mint(self, table: str) -> int:
        """The next number. Raises: StoreUnavailable where a new block is needed and cannot be had."""
        while True:
            for blocks in (self._have[table], self._new[table]):
                self._raise(blocks, self._above[table])
                if blocks:
                    number = blocks[0].start
                    self._raise(blocks, number)
                    return number
            if self._free is not None:
                self._more(table)
            else:
                self._have[table].append(_block(self._take(table, self._above[table])))

    def seen(self, table: str, number: int) -> None:
        """A history has a row of this number: from now on the numbers are above it."""
        if self._above[table] < number < MOST:
            self._above[table] = number

    def lines(self, *, last: bool) -> Lines:
        """What this transaction took. Whoever runs low takes the next block along."""
        if not last:
            for table in self._have:
                if self._left(table) < LOW:
                    self._more(table)
        free = self._free or {}
        return [(note_of(table), free[table]) for table in sorted(self._took)]

    def committed(self, lines: Sequence[tuple[str, Any]]) -> None:
        for table, blocks in self._new.items():
            self._have[table].extend(blocks)
        self.rolled_back()

    def rolled_back(self) -> None:
        for blocks in self._new.values():
            blocks.clear()
        self._took.clear()
        self._free = None

    def _more(self, table: str) -> None:
        assert self._free is not None
        first = max(self._free[table], self._above[table] + 1)
        self._new[table].append(_block(first))
        self._free[table] = first + BLOCK
        self._took.add(table)

    def _left(self, table: str) -> int:
        above = self._above[table]
        blocks = (*self._have[table], *self._new[table])
        return sum(max(0, block.stop - max(block.start, above + 1)) for block in blocks)

    @staticmethod
    def _raise(blocks: deque[range], above: int) -> None:
        """Let go of what is not above it."""
        while blocks and blocks[0].start <= above:
            block = blocks.popleft()
            if block.stop - 1 > above:
                blocks.appendleft(range(above + 1, block.stop))


def _block(first: int) -> range:
    return range(first, first + BLOCK)
