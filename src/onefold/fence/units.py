"""fence.units - the files of one check, parsed once, and which of them an import means.

For: bytes to a tree with its scopes; `import rules` to the user's own rules.py.
Never: opens a file: where the user's other files are found is handed in as a function.
Was wrong once: an import followed only where it named a file on the command line. The rules of a
module stood in a file beside it, and whoever checked the one file that had changed was told nothing.
"""

from __future__ import annotations

import ast
import sys
import warnings
from dataclasses import dataclass

from onefold.fence.binding import read
from onefold.fence.scopes import Scopes
from onefold.fence.words import Find, Source

OURS = frozenset({"onefold", *sys.stdlib_module_names})
"""Never looked for among the user's files: a `random.py` somewhere above is not what `import random` means."""


class Unreadable(ValueError):
    """No Python that this interpreter reads. `line` is where it gave up."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


@dataclass(slots=True, eq=False)
class Unit:
    """One file that was parsed."""

    file: str
    raw: bytes
    tree: ast.Module
    scopes: Scopes


def parse(source: Source) -> Unit:
    """Raises: Unreadable."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a text is the linter's business
            tree = ast.parse(source.raw, filename=source.file)
        return Unit(source.file, source.raw, tree, read(tree))
    except SyntaxError as fault:
        raise Unreadable(fault.lineno or 1, fault.msg) from None
    except ValueError as fault:  # a NUL, or bytes that are no text in the encoding the file says
        raise Unreadable(1, str(fault)) from None
    except (RecursionError, MemoryError):
        raise Unreadable(1, "it is nested too deeply to be read") from None


class Units:
    """Every file of a check, those that were only looked up included."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._units: dict[str, Unit | None] = {}
        self._meant: dict[tuple[str, str, int], Unit | None] = {}

    def add(self, source: Source) -> Unit:
        """Raises: Unreadable."""
        unit = self._units.get(source.file)
        if unit is None:
            self._units[source.file] = None  # while it is read, and for good if it cannot be
            unit = self._units[source.file] = parse(source)
        return unit

    def all(self) -> list[Unit]:
        return [unit for unit in self._units.values() if unit is not None]

    def meant(self, importer: Unit, module: str, level: int) -> Unit | None:
        """The user's file behind an import; None for a library, and for one that cannot be read."""
        asked = (importer.file, module, level)
        if asked not in self._meant:
            self._meant[asked] = self._look(importer, module, level)
        return self._meant[asked]

    def _look(self, importer: Unit, module: str, level: int) -> Unit | None:
        if not level and module.partition(".")[0] in OURS:
            return None
        source = self._find(importer.file, module, level)
        if source is None:
            return None
        if source.file in self._units:
            return self._units[source.file]
        try:
            return self.add(source)
        except Unreadable:
            return None  # a file that was asked for by name is told of; this one was not
