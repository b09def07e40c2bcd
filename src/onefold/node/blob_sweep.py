"""node.blob_sweep - blobs that nothing refers to any more, found a few at a time and taken away.

For: one space's blobs in the order they were put: which are condemned, pardoned, removed; files without a row.
Never: takes one that a row names, that a fold on its way names, or that was put a short while ago.
Was wrong once: one look and then the removal. Between the two a fold had named the blob.

A blob goes when it was found twice with nobody referring to it, an hour apart, the second time in the very
transaction that removes it. A reference counts while the row it names is there and still names the blob, so
whoever prunes, drops or forgets rows need not know of blobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onefold.kernel.blob import BLOB, BLOB_PART, BLOB_REF, live, lookup, verdict
from onefold.kernel.tables import OWED, TURN
from onefold.node.blobs import Blobs
from onefold.node.owning import UNGUARDED, Guard
from onefold.store.contract import Answer, Each, Last, Put, Query, Refused, Remove, Row, Unknown, Verb, Write
from onefold.store.folder import SHARDS
from onefold.terms.errors import OutcomeUnknown
from onefold.terms.limits import BLOB_DELAY_MS, BLOB_GRACE_MS, BLOBS_A_BEAT, MAX_BLOB_BYTES

Look = Callable[[Query], Awaitable[Sequence[Row]]]

REST_MS = 15 * 60_000  # once all were looked at: what is condemned waits an hour, so that nothing is missed by it
REFS = 4  # references of one blob that one round looks at; the rest is looked at when these turn out false
NAMES = 512  # files asked for in one question

_N, _ADDRESS, _SIZE = BLOB.at["n"], BLOB.at["address"], BLOB.at["size"]
_DIGEST, _AT, _FILE, _CONDEMNED = BLOB.at["digest"], BLOB.at["at"], BLOB.at["file"], BLOB.at["condemned"]
_TEXTS = {"turn": (TURN, (TURN.at["reply"], TURN.at["facts"])), "owed": (OWED, (OWED.at["bytes"],))}


@dataclass(frozen=True, slots=True)
class Cleared:
    """What a round came to. more: it could see further."""

    condemned: int = 0
    removed: int = 0
    files: int = 0
    more: bool = False


@dataclass(slots=True)
class _Plan:
    """What one transaction does."""

    put: list[Row] = field(default_factory=list)
    gone: list[Row] = field(default_factory=list)
    false: list[Row] = field(default_factory=list)  # references to be taken away


class BlobSweep:
    """Sweeps the blobs of one space, so many a round. Remembers where it was."""

    def __init__(
        self,
        blobs: Blobs,
        look: Look,
        elsewhere: Sequence[Look] = (),
        guard: Callable[[], Guard] = lambda: UNGUARDED,
    ) -> None:
        """look: reads the space without opening it. elsewhere: other spaces whose rows may name these blobs. guard: what a
        round goes by, of a fleet."""
        self._guard = guard
        self._blobs = blobs
        self._look = look
        self._elsewhere = elsewhere
        self._after = 0
        self._shard = 0
        self._rests_until = 0

    async def round(self) -> Cleared:
        """Look at some more blobs, and at some more files. Raises: StoreUnavailable, OutcomeUnknown, OwnedElsewhere."""
        now, guard = self._blobs.now(), self._guard()
        files = await self._files(now)
        if now < self._rests_until:
            return Cleared(files=files)
        page = await self._look(Query(BLOB, where=(("n", ">", self._after),), order=("n",), limit=BLOBS_A_BEAT))
        more = len(page) == BLOBS_A_BEAT
        with self._blobs.noted.on():
            plan = await self._sweep(page, now, guard)
        self._after = int(page[-1][_N] or 0) if more else 0
        self._rests_until = now if more else now + REST_MS
        condemned = sum(row[_CONDEMNED] is not None for row in plan.put)
        return Cleared(condemned, len(plan.gone), files, more)

    async def _sweep(self, page: Sequence[Row], now: int, guard: Guard) -> _Plan:
        old = [row for row in page if row[_CONDEMNED] is not None or now - int(row[_AT] or 0) >= BLOB_GRACE_MS]
        if not old:
            return _Plan()
        named = await named_in(self._look, old)
        doubtful = [row for row in old if row[_ADDRESS] not in named or row[_CONDEMNED] is not None]
        if not doubtful:
            return _Plan()
        away: set[Any] = set()
        for look in self._elsewhere:
            away |= await named_in(look, doubtful)
            await asyncio.sleep(0)  # each look at a file holds the loop for a moment
        outcome = await self._blobs.space.transact(guard.around(lambda: self._body(doubtful, away, now)))
        if isinstance(outcome, Refused):
            raise outcome.error
        if isinstance(outcome, Unknown):
            raise OutcomeUnknown("the sweep of blobs")
        plan = outcome.value
        for row in plan.gone:
            if row[_FILE] is not None and self._blobs.files is not None:
                await asyncio.to_thread(self._blobs.files.remove, str(row[_FILE]))
        return plan

    def _body(
        self, doubtful: Sequence[Row], away: set[Any], now: int
    ) -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[_Plan]]:
        """Ask again what was seen before, and write what that comes to."""
        addresses = [row[_ADDRESS] for row in doubtful]
        rows, refs = yield lookup(addresses), _refs(addresses, REFS)
        texts = _texts_of(refs, (yield _questions(refs)) if refs else ())
        plan, bytes_gone = _Plan(), 0
        noted = self._blobs.noted.seen or ()
        for row in rows:
            mine = [ref for ref in refs if ref[0] == row[_ADDRESS]]
            true = live(mine, texts, _bytes(row[_DIGEST]))
            plan.false.extend(ref for ref in mine if ref not in true)
            unread = not true and len(mine) == REFS
            referred = bool(true) or unread or row[_ADDRESS] in away or row[_ADDRESS] in noted
            match verdict(row, now, referred=referred, grace=BLOB_GRACE_MS, delay=BLOB_DELAY_MS):
                case "condemn":
                    plan.put.append(_with(row, now))
                case "pardon":
                    plan.put.append(_with(row, None))
                case "remove" if bytes_gone < MAX_BLOB_BYTES:
                    bytes_gone += int(row[_SIZE] or 0)
                    plan.gone.append(row)
        return Last(_writes(plan), plan)

    async def _files(self, now: int) -> int:
        """Files that no row names, of one folder of many: of puts that were cut off, and of blobs put anew."""
        files = self._blobs.files
        if files is None:
            return 0
        self._shard, shard = (self._shard + 1) % SHARDS, self._shard
        found = await asyncio.to_thread(files.older, shard, now - BLOB_GRACE_MS)
        gone = 0
        for start in range(0, len(found), NAMES):
            names = found[start : start + NAMES]
            addresses = {address for name in names if (address := _address(name)) is not None}
            rows = await self._look(lookup(sorted(addresses)))
            kept = {row[_FILE] for row in rows}
            for name in names:
                if name not in kept and _address(name) is not None:
                    await asyncio.to_thread(files.remove, name)
                    gone += 1
        return gone


async def named_in(look: Look, rows: Sequence[Row]) -> set[Any]:
    """The addresses, of these blobs, that a row of this space names."""
    refs = await look(_refs([row[_ADDRESS] for row in rows], 1))
    if not refs:
        return set()
    answers = [await look(query) for query in _questions(refs)]
    texts = _texts_of(refs, answers)
    digests = {row[_ADDRESS]: _bytes(row[_DIGEST]) for row in rows}
    return {ref[0] for ref in refs if live([ref], texts, digests[ref[0]])}


def _refs(addresses: Sequence[Any], k: int) -> Query:
    return Query(BLOB_REF, each=Each("address", addresses, k), order=("address", "row", "n"))


def _questions(refs: Sequence[Row]) -> tuple[Query, ...]:
    """The rows that these references name."""
    asked: list[Query] = []
    for name, (table, _) in _TEXTS.items():
        keys: list[Row] = list(dict.fromkeys((ref[2],) for ref in refs if ref[1] == name))
        if keys:
            asked.append(Query(table, on=("n",), keys=keys))
    return tuple(asked)


def _texts_of(refs: Sequence[Row], answers: Sequence[Answer]) -> Mapping[tuple[str, int], Sequence[bytes | None]]:
    """The bytes of the named rows in which a blob may be named."""
    names = [name for name in _TEXTS if any(ref[1] == name for ref in refs)]
    return {
        (name, row[0]): [row[at] for at in _TEXTS[name][1]]
        for name, rows in zip(names, answers, strict=True)
        for row in rows
    }


def _writes(plan: _Plan) -> tuple[Write, ...]:
    writes: list[Write] = []
    if plan.put:
        writes.append(Put(BLOB, plan.put))
    if plan.gone:
        writes.append(Remove(BLOB, keys=[(row[_N],) for row in plan.gone]))
        writes.append(Remove(BLOB_PART, where=(("blob", "in", tuple(row[_N] for row in plan.gone)),)))
    if plan.false:
        writes.append(Remove(BLOB_REF, keys=plan.false))
    return tuple(writes)


def _with(row: Row, condemned: int | None) -> Row:
    changed = list(row)
    changed[_CONDEMNED] = condemned
    return tuple(changed)


def _address(name: str) -> bytes | None:
    """The address in a file's name; None for a file that is none of ours."""
    try:
        address = bytes.fromhex(name.partition(".")[0])
    except ValueError:
        return None
    return address if len(address) == 32 else None


def _bytes(cell: Any) -> bytes:
    assert isinstance(cell, bytes)
    return cell
