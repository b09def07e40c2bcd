"""node.blobs - one space's blobs: put, got, checked.

For: the shell around kernel.blob: the bytes of a fold's commit, and bytes by digest for whoever may have them.
Never: answers a put before it is durable; gives bytes that do not have their digest.
Was wrong once: a digest checked where bytes are written. What a disk lost later was never noticed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from onefold.kernel.blob import (
    BLOB,
    BLOB_PART,
    Spill,
    address_of,
    digest_of,
    digest_text,
    lookup,
    pointed,
    writes,
)
from onefold.store.contract import Answer, Done, Last, Query, Refused, Row, Space, Verb
from onefold.store.folder import Folder
from onefold.terms.codec import digest
from onefold.terms.damage import BlobDamaged
from onefold.terms.errors import NotFound, OnefoldError, OutcomeUnknown, TooLarge
from onefold.terms.ids import Principal
from onefold.terms.limits import MAX_BLOB_BYTES

_N, _DIGEST, _SIZE, _FILE = (BLOB.at[name] for name in ("n", "digest", "size", "file"))
_BYTES = BLOB_PART.at["bytes"]


class Waiting(Protocol):
    """A turn that waits for its first reply: see node.resident."""

    stored: bytes | None
    resident: Any

    def answer_again(self, stored: bytes, /) -> None: ...
    def landed(self, reply: Any, fault: OnefoldError | None, /) -> None: ...


class Noted:
    """The addresses that folds of any space of the host name, while a sweep is looking."""

    def __init__(self) -> None:
        self.seen: set[Any] | None = None

    @contextmanager
    def on(self) -> Iterator[None]:
        self.seen = set()
        try:
            yield
        finally:
            self.seen = None


class Blobs:
    """The blobs of `space`. `files`: the folder beside it; with `filed` new bytes go there, else into the space."""

    def __init__(
        self,
        space: Space,
        now: Callable[[], int],
        files: Folder | None = None,
        *,
        filed: bool = False,
        noted: Noted | None = None,
    ) -> None:
        self.space = space
        self.noted = noted if noted is not None else Noted()
        self.files = files
        self.filed = filed and files is not None
        self.now = now
        self._answering: set[asyncio.Task[None]] = set()

    # --- putting ----------------------------------------------------------------------------

    def spill(self, principal: Principal, data: bytes) -> Spill:
        """Bytes for the commit to come; nothing is kept yet."""
        told = digest(data)
        address, n = address_of(principal, told), self.space.mint(BLOB)
        # The number makes the name of each write its own: what is swept under one name is never the next one's file.
        return Spill(n, address, principal, told, data, f"{address.hex()}.{n}" if self.filed else None)

    def about_to_commit(self, spills: Sequence[Spill], refs: Sequence[Row]) -> None:
        """A fold that spills or refers is decided. Its files are durable when this returns; nobody finds them yet."""
        if self.noted.seen is not None:
            self.noted.seen.update(ref[0] for ref in refs)
        for spill in spills:
            self._write(spill)

    def _write(self, spill: Spill) -> None:
        if spill.file is not None and self.files is not None:
            self.files.write(spill.file, spill.data, self.now())

    async def put(self, principal: Principal, data: bytes) -> str:
        """Keep these bytes; their digest once they are durable. Putting them again mends what was damaged.

        Raises: TooLarge, StoreUnavailable, OutcomeUnknown.
        """
        if len(data) > MAX_BLOB_BYTES:
            raise TooLarge("the blob", len(data), MAX_BLOB_BYTES, "put it in parts")
        spill = self.spill(principal, data)
        if spill.file is not None:
            await asyncio.to_thread(self._write, spill)

        def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[None]]:
            (met,) = yield (lookup([spill.address]),)
            return Last(tuple(writes([spill], (), met, self.now())), None)

        outcome = await self.space.transact(body)
        if isinstance(outcome, Refused):
            raise outcome.error
        if not isinstance(outcome, Done):
            raise OutcomeUnknown(digest_text(spill.digest)) from outcome.error
        return digest_text(spill.digest)

    # --- getting ----------------------------------------------------------------------------

    async def get(self, principal: Principal, text: str) -> bytes:
        """The bytes this principal put under this digest. Raises: NotFound, BlobDamaged, StoreUnavailable."""
        wanted = digest_of(text)
        found = None if wanted is None else await self._found(principal, wanted)
        if found is None:
            raise NotFound("blob", str(text))
        return found

    async def fetch(self, principal: Principal, wanted: bytes) -> bytes:
        """The bytes that a row of this space points at. Raises: BlobDamaged, StoreUnavailable."""
        found = await self._found(principal, wanted)
        if found is None:
            raise BlobDamaged(digest_text(wanted), "a row points at it, and it is gone")
        return found

    async def _found(self, principal: Principal, wanted: bytes) -> bytes | None:
        row = await self._row(principal, wanted)
        while row is not None:
            try:
                return await self.bytes_of(row)
            except BlobDamaged:
                found, row = row, await self._row(principal, wanted)
                if row == found:
                    raise  # it was not put anew or swept between the two looks
        return None

    async def bytes_of(self, row: Row) -> bytes:
        """The bytes of a row of BLOB, checked. Raises: BlobDamaged, StoreUnavailable."""
        name = row[_FILE]
        if name is not None and self.files is None:
            raise BlobDamaged(digest_text(_told(row)), "its bytes are in a folder that this store does not have")
        if name is not None and self.files is not None:
            data = await asyncio.to_thread(self.files.read, str(name))
            if data is None:
                raise BlobDamaged(digest_text(_told(row)), "its file is gone")
        else:
            (parts,) = await self.space.look(Query(BLOB_PART, where=(("blob", "=", row[_N]),), order=("no",)))
            data = b"".join([part[_BYTES] for part in parts])
        if len(data) != row[_SIZE]:
            raise BlobDamaged(digest_text(_told(row)), f"{len(data)} of its {int(row[_SIZE] or 0)} bytes are there")
        if digest(data) != row[_DIGEST]:
            raise BlobDamaged(digest_text(_told(row)), "its bytes are others than were put")
        return data

    async def _row(self, principal: Principal, wanted: bytes) -> Row | None:
        (rows,) = await self.space.look(Query(BLOB, on=("address",), keys=[(address_of(principal, wanted),)]))
        return rows[0] if rows else None

    # --- answering a repeat -----------------------------------------------------------------

    def answer(self, turn: Waiting) -> None:
        """Tell a turn its first reply, once it has been read. Returns at once."""
        task = asyncio.get_running_loop().create_task(self._answer(turn))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, turn: Waiting) -> None:
        try:
            raw = await self.fetch(turn.resident.at.principal, pointed(turn.stored or b"") or b"")
        except OnefoldError as fault:
            turn.landed(None, fault)
        else:
            turn.answer_again(raw)


def _told(row: Row) -> bytes:
    told = row[_DIGEST]
    assert isinstance(told, bytes)
    return told
