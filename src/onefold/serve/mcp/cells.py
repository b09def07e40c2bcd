"""serve.mcp.cells - cells offered to agents: a typed tool for each method, and one that takes a program.

For: a shape with `tool=True` as tools, listed with their own arguments and the cell's id; their calls.
Never: begins a cell that is not begun on demand; offers a method that only a program can call.
Was wrong once: one tool for all turns, with the method as an argument. Models guessed at the arguments of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from onefold.actuators.schema import flat
from onefold.serve.door import Caller
from onefold.serve.door_cells import CellVerbs, Turn
from onefold.serve.mcp.telling import COMPLETE, text
from onefold.terms.codec import canonical
from onefold.terms.errors import BadArguments, Fault

if TYPE_CHECKING:
    from onefold.cell.method import Method
    from onefold.cell.shape import Shape

_ID: Final = {"type": "string", "minLength": 1, "description": "The cell's own name."}
_OUTPUT: Final = {
    "type": "object",
    "properties": {"branch": {"type": "string"}, "value": {}, "ran": {"type": "integer"}},
    "required": ["branch", "value", "ran"],
}


class CellTools:
    """The tools of an app's cells. That room is loaded only where there are some."""

    def __init__(self, cells: Mapping[str, Any]) -> None:
        self._tools: Mapping[str, tuple[Shape, str]] = {}
        if cells:
            from onefold.cell.naming import tools

            self._tools = tools(each.shape for each in cells.values())

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def listed(self) -> list[dict[str, Any]]:
        """As the protocol lists them."""
        return [_listed(name, shape, method) for name, (shape, method) in self._tools.items()]

    async def call(
        self, name: str, arguments: Mapping[str, Any], key: str | None, verbs: CellVerbs, caller: Caller
    ) -> dict[str, Any]:
        """One turn. Raises: BadArguments, NotFound, TurnFailed and their kin."""
        shape, method = self._tools[name]
        given = dict(arguments)
        id = given.pop("id", None)
        if not isinstance(id, str) or not id:
            raise BadArguments([Fault("id", "must be the cell's name", id)])
        if method:
            return _told(await verbs.turn(shape.name, id, method, given, key=key, caller=caller))
        program = given.pop("program", None)
        faults = [Fault(name, "is not an argument here; there are id, program") for name in given]
        if not isinstance(program, str) or not program:
            faults.append(Fault("program", "must be the text of a program", program))
        if faults or not isinstance(program, str):
            raise BadArguments(faults)
        return _told(await verbs.program(shape.name, id, program, key=key, caller=caller))


def _told(turn: Turn) -> dict[str, Any]:
    record = {"branch": turn.branch, "value": turn.value, "ran": turn.ran}
    return {
        "content": [text(canonical(record).decode())],
        "structuredContent": record,
        "isError": False,
        **COMPLETE,
    }


def _listed(name: str, shape: Shape, method: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": _described(shape, shape.methods[method]) if method else _of_programs(shape),
        "inputSchema": _arguments(shape.methods[method]) if method else _program(),
        "outputSchema": _OUTPUT,
        "annotations": {
            "title": name.replace("_", " ").capitalize(),
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": False,
            "openWorldHint": False,
        },
    }


def _described(shape: Shape, method: Method) -> str:
    return method.description or f"{method.name} of one {shape.name}: a durable turn, one commit."


def _arguments(method: Method) -> dict[str, Any]:
    """The method's own arguments beside the id, flat, as agents' clients read them."""
    properties: dict[str, Any] = {"id": _ID}
    required = ["id"]
    for name, parameter in method.takes.items():
        if parameter.codec is None:
            continue
        schema = flat(parameter.codec.schema())
        if parameter.required:
            required.append(name)
        else:
            schema = {**schema, "default": parameter.shown()}
        properties[name] = schema
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _program() -> dict[str, Any]:
    properties = {"id": _ID, "program": {"type": "string", "minLength": 1, "description": "Its text."}}
    return {
        "type": "object",
        "properties": properties,
        "required": ["id", "program"],
        "additionalProperties": False,
    }


def _of_programs(shape: Shape) -> str:
    """The scope as an agent needs it: what may be called, and how it ends."""
    lines = [
        f"Run a small program against one {shape.name} as a single atomic turn: all of it is kept, or nothing.",
        "Python's syntax: names, conditions, loops, several calls. Its value is that of its last expression.",
        "These functions are there, and no others:",
        *(f"- {method.spelled()}" + _costs(method) for method in shape.methods.values()),
    ]
    if shape.description:
        lines.insert(1, shape.description)
    return "\n".join(lines)


def _costs(method: Method) -> str:
    cost = f" (costs {method.cost})" if method.cost != 1 else ""
    return f"{cost}: {method.description.splitlines()[0]}" if method.description else cost
