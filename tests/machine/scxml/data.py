"""The data of a chart under test: variables that are declared, set and read, in one of the suites' two languages.

For: `Scope`, what an expression may see; `Language`, how it is read.
Never: part of what is tested. Onefold's charts name functions; these functions come from here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, Final, Protocol


class Beyond(Exception):
    """A chart uses something that Onefold's charts do not have, or that this reader does not know. Says what."""


class _Undefined:
    def __repr__(self) -> str:
        return "undefined"

    def __bool__(self) -> bool:
        return False


UNDEFINED: Final = _Undefined()
SYSTEM: Final = ("_event", "_name", "_sessionid", "_ioprocessors", "_x")


class Scope:
    """The variables in one moment. `vars` is JSON; a name that is declared and not in it is undefined."""

    def __init__(self, context: Any, built_in: dict[str, Any], event: Any) -> None:
        self.vars: dict[str, Any] = dict(context["vars"])
        self.declared: set[str] = set(context["declared"])
        self.failed: str = context["kept"].get("failed", "")
        self._fixed = {**built_in, "_name": context["name"], "_sessionid": "session", "_event": event}

    def get(self, name: str) -> Any:
        if name in self.vars:
            return self.vars[name]
        if name in self._fixed:
            return self._fixed[name]
        if name in self.declared:
            return UNDEFINED
        raise NameError(name)

    def put(self, name: str, value: Any) -> None:
        """Set what is declared. Raises: NameError."""
        root = re.split(r"[.\[]", name.strip())[0]
        if root in SYSTEM or root not in self.declared:
            raise NameError(f"{name} cannot be assigned")
        if root != name.strip():
            raise Beyond("an assignment into a part of a variable")
        self.declare(root, value)

    def declare(self, name: str, value: Any = UNDEFINED) -> None:
        if not re.fullmatch(r"[A-Za-z_$][\w$]*", name) or name in SYSTEM:
            raise NameError(f"{name!r} is no name of a variable")
        self.declared.add(name)
        if value is not UNDEFINED:
            self.vars[name] = value
        else:
            self.vars.pop(name, None)

    def kept(self, context: Any) -> dict[str, Any]:
        """The context with these variables."""
        return {**context, "vars": self.vars, "declared": sorted(self.declared)}


Run = Callable[[Scope], Any]


class Language(Protocol):
    """How expressions of one language are read. Both raise SyntaxError for what is none, Beyond for what is too much."""

    @property
    def built_in(self) -> dict[str, Any]: ...

    def expression(self, text: str) -> Run: ...

    def script(self, text: str) -> Run: ...

    def truthy(self, value: Any) -> bool: ...

    def event(self, name: str, data: Any) -> Any: ...


class Ecma:
    def __init__(self) -> None:
        from tests.machine.scxml import ecma

        self.built_in = ecma.BUILT_IN
        self.expression = ecma.expression
        self.script = ecma.script
        self.truthy = ecma.truthy

    def event(self, name: str, data: Any) -> Any:
        return {"name": name} if data is None else {"name": name, "data": data}


class Python:
    """The suite writes Python, so Python reads it."""

    built_in: ClassVar[dict[str, Any]] = {
        "len": len,
        "hasattr": hasattr,
        "True": True,
        "False": False,
        "true": True,
        "false": False,
    }

    def expression(self, text: str) -> Run:
        code = compile(ast.parse(text.strip(), mode="eval"), "chart", "eval")
        return lambda scope: eval(code, {"__builtins__": {}}, _Names(scope))  # noqa: S307 - the suite's own expressions

    def script(self, text: str) -> Run:
        tree = ast.parse(text.strip())
        runs = []
        for line in tree.body:
            target = (
                line.targets[0]
                if isinstance(line, ast.Assign)
                else line.target
                if isinstance(line, ast.AugAssign)
                else None
            )
            if not isinstance(target, ast.Name) or not isinstance(line, ast.Assign | ast.AugAssign):
                raise Beyond("a function or a statement in Python")
            value = ast.unparse(line.value)
            if isinstance(line, ast.AugAssign):
                value = f"{target.id} {'+' if isinstance(line.op, ast.Add) else '-'} ({value})"
            runs.append((target.id, self.expression(value)))

        def run(scope: Scope) -> None:
            for name, value in runs:
                scope.declare(name, value(scope))

        return run

    def truthy(self, value: Any) -> bool:
        return value is not UNDEFINED and bool(value)

    def event(self, name: str, data: Any) -> Any:
        return SimpleNamespace(name=name, data=data)


class _Names(dict[str, Any]):
    """Names as an expression looks them up."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._scope = scope

    def __missing__(self, name: str) -> Any:
        value = self._scope.get(name)
        return None if value is UNDEFINED else value


def language(name: str) -> Language:
    """The language of a data model; a document without one is read as ECMAScript. Raises: Beyond."""
    if name == "python":
        return Python()
    if name in ("ecmascript", "null"):
        return Ecma()
    raise Beyond(f"the data model {name}")
