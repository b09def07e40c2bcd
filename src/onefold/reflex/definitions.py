"""reflex.definitions - a definition by the hash that a run pins, whatever set is loaded now.

For: runs and tasks that go on under the version they began with, on any engine.
Never: changes one; a hash names its content for ever.
Was wrong once: a run that asked the loaded set for its reflex. A node that had another set threw the run away.
"""

from __future__ import annotations

from collections.abc import Collection

from onefold.reflex import grammar
from onefold.reflex.tables import REFLEX_TEXT
from onefold.reflex.words import Reflex
from onefold.store.contract import Query, Space
from onefold.terms import codec
from onefold.terms.errors import OnefoldError

KEPT = 4_096
"""Definitions kept at hand; a few KB each."""


class Definitions:
    """Those that were asked for, by version."""

    def __init__(self) -> None:
        self._known: dict[str, Reflex] = {}

    async def of(self, space: Space, versions: Collection[str]) -> dict[str, Reflex | str]:
        """The reflex behind each version, or why this code has none. `enabled` is nothing a version knows."""
        missing = [version for version in versions if version not in self._known]
        told: dict[str, Reflex | str] = {}
        if missing:
            if len(self._known) + len(missing) > KEPT:
                self._known.clear()
            (rows,) = await space.look(Query(REFLEX_TEXT, keys=[(version,) for version in missing]))
            for version, raw in rows:
                told[str(version)] = self._read(str(version), raw)
        for version in versions:
            told.setdefault(version, self._known.get(version, f"its definition {version[:12]} is not in the store"))
        return told

    def _read(self, version: str, raw: object) -> Reflex | str:
        assert isinstance(raw, bytes)
        try:
            self._known[version] = grammar.parse(codec.parse(raw, "a definition"), version[:12])
        except OnefoldError as fault:
            return f"this code does not read its definition: {fault}"
        return self._known[version]
