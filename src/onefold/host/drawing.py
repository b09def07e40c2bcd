"""host.drawing - the graph of an app's reflexes, without opening the app.

For: `onefold graph`: what its files say, against the effects and selections that it brings.
Never: opens a store; runs an effect; refuses: what is wrong is told beside the drawing.
Was wrong once: drawn from the opened app. Whoever wanted to look at a change had to arm it first.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

from onefold.host.catalog import catalog
from onefold.host.core import Core
from onefold.host.reflex_effects import standing
from onefold.reflex.gate import Known, look
from onefold.reflex.source import definitions
from onefold.reflex.templates import CelTransform
from onefold.reflex.words import Drawn
from onefold.terms.errors import Finding, LoadRefused


def drawn(parts: Iterable[object]) -> Drawn:
    """The graph of these parts' definitions, with everything that a start would say of them. Raises: LoadRefused."""
    known = catalog(parts, {})
    if not known.reflexes:
        raise LoadRefused([Finding("reflexes", "this app has none; give App a Reflexes(…)")])
    placed: list[Any] = []
    found: list[Finding] = []
    for part in known.reflexes:
        try:
            placed += definitions(part.source)
        except LoadRefused as refused:
            found += refused.findings
    only_named = cast(
        Core, SimpleNamespace(catalog=known)
    )  # nothing of it is run: names and writes are all that counts
    effects = {effect.name: effect for effect in standing(only_named, _never, _never)}
    effects |= {effect.name: effect for part in known.reflexes for effect in part.effects}
    selects = [select.name for part in known.reflexes for select in part.selects]
    own_language = all(part.transform is None for part in known.reflexes)
    seen = look(placed, Known(effects, selects, CelTransform().findings if own_language else None))
    return Drawn(seen.graph.text(), seen.graph.dot(), (*found, *seen.findings))


async def _never(*args: Any, **values: Any) -> Any:
    """Stands for the verbs of a host; nothing is run here."""
