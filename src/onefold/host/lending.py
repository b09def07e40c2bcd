"""host.lending - what another node may ask about an author's database: tables, rows, the whole of it in pieces.

For: an export that somebody asked of a node which has not the file. It is made here, kept for as long as pieces of it are
fetched, and gone a little later.
Never: more than a few at once; an answer that waits as long as the making may take.
Was wrong once: one answer for the whole. What took longer to make than a request may last was begun again, and again.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import BinaryIO, Final

from onefold.fleet.abroad import PIECE, authored
from onefold.host.exporting import export_of
from onefold.store.contract import AuthorSpace
from onefold.terms.codec import Json
from onefold.terms.errors import BadArguments, Busy, Fault, StoreUnavailable

MOST: Final = 4
MAKING_S = 10.0  # how long one question waits for what is still made
KEPT_S = 60.0  # without a question


@dataclass(slots=True)
class _Loan:
    made: asyncio.Task[BinaryIO]
    ends: asyncio.TimerHandle | None = None


class Lending:
    """Of one node. `life`: its name and incarnation: whoever comes after it knows none of its numbers."""

    def __init__(self, life: Callable[[], str]) -> None:
        self._life = life
        self._numbers = count(1)
        self._loans: dict[str, _Loan] = {}

    async def told(self, space: AuthorSpace, asked: Mapping[str, Json]) -> Json:
        """Raises: BadArguments, NotFound, TooLarge, Busy, StoreUnavailable."""
        if asked.get("author") == "export":
            return self._begun(space, sql=bool(asked.get("sql")))
        if asked.get("author") == "piece":
            return await self._piece(space, asked.get("loan"), asked.get("at"))
        return await authored(space, asked)

    async def close(self) -> None:
        """What is being made is finished first: its thread would leave an open file behind."""
        making = [loan.made for loan in self._loans.values()]
        for name in tuple(self._loans):
            self._end(name)
        await asyncio.gather(*making, return_exceptions=True)

    def _begun(self, space: AuthorSpace, *, sql: bool) -> str:
        if len(self._loans) >= MOST:
            raise Busy("What other nodes may export here at once", MOST)
        name = f"{self._life()}/{next(self._numbers)}"
        making = asyncio.get_running_loop().create_task(export_of(space, sql=sql), name="onefold export")
        self._loans[name] = _Loan(making)
        self._keep(name)
        return name

    async def _piece(self, space: AuthorSpace, name: Json, at: Json) -> Json:
        """[the piece, whether there may be more]."""
        if not isinstance(name, str) or not isinstance(at, int) or at < 0:
            raise BadArguments([Fault("query", "is no question about an export")])
        loan = self._loans.get(name)
        if loan is None:
            raise StoreUnavailable(
                space.name, "its export was with a node that has its file no longer; ask for it anew"
            )
        self._keep(name)
        await asyncio.wait((loan.made,), timeout=MAKING_S)
        if not loan.made.done():
            return ["", True]
        piece = await asyncio.to_thread(_read, loan.made.result(), at)
        if len(piece) < PIECE:
            self._end(name)
        return [base64.b64encode(piece).decode(), len(piece) == PIECE]

    def _keep(self, name: str) -> None:
        loan = self._loans[name]
        if loan.ends is not None:
            loan.ends.cancel()
        loan.ends = asyncio.get_running_loop().call_later(KEPT_S, self._end, name)

    def _end(self, name: str) -> None:
        loan = self._loans.pop(name, None)
        if loan is None:
            return
        if loan.ends is not None:
            loan.ends.cancel()
        loan.made.add_done_callback(_closed)


def _read(file: BinaryIO, at: int) -> bytes:
    file.seek(at)
    return file.read(PIECE)


def _closed(made: asyncio.Task[BinaryIO]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()
