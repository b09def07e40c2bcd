"""testing.faulty_disk.tape - what was done to a folder's files, and what of it a power cut would leave.

For: `Tape`, every change in order with notes between them; `Platter`, which plays a tape up to any place
and gives the files as they may be found after the power went there.
Never: touches a disk; decides what must be there (the test knows what was acknowledged).
Was wrong once: an unlink that might come undone alone. No filesystem does that: names change in their
order, so that a cut takes the newest of them and no other.

The rules are those of a disk that may do all that it is allowed to: what was synced is there; of what was
not, any part, in pieces of a sector, one of them torn; names up to some place in their order. A failed sync
is what Linux makes of it: the cache still shows what was written, the disk may never get it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

SECTOR = 512
SHARES = (0.0, 0.5, 0.5, 0.9, 1.0)  # of what was not synced that a cut leaves, one of them an image


@dataclass(frozen=True, slots=True)
class Made:
    """A name for a new, empty file."""

    name: str
    file: int


@dataclass(frozen=True, slots=True)
class Gone:
    """A name was taken away."""

    name: str


@dataclass(frozen=True, slots=True)
class Wrote:
    file: int
    at: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """A file has `size` bytes from now on."""

    file: int
    size: int


@dataclass(frozen=True, slots=True)
class Synced:
    """A file was synced. `names`: the folder with it, as SQLite does for a file that it made."""

    file: int
    names: bool = False


@dataclass(frozen=True, slots=True)
class SyncFailed:
    file: int


@dataclass(frozen=True, slots=True)
class NamesSynced:
    """The folder was synced."""


@dataclass(frozen=True, slots=True)
class Note:
    """Not of the disk: what the test knows at this place, for instance that something was acknowledged."""

    said: Any


Op: TypeAlias = "Made | Gone | Wrote | Cut | Synced | SyncFailed | NamesSynced | Note"


class Tape:
    """A list of what happened. `files` says which file has a name now."""

    def __init__(self, behind: Platter | None = None) -> None:
        """`behind`: the disk as the process before left it, on which this tape will be played."""
        self.ops: list[Op] = []
        self.files: dict[str, int] = {} if behind is None else behind.names_now()
        self.stopped = False
        self._next = 1_000 if behind is None else 1_000 + max(self.files.values(), default=0)

    def record(self, op: Op) -> None:
        if not self.stopped:
            self.ops.append(op)

    def file(self, name: str, *, new: bool) -> int:
        """The file with this name, made now where it is not there."""
        if new or name not in self.files:
            self._next += 1
            self.files[name] = self._next
            self.record(Made(name, self._next))
        return self.files[name]

    def gone(self, name: str) -> None:
        if self.files.pop(name, None) is not None:
            self.record(Gone(name))

    def notes(self, until: int) -> list[Any]:
        """What was noted among the first `until` operations."""
        return [op.said for op in self.ops[:until] if isinstance(op, Note)]


@dataclass(slots=True)
class _File:
    solid: bytearray = field(default_factory=bytearray)
    loose: list[Wrote | Cut] = field(default_factory=list)


class Platter:
    """A disk on which a tape is played. `lying`: it says that it synced, and does not."""

    def __init__(self, *, lying: bool = False, seed: object = 0) -> None:
        self._lying = lying
        self._chance = random.Random(f"platter {seed}")  # noqa: S311 - a test is seeded, not secret
        self._files: dict[int, _File] = {}
        self._names: dict[str, int] = {}
        self._loose_names: list[Made | Gone] = []

    @classmethod
    def holding(cls, files: dict[str, bytes], *, lying: bool = False) -> Platter:
        """A disk on which these files are, synced, before anything is played."""
        platter = cls(lying=lying)
        for number, (name, content) in enumerate(files.items(), start=1):
            platter._files[number] = _File(bytearray(content))
            platter._names[name] = number
        return platter

    def play(self, op: Op) -> None:
        match op:
            case Made(file=file):
                self._files[file] = _File()
                self._loose_names.append(op)
            case Gone():
                self._loose_names.append(op)
            case Wrote(file=file) | Cut(file=file):
                self._files[file].loose.append(op)
            case Synced(file, names):
                self._sync(file)
                if names:
                    self._sync_names()
            case SyncFailed(file):
                found = self._files[file]
                found.loose = list(_some(found.loose, self._chance, 0.5))
            case NamesSynced():
                self._sync_names()
            case Note():
                pass

    def _sync(self, file: int) -> None:
        if not self._lying:
            found = self._files[file]
            for op in found.loose:
                _apply(found.solid, op)
            found.loose.clear()

    def _sync_names(self) -> None:
        _rename(self._names, self._loose_names)
        self._loose_names.clear()

    def after_a_cut(self, seed: object) -> dict[str, bytes]:
        """The files as one power cut may leave them. Another seed is another cut."""
        chance = random.Random(f"cut {seed}")  # noqa: S311 - as above
        names = dict(self._names)
        _rename(names, self._loose_names[: chance.randint(0, len(self._loose_names))])
        left = {}
        for name, file in names.items():
            found = self._files[file]
            content = bytearray(found.solid)
            for op in _some(found.loose, chance, chance.choice(SHARES)):
                _apply(content, op)
            left[name] = bytes(content)
        return left

    def names_now(self) -> dict[str, int]:
        names = dict(self._names)
        _rename(names, self._loose_names)
        return names

    def after_a_kill(self) -> dict[str, bytes]:
        """The files as the next process finds them: everything is in the system's cache."""
        left = {}
        for name, file in self.names_now().items():
            found = self._files[file]
            content = bytearray(found.solid)
            for op in found.loose:
                _apply(content, op)
            left[name] = bytes(content)
        return left


def _some(ops: list[Wrote | Cut], chance: random.Random, share: float) -> Iterator[Wrote | Cut]:
    """Part of what was not synced, in its order: each sector of each write by itself, now and then half of one."""
    for op in ops:
        if isinstance(op, Cut):
            if chance.random() < share:
                yield op
            continue
        at, end = op.at, op.at + len(op.data)
        while at < end:
            upto = min(end, (at // SECTOR + 1) * SECTOR)
            if chance.random() < share:
                kept = upto if share == 1.0 or chance.random() < 0.9 else chance.randint(at, upto)
                yield Wrote(op.file, at, op.data[at - op.at : kept - op.at])
            at = upto


def _apply(content: bytearray, op: Wrote | Cut) -> None:
    if isinstance(op, Cut):
        if op.size < len(content):
            del content[op.size :]
        else:
            content.extend(bytes(op.size - len(content)))
        return
    if op.at > len(content):
        content.extend(bytes(op.at - len(content)))
    content[op.at : op.at + len(op.data)] = op.data


def _rename(names: dict[str, int], ops: list[Made | Gone]) -> None:
    for op in ops:
        if isinstance(op, Made):
            names[op.name] = op.file
        else:
            names.pop(op.name, None)
