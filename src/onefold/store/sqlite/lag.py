"""store.sqlite.lag - a lookup that is written late: what memory holds, and what is still to be written.

For: one map from key to number over a table that lags behind it; layers for open savepoints,
two generations, sorted slices.
Never: sends a statement; reads the table (chain does both).

Layers, newest first: each open savepoint's, the transaction's, `young`, `old`, then the table.
A None in a layer says that the key was removed in this transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

MISSING: Final = object()
Number = int | None


class Lag:
    """One lagging map. `old` is being written, `young` collects; neither is lost before the table has it."""

    def __init__(self) -> None:
        self.young: dict[Any, int] = {}
        self.old: dict[Any, int] = {}
        self.layers: list[dict[Any, Number]] = []
        self._todo: list[Any] = []
        self._done = 0

    def start(self, entries: dict[Any, int]) -> None:
        """Begin anew with `entries`, all of them still to be written."""
        self.young, self.old, self.layers = {}, entries, []
        self._todo = sorted(entries)
        self._done = 0

    # --- asking --------------------------------------------------------------------------------

    def get(self, key: Any) -> Any:
        """The number, None when it was removed just now, or MISSING when only the table knows."""
        for layer in reversed(self.layers):
            if key in layer:
                return layer[key]
        if key in self.young:
            return self.young[key]
        return self.old.get(key, MISSING)

    def unknown(self, keys: Sequence[Any]) -> bool:
        """Whether memory holds none of `keys`."""
        return (
            self.young.keys().isdisjoint(keys)
            and self.old.keys().isdisjoint(keys)
            and all(not layer or layer.keys().isdisjoint(keys) for layer in self.layers)
        )

    # --- the transaction -------------------------------------------------------------------------

    def note(self, entries: Iterable[tuple[Any, Number]]) -> None:
        self.layers[-1].update(entries)

    def keep(self) -> None:
        layer = self.layers.pop()
        self.layers[-1].update(layer)

    def commit(self, removed: bool) -> None:
        """The transaction's layer becomes part of `young`; what it wrote of `old` is done."""
        layer = self.layers[0]
        self.layers = []
        if removed:
            for key, number in layer.items():
                self.young.pop(key, None)
                self.old.pop(key, None)
                if number is not None:
                    self.young[key] = number
        else:
            self.young.update(layer)  # without removals every number is one
        if self._done:
            del self._todo[: self._done]
            self._done = 0

    def drop(self) -> None:
        """The transaction was rolled back."""
        self.layers = []
        self._done = 0

    # --- writing late ----------------------------------------------------------------------------

    @property
    def left(self) -> int:
        """How many entries of `old` are not yet written, this transaction's included as written."""
        return len(self._todo) - self._done

    def share(self, size: int) -> list[tuple[Any, int]]:
        """The next `size` entries of `old`, sorted; they count as written once the transaction committed.

        What this transaction removed or noted anew is left out: a history that was removed and begun
        again may have a lower number now, and the table keeps the higher one.
        """
        keys = self._todo[self._done : self._done + size]
        self._done += len(keys)
        layer = self.layers[0] if self.layers else {}
        return [(k, self.old[k]) for k in keys if k in self.old and k not in layer]

    def below(self, bound: int) -> list[tuple[Any, int]]:
        """Entries that are not in `old` and yet have numbers up to `bound`."""
        held: dict[Any, Number] = {**self.young, **(self.layers[0] if self.layers else {})}
        return sorted((k, n) for k, n in held.items() if n is not None and n <= bound)

    def rotate(self) -> None:
        """`young` becomes `old`, to be written; what was old is forgotten, the table has it."""
        self.old, self.young = self.young, {}
        self._todo = sorted(self.old)
        self._done = 0
