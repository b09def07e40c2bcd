"""host.reflex_seams - what the reflexes of an app may ask and do, out of its parts.

For: the selections and effects that `Reflexes` bring, joined with the databases of this app, beside those that exist by
themselves.
Never: lets a part take the name of what exists by itself.
Was wrong once: two parts with an effect of one name. The one that was given last acted for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from onefold.host.core import MAIN, Core
from onefold.host.reflex_databases import Databases
from onefold.reflex.effects import Effects
from onefold.reflex.ledger_selects import ledger_selects
from onefold.reflex.seams import Effect
from onefold.reflex.selects import Selects
from onefold.terms.errors import Finding, LoadRefused


class Seams:
    """Made when an engine is. Raises: LoadRefused, with all that is wrong. standing_in: for databases, where nothing is
    asked."""

    def __init__(self, core: Core, standing_in: Callable[[str], Any] | None = None) -> None:
        self._core = core
        if standing_in is not None:
            self._asked, self._changed = standing_in, lambda on: standing_in(on).change
            return
        databases = Databases(core.config, core.space, core.catalog.actuators)
        self._asked, self._changed = databases.asked, databases.changed

    def selects(self) -> Selects:
        """Those of the parts, and those over the ledger."""
        brought = _each(select for part in self._core.catalog.reflexes for select in part.selects)
        return Selects([*ledger_selects(lambda: self._core.space(MAIN)), *brought], self._asked)

    def effects(self, own: Iterable[Effect]) -> Effects:
        """Those of the parts, and `own`, which exist by themselves. Raises: LoadRefused where one has the name of another."""
        standing = {effect.name: effect for effect in own}
        brought = _each(effect for part in self._core.catalog.reflexes for effect in part.effects)
        told = "exists by itself in this app; give yours another name"
        taken = [name for effect in brought if (name := getattr(effect, "name", None)) in standing]
        if taken:
            raise LoadRefused([Finding(f"effect {name}", told) for name in taken])
        return Effects([*standing.values(), *brought], self._changed)


def _each(given: Iterable[Any]) -> list[Any]:
    """Each once: two parts may share one."""
    return list({id(one): one for one in given}.values())
