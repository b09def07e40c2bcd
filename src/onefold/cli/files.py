"""cli.files - which files an app is made of, and which of them changed.

For: a picture of the Python files below some folders, and of those JSON files that hold automations; the difference of
two pictures.
Never: waits, reads a file twice, follows the system's notices (they differ by platform and get lost).
Was wrong once: watching everything below the working folder. The store's own files changed with
every commit, and `dev` reloaded itself for ever.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from onefold.host.config import FILE

MOST = 10_000  # files; a picture of so many takes about 50 ms, and nobody's app is that large
PASSED_OVER = frozenset({"__pycache__", "node_modules", "site-packages"})
Picture = Mapping[Path, tuple[int, int]]  # each file: when it was last changed (ns), and its size


def picture(folders: Iterable[Path], ending: str = ".py", most: int = MOST) -> Picture:
    """The Python files (those of `ending`) and onefold.toml below `folders`, hidden folders and environments left
    out. Ends soon after it has seen `most`."""
    seen: dict[Path, tuple[int, int]] = {}
    for folder in folders:
        for place, below, names in os.walk(folder):
            below[:] = [name for name in sorted(below) if not _passed_over(Path(place, name))]
            for name in names:
                if name.endswith(ending) or name == FILE:
                    _add(seen, Path(place, name))
            if len(seen) >= most:
                return seen
    return seen


class Looking:
    """Pictures of the same folders, one after another. Of JSON files, those that hold automations: any other is data,
    which an app itself may write."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._read: dict[Path, tuple[tuple[int, int], bool]] = {}

    def __call__(self) -> Picture:
        json = picture(self._folders, ".json")
        return {**picture(self._folders), **{file: seen for file, seen in json.items() if self._holds(file, seen)}}

    def _holds(self, file: Path, seen: tuple[int, int]) -> bool:
        known = self._read.get(file)
        if known is None or known[0] != seen:
            from onefold.reflex.checking import is_definitions

            try:
                held = is_definitions(file.read_bytes())
            except OSError:
                held = False
            known = self._read[file] = (seen, held or (known is not None and known[1]))
        return known[1]


def _passed_over(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in PASSED_OVER or (folder / "pyvenv.cfg").exists()


def _add(seen: dict[Path, tuple[int, int]], file: Path) -> None:
    try:
        found = file.stat()
    except OSError:
        return  # gone between the list and the look: the next picture is without it too
    seen[file] = (found.st_mtime_ns, found.st_size)


def changed(before: Picture, after: Picture) -> list[Path]:
    """The files that came, went or differ, by name."""
    return sorted(file for file in before.keys() | after.keys() if before.get(file) != after.get(file))
