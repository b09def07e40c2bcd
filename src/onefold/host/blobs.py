"""host.blobs - the verbs for blobs, and the beat that takes away what nothing refers to.

For: bytes that an event, a fact or an answer would name instead of holding them.
Never: gives one principal's bytes to another, whatever rights it has: a digest is no key.
Was wrong once: bytes found by digest alone. Whoever could guess a document had it confirmed that somebody keeps it.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from onefold.host.caller import Caller
from onefold.host.core import MAIN, Core
from onefold.host.guards import of_all
from onefold.host.rounds import Round
from onefold.node.blob_sweep import BlobSweep
from onefold.terms.errors import BadArguments, Fault, OnefoldError

SPACES = 8  # opened spaces that one beat looks into, in turn: a thousand of them must not hold the loop

log = logging.getLogger("onefold.blobs")


class BlobVerbs:
    """Verbs on blobs. `_core` is the opened application."""

    _core: Core

    async def blobs_put(self, data: bytes | bytearray | memoryview, *, caller: Caller) -> str:
        """Keep these bytes for the caller; their digest, `sha256:` and 64 hex digits, once they are durable.

        Raises: BadArguments, TooLarge, StoreUnavailable, OutcomeUnknown.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise BadArguments([Fault("data", "must be bytes", type(data).__name__)], nothing_was="stored")
        await self._core.space(MAIN)
        return await self._core.blobs[MAIN].put(caller.principal, bytes(data))

    async def blobs_get(self, digest: str, *, caller: Caller) -> bytes:
        """The bytes that the caller's principal put. Raises: NotFound, BlobDamaged, StoreUnavailable."""
        await self._core.space(MAIN)
        return await self._core.blobs[MAIN].get(caller.principal, digest)


class BlobJanitor:
    """At each beat a few more blobs of a few more spaces."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._sweeps: dict[str, BlobSweep] = {}
        self._turn = 0
        self.round = Round("onefold blobs", self._look_through)

    def beat(self) -> bool:
        """Returns whether the round before left something to do."""
        return self.round.begin()

    async def _look_through(self) -> bool:
        opened = sorted(self._core.blobs)
        chosen = [opened[(self._turn + k) % len(opened)] for k in range(min(SPACES, len(opened)))]
        self._turn += len(chosen)
        more = False
        for name in chosen:
            if not self._ours(name):
                continue
            try:
                cleared = await self._sweep(name).round()
            except OnefoldError as fault:
                log.warning("the blobs of %s were not looked through: %s", name, fault)
            else:
                more |= cleared.more
        return more

    def _ours(self, name: str) -> bool:
        """One node of a fleet goes through the spaces that it shares."""
        slots, standing = self._core.shared_slots(), self._core.standing
        return standing is None or slots is None or name in standing.apart or 0 in slots

    def _sweep(self, name: str) -> BlobSweep:
        """One space's sweep. What `main` holds may be named in any space; what another holds, only there."""
        known = self._sweeps.get(name)
        if known is None:
            looks: dict[str, Any] = {place.name: place.look for place in self._core.places}
            elsewhere = [look for other, look in looks.items() if other != name] if name == MAIN else []
            known = self._sweeps[name] = BlobSweep(
                self._core.blobs[name], looks[name], elsewhere, partial(of_all, self._core.standing, name)
            )
        return known
