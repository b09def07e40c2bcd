"""reflex.definitions - a definition by the hash that a run pins, whatever set is loaded now.

For: runs and tasks that go on under the version they began with, on any engine.
Never: changes one; a hash names its content for ever.
Was wrong once: a run that asked the loaded set for its reflex. A node that had another set threw the run away.
"""

from __future__ import annotations

from collections.abc import Collection

from onefold.reflex.load import reflex_of, texts_of
from onefold.reflex.watch import Loaded
from onefold.reflex.words import Reflex
from onefold.store.contract import Space
from onefold.terms.errors import OnefoldError

KEPT = 4_096
"""Definitions kept at hand beside the loaded set; a few KB each."""


class Definitions:
    """Those that were asked for, by version."""

    def __init__(self) -> None:
        self._known: dict[str, Reflex] = {}
        self.timeouts: dict[str, int] = {}  # in ms, by version, of those that were asked for lately

    async def of(self, space: Space, versions: Collection[str], loaded: Loaded | None) -> dict[str, Reflex | str]:
        """The reflex behind each version, or why this code has none. Raises: StoreUnavailable."""
        told: dict[str, Reflex | str] = {}
        for version in versions:
            held = self._known.get(version) or (None if loaded is None else loaded.definition(version))
            if held is not None:
                told[version] = held
        missing = [version for version in versions if version not in told]
        if missing:
            (rows,) = await space.look(texts_of(missing))
            told.update((str(version), self._read(str(version), raw)) for version, raw in rows)
        for version in versions:
            told.setdefault(version, f"its definition {version[:12]} is not in the store")
        if len(self.timeouts) + len(told) > KEPT:
            self.timeouts.clear()
        self.timeouts.update((v, one.policy.timeout_ms) for v, one in told.items() if isinstance(one, Reflex))
        return told

    def _read(self, version: str, raw: bytes) -> Reflex | str:
        try:
            reflex = reflex_of(version, raw)
        except OnefoldError as fault:
            return f"this code does not read its definition: {fault}"
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[version] = reflex
        return reflex
