"""host.drawing - the graph of an app's reflexes, without opening the app.

For: `onefold graph`: what its files say, against the effects and selections that it brings.
Never: opens a store; runs an effect; refuses: what is wrong is told beside the drawing.
Was wrong once: drawn from the opened app. Whoever wanted to look at a change had to arm it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, cast

from onefold.host.catalog import catalog
from onefold.host.core import Core
from onefold.host.reflex_effects import standing
from onefold.host.reflex_seams import Seams
from onefold.ports.http import NAME as HTTP
from onefold.ports.telling import NAME as NOTIFY
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
    own = [*standing(only_named, _never, _never, _never), *(_Named(name) for name in (HTTP, NOTIFY))]
    seams = Seams(only_named, _Named)
    selects = seams.selects()
    language = CelTransform().findings if all(part.transform is None for part in known.reflexes) else None
    seen = look(placed, Known(seams.effects(own), selects.names, language, selects.findings))
    return Drawn(seen.graph.text(), seen.graph.dot(), (*found, *seen.findings))


class _Named:
    """Stands for an effect that leaves the app, and for a database: a name, and what it writes, which is nothing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.writes: Sequence[str] | None = ()
        self.run = self.rows = self.change = _never

    def show(self, input: Any, /) -> str | None:
        return None


async def _never(*args: Any, **values: Any) -> Any:
    """Stands for the verbs of a host; nothing is run here."""
