"""reflex.part - `Reflexes`, the value that an app is given: where definitions are, and what they may name.

For: one source of definitions with the effects and selections that it may use.
Never: reads a file before the app opens; registers anything by being imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from onefold.reflex.seams import Effect, Transform

Source: TypeAlias = "Path | Sequence[Mapping[str, Any]]"
"""A file, a folder of `*.json`, or definitions. A file holds one definition or a list of them."""


class Reflexes:
    """Automations as a part of an app. `transform` stands in for the templates with CEL leaves."""

    def __init__(
        self,
        source: Source = (),
        *,
        effects: Iterable[Effect] = (),
        selects: Iterable[Any] = (),
        transform: Transform | None = None,
    ) -> None:
        self.source = source
        self.effects = tuple(effects)
        self.selects = tuple(selects)
        self.transform = transform
