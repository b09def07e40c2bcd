"""reflex.source - definitions from a file, a folder or a list, each with where it came from.

For: what `Reflexes` and `onefold check` are given, as values.
Never: checks what a definition says; follows a link to another folder; reads what is no plain file.
Was wrong once: the first file that was no JSON ended the reading. The next start told of the second.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeGuard

from onefold.reflex.findings import finding, refuse
from onefold.reflex.gate import Placed
from onefold.reflex.part import Source
from onefold.terms.codec import parse
from onefold.terms.errors import BadArguments, Finding

MAX_FILE_BYTES: Final = 256 << 20
"""One file of definitions: a hundred thousand of them have about a third of it."""

MAX_FILES: Final = 100_000

BOM: Final = b"\xef\xbb\xbf"


def definitions(source: Source) -> list[Placed]:
    """Every definition of a source, in the order of the files' names. Raises: LoadRefused for what cannot be read."""
    if not isinstance(source, Path | str):
        return placed(source)
    found: list[Finding] = []
    read: list[Placed] = []
    for path in files(Path(source), found):
        if (raw := read_file(path, str(path), found)) is not None:
            read.extend(in_text(raw, str(path), found))
    refuse(found)
    return read


def placed(given: Any) -> list[Placed]:
    """Definitions that somebody holds as values; one alone is taken as a list of it. Raises: LoadRefused."""
    if isinstance(given, Mapping):
        return [(given, "")]
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        refuse(
            [finding("", "", "", f"a source is a path or a list of definitions, and this is {type(given).__name__}")]
        )
    return [item if _is_placed(item) else (item, f"[{n}]") for n, item in enumerate(given)]


def _is_placed(item: object) -> TypeGuard[Placed]:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], str)


def files(path: Path, found: list[Finding]) -> list[Path]:
    """The file, or all `*.json` in the folder and the folders below it but hidden ones."""
    if not path.is_dir():
        return [path]
    below: list[Path] = []

    def unread(fault: OSError) -> None:
        found.append(_unread(str(fault.filename or path), fault))

    for folder, folders, names in os.walk(path, onerror=unread):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        below += [Path(folder, name) for name in sorted(names) if name.endswith(".json") and not name.startswith(".")]
        if len(below) > MAX_FILES:
            found.append(
                finding(str(path), "", "", f"there are more than {MAX_FILES} files; name the folder of the definitions")
            )
            return []
    if not below and not found:
        found.append(finding(str(path), "", "", "there is no *.json file in this folder"))
    return below


def read_file(path: Path, shown: str, found: list[Finding]) -> bytes | None:
    """The bytes of a file; None with a finding where it cannot be read."""
    try:
        if not path.is_file():
            missing = not path.exists()
            found.append(finding(shown, "", "", "there is no such file" if missing else "is not a plain file"))
            return None
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            found.append(finding(shown, "", "", f"has {size} bytes; at most {MAX_FILE_BYTES} are read"))
            return None
        return path.read_bytes()
    except (OSError, ValueError) as fault:  # ValueError: a NUL in the path
        found.append(_unread(shown, fault))
    return None


def in_text(raw: bytes, shown: str, found: list[Finding]) -> list[Placed]:
    """The definitions in a file's bytes: one object, or a list of them."""
    if raw.startswith(BOM):
        found.append(finding(shown, "", "", "begins with a byte order mark; save it as UTF-8 without one"))
        return []
    try:
        value = parse(raw, "the file")
    except BadArguments as bad:
        found.extend(finding(shown, "", fault.field, fault.problem) for fault in bad.faults)
        return []
    if isinstance(value, list):
        return [(definition, f"{shown}[{n}]") for n, definition in enumerate(value)]
    return [(value, shown)]


def _unread(shown: str, fault: OSError | ValueError) -> Finding:
    why = fault.strerror if isinstance(fault, OSError) and fault.strerror else str(fault)
    return finding(shown, "", "", f"cannot be read: {why}")
