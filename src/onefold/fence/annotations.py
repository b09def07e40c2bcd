"""fence.annotations - what a type written down says of a value, and of what is in it.

For: `def decide(state: Room, …)` and `members: frozenset[str]`: the value behind a name that nothing assigns.
Never: checks types; needs them. Without an annotation the answer is empty.
Was wrong once: only what is assigned in the function. A set that came in with the state was iterated unseen.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from onefold.fence.units import Unit
from onefold.fence.values import Cls, Lit, Made, Named, Value, Values, canonical

if TYPE_CHECKING:
    from onefold.fence.meaning import Meaning

WRAPPERS = frozenset(
    f"{room}.{name}"
    for room in ("typing", "typing_extensions")
    for name in "Annotated ClassVar Final Required NotRequired ReadOnly Optional Union".split()
)
SEQUENCES = frozenset(f"builtins.{name}()" for name in "list set frozenset".split())
KEYS = frozenset(("builtins.dict()", "builtins.dict().keys()"))
UNTYPED = frozenset({"typing.Any", "builtins.object", "typing.TypeVar()", "builtins.type"})
STRIPPED = 8  # how many aliases of aliases are followed


def typed(meaning: Meaning, annotation: ast.expr | None, unit: Unit, deep: int = STRIPPED) -> Values:
    """What a value of that annotation is."""
    if annotation is None or not deep:
        return ()
    match annotation:
        case ast.Constant(value=str(text)):
            return typed(meaning, _parsed(text), unit, deep - 1)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return (*typed(meaning, left, unit, deep - 1), *typed(meaning, right, unit, deep - 1))
        case ast.Subscript():
            return _generic(meaning, annotation, unit, deep - 1)
        case ast.Name() | ast.Attribute():
            found: list[Value] = []
            for value in meaning.of(annotation, unit):
                if isinstance(value, Cls):
                    found.append(Made(value))
                elif isinstance(value, Named) and value.path not in UNTYPED and not value.path.endswith(")"):
                    found.append(Named(canonical(f"{value.path}()")))
            return tuple(found) or _alias(meaning, annotation, unit, deep - 1)
        case _:
            return ()


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _generic(meaning: Meaning, annotation: ast.Subscript, unit: Unit, deep: int) -> Values:
    args = tuple(annotation.slice.elts) if isinstance(annotation.slice, ast.Tuple) else (annotation.slice,)
    found: list[Value] = []
    for base in meaning.of(annotation.value, unit):
        if isinstance(base, Cls):
            found.append(Made(base))
        elif isinstance(base, Named) and base.path in WRAPPERS:
            inner = args if base.path.endswith("Union") else args[:1]
            found += (value for arg in inner for value in typed(meaning, arg, unit, deep))
        elif isinstance(base, Named):
            found.append(Named(canonical(f"{base.path}()"), args, unit))
    return tuple(found)


def _alias(meaning: Meaning, annotation: ast.expr, unit: Unit, deep: int) -> Values:
    """`Members = frozenset[str]` and `Event = Deposit | PayOut`, by their names."""
    if not isinstance(annotation, ast.Name):
        return ()
    found: list[Value] = []
    for binding in meaning.binding(annotation, unit):
        if binding.kind == "value" and binding.value is not None:
            found += typed(meaning, binding.value, unit, deep)
    return tuple(found)


# --- what is in it ----------------------------------------------------------------------------------


def element(meaning: Meaning, value: Value, detail: Sequence[str | int] = ()) -> Values:
    """What iterating gives; `detail`: where in it, for `for key, item in …`."""
    if isinstance(value, Lit):
        parts = value.node.keys if isinstance(value.node, ast.Dict) else value.node.elts
        found: list[Value] = []
        for part in parts:
            for index in detail:
                held = isinstance(part, ast.Tuple | ast.List) and isinstance(index, int) and index < len(part.elts)
                part = part.elts[index] if held else None  # type: ignore[union-attr]
            found += meaning.of(part, value.unit)
        return tuple(found)
    arg = _arg(value, detail)
    return typed(meaning, arg, value.unit) if arg is not None and isinstance(value, Named) and value.unit else ()


def _arg(value: Value, detail: Sequence[str | int]) -> ast.expr | None:
    """The annotation of an element."""
    if not isinstance(value, Named) or not value.args:
        return None
    if value.path == "builtins.dict().items()":
        at = detail[0] if len(detail) == 1 else None
        return value.args[at] if isinstance(at, int) and at < len(value.args) else None
    if detail:
        return None
    if value.path == "builtins.dict().values()":
        return value.args[-1]
    if value.path in SEQUENCES or value.path in KEYS:
        return value.args[0]
    if value.path == "builtins.tuple()" and isinstance(value.args[-1], ast.Constant):
        return value.args[0]  # tuple[X, ...]
    return value.args[0] if value.path == "builtins.tuple()" and len(value.args) == 1 else None


def at(meaning: Meaning, value: Value, key: object) -> Values:
    """What stands at an index or a key."""
    if isinstance(value, Lit):
        if isinstance(value.node, ast.Dict):
            keys = [part.value if isinstance(part, ast.Constant) else None for part in value.node.keys]
            items = value.node.values
            chosen = [item for name, item in zip(keys, items, strict=True) if key is not None and name == key]
            return tuple(v for item in chosen or items for v in meaning.of(item, value.unit))
        elements = value.node.elts
        if isinstance(key, int) and -len(elements) <= key < len(elements):
            elements = [elements[key]]
        return tuple(v for item in elements for v in meaning.of(item, value.unit))
    if isinstance(value, Named) and value.unit is not None and value.args:
        if value.path == "builtins.dict()":
            return typed(meaning, value.args[-1], value.unit)
        return element(meaning, value)
    return ()


def taken(meaning: Meaning, base: Value, call: ast.Call) -> Values:
    """What a dict's own methods give, from a literal or from its annotation."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if not (isinstance(base, Lit) and isinstance(base.node, ast.Dict)) and not (
        isinstance(base, Named) and base.path == "builtins.dict()" and base.args
    ):
        return ()
    if name in ("get", "pop", "setdefault"):
        key = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
        return at(meaning, base, key)
    if name in ("keys", "values", "items") and isinstance(base, Named):
        return (Named(f"builtins.dict().{name}()", base.args, base.unit),)
    if name == "values" and isinstance(base, Lit) and isinstance(base.node, ast.Dict):
        return (Lit(base.unit, ast.Tuple(elts=base.node.values, ctx=ast.Load())),)
    return (base,) if name == "copy" else ()


def ordered(path: str, values: Values) -> Values:
    """What list, sorted, set and their like give of these: with the same elements, where those are known."""
    made = "builtins.list" if path in ("builtins.sorted", "builtins.reversed", "builtins.iter") else path
    for value in values:
        if isinstance(value, Lit):
            if isinstance(value.node, ast.Dict) or made in ("builtins.set", "builtins.frozenset"):
                break
            return (value,)
        arg = _arg(value, ())
        if arg is not None and isinstance(value, Named):
            return (Named(f"{made}()", (arg,), value.unit),)
    return (Named(f"{made}()"),)
