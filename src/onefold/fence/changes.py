"""fence.changes - writes to what is not the function's own: globals, defaults, and what was handed in.

For: the rules global-state and state-written.
Never: follows a value through a list or a dict that the function made itself.
Was wrong once: only `global`. `SEEN.add(event.id)` needs no such word, and the second process had not seen it.
"""

from __future__ import annotations

import ast
from typing import Final

from onefold.fence.classes import receiver
from onefold.fence.functions import default_of
from onefold.fence.look import Look, shown
from onefold.fence.scopes import FUNCTIONS, Binding
from onefold.fence.values import Cls, Fun, Lit, Made, Mod, Named, Origin

MUTABLE: Final = frozenset(f"builtins.{name}()" for name in "list dict set bytearray".split())
METHODS: Final = frozenset(
    "append extend insert add update setdefault pop popitem remove discard clear sort reverse appendleft popleft "
    "extendleft rotate subtract difference_update intersection_update symmetric_difference_update move_to_end".split()
)
FIRST: Final = frozenset(
    f"{room}.{name}"
    for room, names in {
        "heapq": "heappush heappop heapify heapreplace heappushpop",
        "bisect": "insort insort_left insort_right",
        "builtins": "setattr delattr",
        "builtins.object": "__setattr__ __delattr__",
        "operator": "setitem delitem iadd ior",
        "random": "shuffle",
    }.items()
    for name in names.split()
)
"""Functions that change their first argument."""
ITERATORS: Final = ("itertools.count()", "itertools.cycle()", "builtins.iter()", "builtins.list()")
INTO: Final = frozenset("get values items keys setdefault pop".split())
"""Methods whose result is still a part of what they were called on."""
PASSED_ON: Final = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BoolOp, ast.IfExp)
"""What a name may be assigned from and still mean the same object."""
FAR: Final = 8  # names for names


def inspect(look: Look, node: ast.AST) -> None:
    match node:
        case ast.Assign(targets=targets):
            for target in targets:
                _target(look, node, target)
        case ast.AugAssign(target=target):
            _target(look, node, target, augmented=True)
        case ast.AnnAssign(target=target) if node.value is not None:
            _target(look, node, target)
        case ast.Delete(targets=targets):
            for target in targets:
                _target(look, node, target)
        case ast.For(target=target) | ast.AsyncFor(target=target):
            _target(look, node, target)
        case ast.NamedExpr(target=target):
            _target(look, node, target)
        case ast.Call():
            _call(look, node)
        case _:
            pass


def _target(look: Look, node: ast.AST, target: ast.expr, *, augmented: bool = False) -> None:
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            _target(look, node, part)
    elif isinstance(target, ast.Starred):
        _target(look, node, target.value)
    elif isinstance(target, ast.Name):
        _name(look, node, target, augmented=augmented)
    elif isinstance(target, ast.Attribute | ast.Subscript):
        origin = origin_of(look, target.value)
        if origin is not None:
            _report(look, node, origin, shown(target))


def _name(look: Look, node: ast.AST, target: ast.Name, *, augmented: bool) -> None:
    spot = look.unit.scopes.spots.get(target)
    if spot is None:
        return
    said = spot.scope.function.outside.get(target.id)
    if said == "global":
        look.say(node, "global-state", f"`global {target.id}`", verb="is written to, and outlives the call")
    elif said == "nonlocal":
        owner = spot.scope.function.owner(target.id)
        if owner is not None and look.outlives(owner):
            look.say(node, "global-state", f"`nonlocal {target.id}`", verb="is written to, and outlives the call")
    elif augmented and any(path in MUTABLE for path in look.paths(target)):
        origin = origin_of(look, target)
        if origin is not None:
            _report(look, node, origin, shown(target))


