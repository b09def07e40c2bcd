"""host.blobs - the verbs for blobs: put and get.

For: bytes that an event, a fact or an answer would name instead of holding them.
Never: gives one principal's bytes to another, whatever rights it has: a digest is no key.
Was wrong once: bytes found by digest alone. Whoever could guess a document had it confirmed that somebody keeps it.
"""

from __future__ import annotations

from onefold.host.caller import Caller
from onefold.host.core import MAIN, Core
from onefold.terms.errors import BadArguments, Fault


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
