"""reflex.part - `Reflexes`, the value that an app is given: where definitions are, and what they may name.

For: one source of definitions with the effects and selections that it may use.
Never: reads a file before the app opens; registers anything by being imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from onefold.reflex.seams import Effect, Transform

if TYPE_CHECKING:
    from onefold.reflex.selects import AnySelect
    from onefold.reflex.sql_effect import SqlEffect

Source: TypeAlias = "Path | Sequence[Mapping[str, Any]]"
"""A file, a folder of `*.json`, or definitions. A file holds one definition or a list of them."""


class Reflexes:
    """Automations as a part of an app. `transform` stands in for the templates with CEL leaves.

    egress: the https origins that the effect `http` may call, exactly these; as a mapping, each with the "env:NAME" of
    the variable that holds its bearer token.
    """

    def __init__(
        self,
        source: Source = (),
        *,
        effects: Iterable[Effect | SqlEffect] = (),
        selects: Iterable[AnySelect] = (),
        transform: Transform | None = None,
        egress: Iterable[str] | Mapping[str, str] = (),
    ) -> None:
        self.source = source
        self.effects = tuple(effects)
        self.selects = tuple(selects)
        self.transform = transform
        self.egress: Mapping[str, str | None] = egress if isinstance(egress, Mapping) else dict.fromkeys(egress)
