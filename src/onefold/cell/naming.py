"""cell.naming - what a shape's methods are called as tools: `room_greet`, and `room_run` for a program.

For: names in snake case, at most 64 characters, and what clashes with what.
Never: a name that depends on the order of the parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from onefold.cell.shape import Shape
from onefold.terms.errors import Finding
from onefold.terms.ids import RESERVED

LONGEST = 64
RUN = "run"


def snake(name: str) -> str:
    """`AgentMemory` as `agent_memory`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def tools(shapes: Iterable[Shape]) -> dict[str, tuple[Shape, str]]:
    """The tools of shapes that have them, by name: the shape and its method, or "" for a program.

    Where two have one name, the later stands; `clashes` tells of it.
    """
    found: dict[str, tuple[Shape, str]] = {}
    for shape in shapes:
        for name, method in _of(shape):
            found[name] = (shape, method)
    return found


def clashes(shapes: Iterable[Shape], others: Mapping[str, object]) -> list[Finding]:
    """Tools of one name, and names that are too long. `others`: tools that are no cell's."""
    found: list[Finding] = []
    seen: dict[str, str] = {}
    for shape in shapes:
        for name, method in _of(shape):
            what = f"{shape.name}.{method}" if method else f"programs of {shape.name}"
            where = f"shape {shape.name}"
            if len(name) > LONGEST:
                found.append(Finding(where, f"the tool {name!r} has more than {LONGEST} characters; rename the method"))
            if name in others or name in RESERVED["actuator"] or name in seen:
                taken = seen.get(name, "another tool")
                found.append(Finding(where, f"the tool {name!r} of {what} is that of {taken} too; rename one"))
            seen[name] = what
    return found


def _of(shape: Shape) -> Iterable[tuple[str, str]]:
    if not shape.tool:
        return
    prefix = snake(shape.name)
    for method in shape.methods.values():
        if not method.for_programs_only:
            yield f"{prefix}_{snake(method.name)}", method.name
    yield f"{prefix}_{RUN}", ""