def _call(look: Look, node: ast.Call) -> None:
    """A method that changes what it is called on, or a function that changes its first argument."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
        held = node.func.value
        values = look.of(held)
        if any(isinstance(value, Made | Cls | Mod | Fun) for value in values):
            return  # the walk goes into a method of the user's and sees what it does
        known = any(isinstance(value, Named | Lit) and value.path in MUTABLE for value in values)
        dropped = isinstance(look.own.parents.get(node), ast.Expr)
        if known or (dropped and not values):
            origin = origin_of(look, held)
            if origin is not None:
                _report(look, node, origin, shown(node.func, call=True))
        return
    paths = look.paths(node.func)
    if node.args and (FIRST & {*paths} or ("builtins.next" in paths and _shared_iterator(look, node.args[0]))):
        origin = origin_of(look, node.args[0])
        if origin is not None:
            _report(look, node, origin, shown(node))


def _shared_iterator(look: Look, node: ast.expr) -> bool:
    return any(path in ITERATORS or path.startswith("itertools.") for path in look.paths(node))


def _report(look: Look, node: ast.AST, origin: Origin, what: str) -> None:
    if origin.kind == "sealed":
        look.say(node, "state-written", what, verb=f"changes {origin.shown}")
    else:
        look.say(node, "global-state", what, verb=f"changes {origin.shown}, which outlives the call")


# --- whose it is ------------------------------------------------------------------------------------


def origin_of(look: Look, node: ast.AST, far: int = FAR) -> Origin | None:
    """Whose the object is that an expression leads to; None: the function's own, or nobody knows."""
    while far:
        match node:
            case ast.Name():
                return _origin_of_name(look, node, far - 1)
            case ast.Attribute() | ast.Starred() | ast.Await():
                node = node.value
            case ast.Subscript():
                if isinstance(node.slice, ast.Slice):
                    return None  # a slice is a copy
                node = node.value
            case ast.Call(func=ast.Attribute(attr=attr, value=value)) if attr in INTO:
                node = value
            case ast.Call(func=ast.Name(id="type" | "vars" | "enumerate" | "reversed"), args=[first]):
                if look.paths(node.func) == ["builtins.type"]:
                    return Origin("global", "the class")
                node = first
            case ast.Call():
                made = look.paths(node)
                return Origin("global", "the context of all decimals") if "decimal.getcontext()" in made else None
            case ast.BoolOp() | ast.IfExp():
                parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
                found = (origin_of(look, part, far - 1) for part in parts)
                return next((one for one in found if one is not None), None)
            case _:
                return None
        far -= 1
    return None


def _origin_of_name(look: Look, node: ast.Name, far: int) -> Origin | None:
    bindings = look.meaning.binding(node, look.unit)
    for binding in bindings:
        found = _origin_of_binding(look, node, binding, far)
        if found is not None:
            return found
    return None


def _origin_of_binding(look: Look, node: ast.Name, binding: Binding, far: int) -> Origin | None:
    scope = binding.scope
    if scope.kind == "module" or binding.kind == "import":
        what = "class" if binding.kind == "class" else "module" if binding.kind == "import" else "global"
        return Origin("global", f"the {what} `{node.id}`")
    if binding.kind == "param":
        return _origin_of_parameter(look, binding)
    if look.outlives(scope):
        return Origin("global", f"`{node.id}` of the function around it")
    if binding.kind in ("value", "element", "pattern") and binding.value is not None and far:
        if binding.kind == "value" and not isinstance(binding.value, PASSED_ON):
            return None
        return origin_of(look, binding.value, far)
    return None


def _origin_of_parameter(look: Look, binding: Binding) -> Origin | None:
    node = binding.scope.node
    frame = look.frame.of(node)
    if frame is None:
        return Origin("global", f"`{binding.name}` of the function around it") if look.outlives(binding.scope) else None
    if binding.name in frame.origins:
        return frame.origins[binding.name]
    if isinstance(receiver(binding, look.unit), Cls):
        return Origin("global", "the class")
    if isinstance(node, FUNCTIONS) and binding.name not in frame.bound:
        default = default_of(node, binding.name)
        if isinstance(default, ast.List | ast.Dict | ast.Set):
            return Origin("global", f"the default of `{binding.name}`, which all calls share")
    return None
