"""fence.meaning - what an expression stands for: a library's name, a function or a class of the user's.

For: imports with their aliases, names assigned once more, attributes, what a call gives.
Never: runs anything; gives up loudly. What it cannot tell is an empty answer, and nothing is reported for it.
Was wrong once: names compared as they are written. `import time as t` was not seen, and a variable
called `time` was.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from typing import TypeAlias

from onefold.fence.annotations import at, element, ordered, taken, typed
from onefold.fence.classes import attribute, bases_here, field_at, receiver
from onefold.fence.functions import around, default_of, returned
from onefold.fence.operators import summed
from onefold.fence.scopes import END, FUNCTIONS, Binding, Spot
from onefold.fence.units import Unit, Units
from onefold.fence.values import Cls, Frame, Fun, Lit, Made, Mod, Named, Value, Values, canonical

FUEL = 400  # expressions one question may look at: ten times what real code needs
DEEP = 30  # questions within a question; each takes a few of the interpreter's own frames
MOST = 12  # alternatives that are worth carrying on
BUILTINS = frozenset(dir(builtins))
SAME_AGAIN = frozenset("copy.copy copy.deepcopy dataclasses.replace copy.replace".split())
THROUGH = frozenset("contextlib.closing contextlib.aclosing contextlib.nullcontext functools.partial".split())
ORDERED = frozenset(f"builtins.{name}" for name in "list tuple sorted reversed set frozenset iter".split())
Asked: TypeAlias = "tuple[ast.AST, Frame | None]"
DECORATED = {
    **{
        f"onefold.port.{name}{end}": "onefold.Port()" for name in ("dedupes", "lookup", "neither") for end in ("", "()")
    },
    **{f"onefold.actuator{end}": "onefold.Actuator()" for end in ("", "()")},
    **{f"onefold.reflex.{name}{end}": "onefold.reflex.Effect()" for name in ("effect", "select") for end in ("", "()")},
    "onefold.Run().step": "onefold.Run().step()",
    "onefold.Run().db.step": "onefold.Run().db.step()",
}
"""What a decorator of Onefold's makes of a function."""


