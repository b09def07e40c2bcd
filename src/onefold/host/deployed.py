"""host.deployed - the rows of deployed files: each version of each file, and its text.

For: the tables, a version as a value, and the two commits that number one: pure.
Never: loads a file; numbers a version against a set that it was not judged against.
Was wrong once: the text under its digest alone. Two files of the same bytes had the description of the first.

    deployment     one row a version: `generation` counts all of them, `version` those of one file; never changed
    deployed_text  what a version says, and what its own worker read of it, under the file's name and its digest
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import json

from onefold.store.contract import (
    Answer,
    Append,
    Body,
    Column,
    Create,
    Last,
    Migration,
    Put,
    Query,
    Row,
    Schema,
    Table,
    Verb,
)
from onefold.terms.ids import Principal, principal_of, principal_text

DEPLOYMENT = Table(
    "deployment",
    (
        Column("generation", "int"),
        Column("file", "text"),
        Column("version", "int"),
        Column("digest", "text"),  # "": this version takes the file away
        Column("tools", "text"),  # the names of its actuators, as a JSON list
        Column("back_to", "int", null=True),  # the version that a rollback made the newest again
        Column("principal", "text"),
        Column("by", "text"),
        Column("at", "int"),
    ),
    key=("generation",),
    unique=(("file", "version"),),
)
DEPLOYED_TEXT = Table(
    "deployed_text",
    (Column("file", "text"), Column("digest", "text"), Column("source", "bytes"), Column("described", "bytes")),
    key=("file", "digest"),
)
DEPLOYMENTS = Schema(
    "deployment",
    (DEPLOYMENT, DEPLOYED_TEXT),
    (Migration(1, oldest=1, steps=(Create(DEPLOYMENT), Create(DEPLOYED_TEXT))),),
)


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a deployed file, as it was numbered. `by`: how who deployed it is called; `at` in ms."""

    generation: int
    file: str
    version: int
    digest: str
    tools: tuple[str, ...]
    back_to: int | None
    principal: Principal
    by: str
    at: int

    @staticmethod
    def of(row: Row) -> Version:
        generation, file, version, digest, tools, back_to, principal, by, at = row
        names = tuple(json.decode(str(tools), type=list[str]))
        who = principal_of(str(principal))
        back = None if back_to is None else int(back_to)
        return Version(
            int(generation or 0), str(file), int(version or 0), str(digest), names, back, who, str(by), int(at or 0)
        )

    @property
    def is_removal(self) -> bool:
        """Whether it takes the file away."""
        return not self.digest

    @property
    def row(self) -> Row:
        return (
            self.generation,
            self.file,
            self.version,
            self.digest,
            json.encode(list(self.tools)).decode(),
            self.back_to,
            principal_text(self.principal),
            self.by,
            self.at,
        )


@dataclass(frozen=True, slots=True)
class Text:
    """What a version says, and what was read of it."""

    source: str
    described: bytes


def digest_of(source: str) -> str:
    """As blobs are called: `sha256:` and 64 hex digits."""
    return f"sha256:{hashlib.sha256(source.encode()).hexdigest()}"


def newer_than(generation: int) -> Query:
    """The versions that were numbered after this generation, oldest first."""
    return Query(DEPLOYMENT, where=(("generation", ">", generation),), order=("generation",))


def versions_of(file: str) -> Query:
    """Every version of one file, newest first."""
    return Query(DEPLOYMENT, where=(("file", "=", file),), order=("-generation",))


def text_of(version: Version) -> Query:
    return Query(DEPLOYED_TEXT, on=DEPLOYED_TEXT.key, keys=[(version.file, version.digest)])


def read_text(rows: Sequence[Row]) -> Text | None:
    if not rows:
        return None
    _, _, source, described = rows[0]
    return Text(_bytes(source).decode(), _bytes(described))


def numbering(version: Version, text: Text | None) -> Body[bool]:
    """Make this the newest version, unless one was numbered since it was judged: then False, and nothing is written.

    Two that are numbered at the same moment want one generation: whoever comes second runs again, and sees the first.
    """

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[bool]]:
        newest = Query(DEPLOYMENT, order=("-generation",), limit=1)
        (rows,) = yield (newest,)
        seen = int(rows[0][0]) if rows else 0
        if seen != version.generation - 1:
            return Last((), False)
        if text is None:
            return Last((Append(DEPLOYMENT, [version.row]),), True)
        row = (version.file, version.digest, text.source.encode(), text.described)
        return Last((Append(DEPLOYMENT, [version.row]), Put(DEPLOYED_TEXT, [row])), True)

    return body


def _bytes(cell: Any) -> bytes:
    return bytes(cell)
