"""fence.classes - what a class of the user's holds: its fields, its methods, what it is derived from.

For: attributes of instances, classes and files; the first parameter of a method.
Never: the order of several bases beyond the nearest that has the name.
Was wrong once: only the class itself. `self.price()` of a cell stood in its base class, and was not read.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from onefold.fence.annotations import typed
from onefold.fence.scopes import END, Binding, Scope, Spot
from onefold.fence.units import Unit
from onefold.fence.values import Cls, Fun, Lit, Made, Mod, Named, Value, Values, canonical

if TYPE_CHECKING:
    from onefold.fence.meaning import Meaning

PROPERTIES = frozenset({"builtins.property", "functools.cached_property", "enum.property"})
FAR = 12  # bases of bases that are followed
VIRTUAL = frozenset(("builtins.object()", "typing.Generic()", "typing.Protocol()", "abc.ABC()"))


def attribute(meaning: Meaning, value: Value, name: str) -> Values:
    """What `.name` of it may be."""
    match value:
        case Named():
            return (Named(canonical(f"{value.path}.{name}")),)
        case Lit():
            return (Named(f"{value.path}.{name}"),)
        case Mod():
            return meaning.exported(value.unit, name)
        case Made() | Cls():
            return _member(meaning, value, name)
        case Fun():
            return ()


def _member(meaning: Meaning, value: Made | Cls, name: str) -> Values:
    own = value.cls if isinstance(value, Made) else value
    if name == "__class__":
        return (own,)
    found: list[Value] = []
    for cls in lineage(meaning, own):
        scope = cls.unit.scopes.inner[cls.node]
        held = cls.unit.scopes.reaching(name, scope, Spot(scope, END, scope.base))
        for binding in held:
            found += _held(meaning, binding, cls, value)
        if not held and isinstance(value, Made):
            found += _set_in_methods(meaning, cls, name)
        if held or found:
            return tuple(found)
    return tuple(
        Named(canonical(f"{base.path}{'()' if isinstance(value, Made) else ''}.{name}"))
        for cls in lineage(meaning, own)
        for base in outer_bases(meaning, cls)
        if f"{base.path}()" not in VIRTUAL
    )


def _held(meaning: Meaning, binding: Binding, cls: Cls, value: Made | Cls) -> Values:
    """What stands under a name in the class's body."""
    node = binding.node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        paths = [path for one in node.decorator_list for path in meaning.paths(one, cls.unit)]
        if "builtins.staticmethod" in paths:
            return (Fun(cls.unit, node),)
        if "builtins.classmethod" in paths:
            return (Fun(cls.unit, node, value.cls if isinstance(value, Made) else value),)
        made = Fun(cls.unit, node, value if isinstance(value, Made) else None)
        if isinstance(value, Made) and PROPERTIES & {*paths}:
            return meaning.given(made, meaning.arguments(made, None, cls.unit, None), None)
        return (made,)
    if isinstance(value, Made) and binding.annotation is not None:
        return typed(meaning, binding.annotation, cls.unit)
    return meaning.bound(binding, cls.unit, None)


def _set_in_methods(meaning: Meaning, cls: Cls, name: str) -> Values:
    """`self.name = …` in a method of the class."""
    if cls.node not in meaning.set_in_methods:
        meaning.set_in_methods[cls.node] = _assignments(cls.node)
    found: list[Value] = []
    for annotation, value in meaning.set_in_methods[cls.node].get(name, ()):
        found += typed(meaning, annotation, cls.unit) or meaning.of(value, cls.unit)
    return tuple(found)


def _assignments(node: ast.ClassDef) -> dict[str, list[tuple[ast.expr | None, ast.expr | None]]]:
    """What the methods of a class put into attributes of their first parameter: annotation and value."""
    found: dict[str, list[tuple[ast.expr | None, ast.expr | None]]] = {}
    for method in node.body:
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) or not method.args.args:
            continue
        own = method.args.args[0].arg
        for part in ast.walk(method):
            if isinstance(part, ast.Assign):
                targets, annotation = part.targets, None
            elif isinstance(part, ast.AnnAssign):
                targets, annotation = [part.target], part.annotation
            else:
                continue
            for target in targets:
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == own:
                    found.setdefault(target.attr, []).append((annotation, part.value))
    return found


def property_of(meaning: Meaning, made: Made, name: str) -> Fun | None:
    """The function behind a property, which runs when the attribute is read."""
    for cls in lineage(meaning, made.cls):
        scope = cls.unit.scopes.inner[cls.node]
        for binding in scope.names.get(name, ()):
            node = binding.node
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                paths = {path for one in node.decorator_list for path in meaning.paths(one, cls.unit)}
                return Fun(cls.unit, node, made) if PROPERTIES & paths else None
        if name in scope.names:
            return None
    return None


def lineage(meaning: Meaning, cls: Cls) -> list[Cls]:
    """The class and the user's classes it is derived from, the nearest first."""
    found = [cls]
    for one in found:
        for base in one.node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            found += (v for v in meaning.of(plain, one.unit) if isinstance(v, Cls) and v not in found)
        if len(found) > FAR:
            break
    return found


def outer_bases(meaning: Meaning, cls: Cls) -> list[Named]:
    """The classes of libraries that a class is directly derived from."""
    plain = [base.value if isinstance(base, ast.Subscript) else base for base in cls.node.bases]
    return [v for base in plain for v in meaning.of(base, cls.unit) if isinstance(v, Named)]


def derived(meaning: Meaning, cls: Cls, path: str) -> bool:
    """Whether the class is derived from the library's class `path`."""
    return any(base.path == path for one in lineage(meaning, cls) for base in outer_bases(meaning, one))


def receiver(binding: Binding, unit: Unit) -> Made | Cls | None:
    """What the first parameter of a method is."""
    scope = binding.scope
    node = scope.node
    above: Scope | None = scope.parent
    if above is None or above.kind != "class" or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    plain = [*node.args.posonlyargs, *node.args.args]
    if not plain or binding.node is not plain[0] or not isinstance(above.node, ast.ClassDef):
        return None
    said = {one.id for one in node.decorator_list if isinstance(one, ast.Name)}
    if "staticmethod" in said:
        return None
    cls = Cls(unit, above.node)
    return cls if "classmethod" in said or node.name == "__new__" else Made(cls)


def fields(meaning: Meaning, cls: Cls) -> list[str]:
    """The annotated names of a class, those of its bases first: the parameters of a dataclass."""
    names: dict[str, None] = {}
    for one in reversed(lineage(meaning, cls)):
        for part in one.node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                names[part.target.id] = None
    return list(names)


def field_at(meaning: Meaning, cls: Cls, at: int) -> str | None:
    """The field that stands at a place of a class's pattern or call."""
    names = fields(meaning, cls)
    return names[at] if at < len(names) else None


def bases_here(meaning: Meaning, node: ast.Call | None, unit: Unit) -> Values:
    """What `super()` stands for."""
    if node is None or not isinstance(node.func, ast.Name):
        return ()
    spot = unit.scopes.spots.get(node.func)
    scope = spot.scope if spot is not None else None
    while scope is not None and scope.kind != "class":
        scope = scope.parent
    if scope is None or not isinstance(scope.node, ast.ClassDef):
        return ()
    own = Cls(unit, scope.node)
    return tuple(Made(cls) for cls in lineage(meaning, own)[1:2])
