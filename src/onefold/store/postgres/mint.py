"""store.postgres.mint - numbers that no row has had, given without asking anybody.

For: `Numbers.mint`, from blocks of a sequence that were fetched ahead; numbers above those of a history that another
process wrote.
Never: waits in `mint`; gives a number twice, whatever becomes of the process that fetched its block.
Was wrong once: blocks alone. An actor came over from a process with a newer block, and its next turn was numbered
below its last: the history read backwards.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from onefold.store.postgres.ddl import BLOCK
from onefold.store.postgres.failing import STORE
from onefold.terms.errors import OnefoldError, StoreUnavailable

AHEAD = 2  # blocks kept; why: more than the 512 turns of a commit with all they owe can use up before the next arrive
MOST = 16
_FARTHEST = 300_000  # blocks that are passed over at once, for a number that nobody minted

Fetch = Callable[[str, int], Awaitable[list[int]]]


class Numbers:
    """The numbers of one world, by table."""

    def __init__(self, fetch: Fetch) -> None:
        """`fetch`: the first numbers of the last `AHEAD` of so many new blocks of a table, at least."""
        self._fetch = fetch
        self._blocks: dict[str, deque[range]] = {}
        self._wants: dict[str, int] = {}
        self._coming: dict[str, asyncio.Task[None]] = {}

    def mint(self, table: str) -> int:
        """The next number. Raises: StoreUnavailable when more were used at once than were fetched; more come."""
        blocks = self._blocks[table]
        if not blocks:
            self._wants[table] = min(MOST, 2 * self._wants[table])
            self._more(table)
            raise StoreUnavailable(STORE, "the numbers for its rows ran out before new ones arrived")
        block = blocks[0]
        number = block.start
        if len(block) > 1:
            blocks[0] = range(number + 1, block.stop)
        else:
            blocks.popleft()
        if len(blocks) < self._wants[table] and table not in self._coming:
            self._more(table)
        return number

    async def known(self, tables: Iterable[str]) -> None:
        """From now on there are numbers for these. Raises: StoreUnavailable."""
        for table in tables:
            if table not in self._blocks:
                first = await self._fetch(table, AHEAD)
                self._wants.setdefault(table, AHEAD)
                self._blocks.setdefault(table, deque()).extend(map(_block, first))

    async def above(self, table: str, number: int) -> None:
        """From now on this table's numbers are above `number`. Raises: StoreUnavailable."""
        for tried in range(4):
            if self._raised(table, number):
                self._wants[table] = min(self._wants[table], MOST)
                return
            if tried == 2:  # what was on its way when it was read has come: somebody wrote a number that nobody minted
                gap = max(0, number - self._blocks[table][-1].stop) // BLOCK if self._blocks[table] else 0
                self._wants[table] = min(_FARTHEST, gap + AHEAD)
            self._more(table)
            await asyncio.shield(self._coming[table])
        raise StoreUnavailable(STORE, "the numbers for its rows ran out before new ones arrived")

    def _raised(self, table: str, number: int) -> bool:
        """Let go of what is not above it, once something is: until then, others are given what there is."""
        blocks = self._blocks[table]
        if not blocks or blocks[-1].stop - 1 <= number:
            return False
        while blocks[0].start <= number:
            block = blocks.popleft()
            if block.stop - 1 > number:
                blocks.appendleft(range(number + 1, block.stop))
        return True

    def behind(self, table: str, number: int) -> bool:
        """Whether the next number would not be above this one."""
        blocks = self._blocks.get(table)
        return blocks is not None and (not blocks or blocks[0].start <= number)

    def close(self) -> None:
        for task in self._coming.values():
            task.cancel()

    def _more(self, table: str) -> None:
        if table not in self._coming:
            self._coming[table] = asyncio.get_running_loop().create_task(self._fill(table))

    async def _fill(self, table: str) -> None:
        try:
            first = await self._fetch(table, self._wants[table])
            self._blocks[table].extend(map(_block, first))
        except OnefoldError:
            pass  # whoever needs a number before the next try is told
        finally:
            del self._coming[table]


def _block(first: int) -> range:
    return range(first, first + BLOCK)
