"""host.deployable - what is asked of a file before anything is started for it: its name, its size, what the fence says.

For: refusals that need no process.
Never: loads or compiles a file.
Was wrong once: the size counted in characters. A file of twice as many bytes was taken.
"""

from __future__ import annotations

from typing import Final

from onefold.terms.errors import Finding, LoadRefused, TooLarge
from onefold.terms.ids import NAME
from onefold.terms.limits import MAX_FAULTS

SOURCE_LIMIT: Final = 256 * 1024
"""Bytes of a file: a program that one person reads has a fiftieth of it."""


def file_of(name: str) -> str:
    """A file as findings call it."""
    return f"{name}.py"


def sized(file: str, source: str) -> None:
    """Raises: TooLarge."""
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > SOURCE_LIMIT:
        raise TooLarge(file_of(file), size, SOURCE_LIMIT)


def named(file: str) -> None:
    """Raises: LoadRefused for what no deployed file is called."""
    if not NAME.fullmatch(file):
        told = (
            "a deployed file has a name of lower-case letters, digits and _, beginning with a letter, at most 32 long"
        )
        raise LoadRefused([Finding(f"file {file[:64]!r}", told)])


def checked(file: str, source: str) -> None:
    """What the fence says of it. Raises: LoadRefused, as `onefold check` prints its findings."""
    from onefold.fence import Source, check

    found = check([Source(file_of(file), source.encode("utf-8", "surrogatepass"))])
    if found:
        told = [Finding(f"{one.file}:{one.line}: {one.rule}", _said(one.problem, one.instead)) for one in found]
        more = len(told) - MAX_FAULTS
        raise LoadRefused(
            told if more <= 0 else [*told[:MAX_FAULTS], Finding(file_of(file), f"has {more} more findings")]
        )


def _said(problem: str, instead: str) -> str:
    return f"{problem} {instead}".strip().removesuffix(".")