class Meaning:
    """Answers for all files of one check. An answer is kept; one that went round in a circle only for its question."""

    def __init__(self, units: Units) -> None:
        self.units = units
        self.set_in_methods: dict[ast.ClassDef, dict[str, list[tuple[ast.expr | None, ast.expr | None]]]] = {}
        self.loads: dict[tuple[str, str], tuple[str, str] | None] = {}
        self._answers: dict[Asked, Values] = {}
        self._framed: dict[Asked, Values] = {}
        self._frames: dict[object, Frame] = {}
        self._bindings: dict[ast.Name, list[Binding]] = {}
        self._returns: dict[ast.AST, list[ast.expr]] = {}
        self._open: dict[Asked, int] = {}
        self._partial: dict[Asked, tuple[Values, int]] = {}
        self._exporting: set[tuple[ast.Module, str]] = set()
        self._low = END
        self._left = 0

    def fresh(self) -> None:
        """Forget what was worked out under calls of the last root."""
        self._framed.clear()
        self._frames.clear()

    def of(self, node: ast.AST | None, unit: Unit, frame: Frame | None = None) -> Values:
        """What the expression may be; empty when reading does not tell."""
        if node is None:
            return ()
        asked = (node, frame)
        kept = self._answers if frame is None else self._framed
        if asked in kept:
            return kept[asked]
        depth = len(self._open)
        if depth == 0:
            self._left = FUEL
            self._partial.clear()
        elif asked in self._open:
            self._low = min(self._low, self._open[asked])
            return ()
        elif asked in self._partial:
            found, low = self._partial[asked]
            self._low = min(self._low, low)
            return found
        if self._left <= 0 or depth >= DEEP:
            self._low = -1
            return ()
        self._left -= 1
        outer, self._low = self._low, END
        self._open[asked] = depth
        try:
            found = tuple(dict.fromkeys(self._of(node, unit, frame)))[:MOST]
        finally:
            del self._open[asked]
        low = self._low
        if low >= depth or depth == 0:
            kept[asked] = found
        else:
            self._partial[asked] = (found, low)
        self._low = min(outer, low if low < depth else END)
        return found

    def paths(self, node: ast.AST | None, unit: Unit, frame: Frame | None = None) -> list[str]:
        """The dotted paths among what the expression may be."""
        return [value.path for value in self.of(node, unit, frame) if isinstance(value, Named | Lit)]

    def _of(self, node: ast.AST, unit: Unit, frame: Frame | None) -> Iterable[Value]:
        match node:
            case ast.Name():
                return self._name(node, unit, frame)
            case ast.Attribute():
                return [v for base in self.of(node.value, unit, frame) for v in attribute(self, base, node.attr)]
            case ast.Call():
                return self._call(node, unit, frame)
            case ast.Await() | ast.NamedExpr() | ast.Starred():
                return self.of(node.value, unit, frame)
            case ast.IfExp():
                return (*self.of(node.body, unit, frame), *self.of(node.orelse, unit, frame))
            case ast.BoolOp():
                return [v for part in node.values for v in self.of(part, unit, frame)]
            case ast.BinOp():
                return summed(node, self.of(node.left, unit, frame), self.of(node.right, unit, frame))
            case ast.Subscript():
                return self._item(node, unit, frame)
            case _:
                return _written(node, unit)

    # --- names ------------------------------------------------------------------------------------

    def _name(self, node: ast.Name, unit: Unit, frame: Frame | None) -> Iterable[Value]:
        bindings = self.binding(node, unit)
        if bindings:
            return [value for binding in bindings for value in self.bound(binding, unit, frame)]
        if node.id in BUILTINS:
            return (Named(f"builtins.{node.id}"),)
        return [v for module, level in unit.scopes.top.stars for v in self._imported(unit, module, level, node.id)]

    def binding(self, node: ast.Name, unit: Unit) -> list[Binding]:
        """The bindings that a name may see."""
        found = self._bindings.get(node)
        if found is None:
            spot = unit.scopes.spots.get(node) or Spot(unit.scopes.top, END, ())
            owner = spot.scope.owner(node.id)
            found = [] if owner is None else unit.scopes.reaching(node.id, owner, spot)
            self._bindings[node] = found
        return found

    def bound(self, binding: Binding, unit: Unit, frame: Frame | None) -> Values:
        """What a binding gives its name."""
        match binding.kind:
            case "import":
                module, level, *name = binding.detail
                return self._imported(unit, str(module), int(level), str(name[0]) if name else None)
            case "def":
                return self._defined(binding, unit)
            case "class":
                return (Cls(unit, binding.node),) if isinstance(binding.node, ast.ClassDef) else ()
            case "param":
                return self._parameter(binding, unit, frame)
            case "value" | "enter":
                return self.of(binding.value, unit, frame) or typed(self, binding.annotation, unit)
            case "unpack":
                return self._unpacked(binding, unit, frame)
            case "element":
                whole = self.of(binding.value, unit, frame)
                return tuple(v for value in whole for v in element(self, value, binding.detail))
            case "pattern":
                return self._captured(binding, unit, frame)
            case "other":
                return ()

    def _imported(self, unit: Unit, module: str, level: int, name: str | None) -> Values:
        """`import module`, or `from module import name`."""
        known = self.units.meant(unit, module, level)
        if name is None:
            return (Mod(known),) if known is not None else (Named(canonical(module)),)
        if known is not None and name in known.scopes.top.names:
            return self.exported(known, name)
        part = self.units.meant(unit, f"{module}.{name}" if module else name, level)
        if part is not None:
            return (Mod(part),)
        return (Named(canonical(f"{module}.{name}")),) if known is None and not level else ()

    def exported(self, unit: Unit, name: str) -> Values:
        """What a name at the top of a file is, seen from outside."""
        top = unit.scopes.top
        found = unit.scopes.reaching(name, top, Spot(top, END, ()))
        asked = (unit.tree, name)
        if asked in self._exporting:
            return ()  # two files may import one name from each other
        self._exporting.add(asked)
        try:
            return tuple(value for binding in found for value in self.bound(binding, unit, None))
        finally:
            self._exporting.discard(asked)

    def _defined(self, binding: Binding, unit: Unit) -> Values:
        """A function, or what its decorators made of it."""
        node = binding.node
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in node.decorator_list:
            for path in self.paths(decorator, unit):
                if path in DECORATED:
                    return (Named(DECORATED[path]),)
        return self._wrapped(node, unit)

    def _wrapped(self, node: ast.FunctionDef | ast.AsyncFunctionDef, unit: Unit) -> Values:
        """A function, and what decorators of the user's gave for it: whoever wraps it calls it."""
        plain: Values = (Fun(unit, node),)
        found = plain
        for decorator in node.decorator_list:
            for value in self.of(decorator, unit):
                if not isinstance(value, Fun):
                    continue
                names = [argument.arg for argument in (*value.node.args.posonlyargs, *value.node.args.args)]
                given = self.given(value, {names[0]: plain} if names else {}, None)
                calls = not given or any(isinstance(one, Fun) for one in given)
                found = (*given, *(found if calls else ()))
        return found

    def _parameter(self, binding: Binding, unit: Unit, frame: Frame | None) -> Values:
        node = binding.scope.node
        here = frame.of(node) if frame is not None else None
        if here is not None and binding.name in here.bound:
            return here.bound[binding.name]
        assert isinstance(node, FUNCTIONS)
        given = node.args
        if binding.node is given.vararg:
            return (Named("builtins.tuple()", (binding.annotation,) if binding.annotation else (), unit),)
        if binding.node is given.kwarg:
            return (Named("builtins.dict()"),)
        own = receiver(binding, unit)
        if own is not None:
            return (own,)
        default = default_of(node, binding.name)
        return (*typed(self, binding.annotation, unit), *self.of(default, unit, None))

    def _unpacked(self, binding: Binding, unit: Unit, frame: Frame | None) -> Values:
        value = binding.value
        for index in binding.detail:
            if not isinstance(value, ast.Tuple | ast.List) or not isinstance(index, int) or index >= len(value.elts):
                return ()
            value = value.elts[index]
        return self.of(value, unit, frame)

    def _captured(self, binding: Binding, unit: Unit, frame: Frame | None) -> Values:
        """A name in a `case`: what its class says of the field, or the whole subject."""
        if binding.annotation is None:
            return self.of(binding.value, unit, frame)
        found: list[Value] = []
        for cls in self.of(binding.annotation, unit, frame):
            if not binding.detail:
                found += [Made(cls)] if isinstance(cls, Cls) else self.called(cls, None, unit, frame)
            elif isinstance(cls, Cls):
                where = binding.detail[0]
                field = where if isinstance(where, str) else field_at(self, cls, where)
                found += attribute(self, Made(cls), field) if field is not None else ()
        return tuple(found)

    # --- calls and items -------------------------------------------------------------------------

    def _call(self, node: ast.Call, unit: Unit, frame: Frame | None) -> Iterable[Value]:
        if isinstance(node.func, ast.Attribute):
            held = [v for base in self.of(node.func.value, unit, frame) for v in taken(self, base, node)]
            if held:
                return held
        found: list[Value] = []
        for func in self.of(node.func, unit, frame):
            found += self.called(func, node, unit, frame)
        return found

    def called(self, func: Value, node: ast.Call | None, unit: Unit, frame: Frame | None) -> Values:
        """What calling `func` gives; `node` is the call, where there is one."""
        match func:
            case Cls():
                return (Made(func),)
            case Fun():
                return self.given(func, self.arguments(func, node, unit, frame), frame)
            case Made():
                return tuple(
                    value
                    for inner in attribute(self, func, "__call__")
                    if isinstance(inner, Fun)
                    for value in self.given(inner, self.arguments(inner, node, unit, frame), frame)
                )
            case Named():
                return self._library(func, node, unit, frame)
            case _:
                return ()

    def _library(self, func: Named, node: ast.Call | None, unit: Unit, frame: Frame | None) -> Values:
        path = func.path
        first = node.args[0] if node is not None and node.args else None
        if path in SAME_AGAIN or path in THROUGH:
            found = self.of(first, unit, frame)
            if path == "functools.partial" and node is not None:
                filled = len(node.args) - 1
                return tuple(
                    Fun(v.unit, v.node, v.receiver, v.skipped + filled) if isinstance(v, Fun) else v for v in found
                )
            return found
        if path in ("importlib.import_module", "builtins.__import__"):
            return (Named(first.value),) if isinstance(first, ast.Constant) and isinstance(first.value, str) else ()
        if path == "builtins.getattr" and node is not None and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                return tuple(v for base in self.of(first, unit, frame) for v in attribute(self, base, name.value))
            return ()
        if path == "builtins.type" and node is not None and len(node.args) == 1:
            return tuple(v.cls for v in self.of(first, unit, frame) if isinstance(v, Made))
        if path == "builtins.super":
            return bases_here(self, node, unit)
        if path == "typing.cast":
            return typed(self, first, unit)
        if path in ORDERED:
            return ordered(path, self.of(first, unit, frame))
        if path == "onefold.actuator" and first is not None:
            return (Named("onefold.Actuator()"),)
        return (Named(canonical(f"{path}()")),)

    def given(self, fun: Fun, bound: dict[str, Values], frame: Frame | None) -> Values:
        """What a function of the user's returns."""
        here = self._frame(fun, bound, frame)
        if isinstance(fun.node, ast.Lambda):
            return self.of(fun.node.body, fun.unit, here)
        if fun.node not in self._returns:
            self._returns[fun.node] = list(returned(fun.node))
        found: list[Value] = []
        for value in self._returns[fun.node]:
            found += self.of(value, fun.unit, here)
        return tuple(found) or typed(self, fun.node.returns, fun.unit)

    def _frame(self, fun: Fun, bound: dict[str, Values], frame: Frame | None) -> Frame:
        """One frame for all calls that bind the same."""
        above = around(fun, frame)
        asked = (fun.node, frozenset(bound.items()), above)
        if asked not in self._frames:
            self._frames[asked] = Frame(fun.node, bound, above)
        return self._frames[asked]

    def arguments(self, fun: Fun, node: ast.Call | None, unit: Unit, frame: Frame | None) -> dict[str, Values]:
        """What the call binds its parameters to, as far as reading tells."""
        bound: dict[str, Values] = {}
        names = [argument.arg for argument in (*fun.node.args.posonlyargs, *fun.node.args.args)]
        if fun.receiver is not None and names:
            bound[names.pop(0)] = (fun.receiver,)
        if node is None:
            return bound
        for name, argument in zip(names[fun.skipped :], node.args, strict=False):
            if isinstance(argument, ast.Starred):
                break
            if found := self.of(argument, unit, frame):
                bound[name] = found
        for keyword in node.keywords:
            if keyword.arg is not None and (found := self.of(keyword.value, unit, frame)):
                bound[keyword.arg] = found
        return bound

    def _item(self, node: ast.Subscript, unit: Unit, frame: Frame | None) -> Iterable[Value]:
        base = self.of(node.value, unit, frame)
        if isinstance(node.slice, ast.Slice):
            return base
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return [value for one in base for value in at(self, one, key)]


def _written(node: ast.AST, unit: Unit) -> Values:
    """What stands there as it is."""
    match node:
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict():
            return (Lit(unit, node),)
        case ast.Lambda():
            return (Fun(unit, node),)
        case ast.ListComp() | ast.SetComp() | ast.DictComp():
            return (Named(f"builtins.{type(node).__name__[:-4].lower()}()"),)
        case ast.JoinedStr() | ast.Constant(value=str()):
            return (Named("builtins.str()"),)
        case _:
            return ()
