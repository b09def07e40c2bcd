"""cell.numbers - which shape wrote a value: each change of a field's type is a number, kept in the store.

For: the table of shapes, the number of the one that is loaded, and the refusal of a change that nobody can read.
Never: looks at a cell. What was written under an older number is read through its field's upgrade when it is met.
Was wrong once: "what still fits is read as it is". Cents became euros: an int is a fine Decimal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onefold.cell.shape import Shape
from onefold.store.contract import Append, Column, Create, Migration, Query, Row, Schema, Table
from onefold.terms.codec import canonical, parse
from onefold.terms.errors import Finding, LoadRefused

SHAPE = Table(
    "shape",
    (Column("name", "text"), Column("number", "int"), Column("types", "bytes")),  # types: {field: its schema as text}
    key=("name", "number"),
)
SHAPES = Schema("cells", (SHAPE,), (Migration(1, oldest=1, steps=(Create(SHAPE),)),))


@dataclass(frozen=True, slots=True)
class Numbered:
    """number: of the shape as it is now. since: by field, the number under which it got the type it has now."""

    number: int
    since: Mapping[str, int]


def earlier(shape: Shape) -> Query:
    """The numbers of a shape that its store knows, oldest first."""
    return Query(SHAPE, where=(("name", "=", shape.name),), order=("number",))


def numbered(shape: Shape, rows: Sequence[Row]) -> tuple[Numbered, Append | None]:
    """The number of this shape, and the row to append where it is a new one.

    Raises: LoadRefused where a field changed its type and has no upgrade.
    """
    before = [(int(row[1] or 0), dict(parse(bytes(row[2]), "a shape"))) for row in rows]  # type: ignore[arg-type]
    newest = before[-1] if before else (0, None)
    since: dict[str, int] = {}
    missing: list[Finding] = []
    for name, kind in shape.types.items():
        other = [number for number, types in before if types.get(name, kind) != kind]
        if not other:
            continue
        since[name] = other[-1] + 1
        if name not in shape.upgrades:
            told = "changed its type, and cells hold values of the old one; give the shape `upgrades` with a function for it"
            missing.append(Finding(f"shape {shape.name}, {name}", told))
    if missing:
        raise LoadRefused(missing)
    if newest[1] == shape.types:
        return Numbered(newest[0], since), None
    number = newest[0] + 1
    return Numbered(number, since), Append(SHAPE, [(shape.name, number, canonical(shape.types))], met="again")
