"""fence.orders - iterating over a set into something that keeps an order.

For: the rule set-order.
Never: minds a set that is only asked, counted, sorted or made into another set.
Was wrong once: every loop over a set. Adding up amounts gives the same sum in any order, and people
sorted what needed no sorting.
"""

from __future__ import annotations

import ast
from typing import Final

from onefold.fence.look import Look, shown
from onefold.fence.values import Lit, Named

SETS: Final = frozenset({"builtins.set()", "builtins.frozenset()"})
FREE: Final = frozenset(
    f"builtins.{name}" for name in "sorted sum min max any all len set frozenset bool isinstance".split()
) | {"collections.Counter", "math.fsum", "math.prod", "statistics.mean"}
"""What takes its elements in any order and gives the same."""
LAZY: Final = frozenset({"builtins.map", "builtins.filter"})
KEEPING: Final = frozenset(
    f"builtins.{name}"
    for name in "list tuple enumerate zip iter reversed map filter next str repr ascii format dict print".split()
) | {"builtins.dict.fromkeys", "collections.deque", "collections.OrderedDict", "functools.reduce"}
SET_METHODS: Final = frozenset(
    "union intersection difference symmetric_difference update intersection_update difference_update "
    "symmetric_difference_update issubset issuperset isdisjoint".split()
)
UNORDERED_STEPS: Final = frozenset("add discard remove update cancel".split())
SUMS: Final = (ast.Add, ast.Mult, ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
ORDERED: Final = frozenset(f"builtins.{name}()" for name in "list str tuple bytes".split())
TASKS: Final = ("asyncio.Task()", "asyncio.Future()", "asyncio.create_task()", "asyncio.ensure_future()")


def inspect(look: Look, node: ast.AST) -> None:
    match node:
        case ast.For():
            if is_set(look, node.iter) and not all(_unordered(look, part) for part in node.body):
                _report(look, node.iter)
        case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
            for part in node.generators:
                if is_set(look, part.iter) and not _taken_unordered(look, node):
                    _report(look, part.iter)
        case ast.Starred() if is_set(look, node.value) and not _taken_unordered(look, node):
            _report(look, node.value)
        case ast.FormattedValue() if is_set(look, node.value):
            _report(look, node.value)
        case ast.YieldFrom() if is_set(look, node.value):
            _report(look, node.value)
        case ast.Assign(targets=[ast.Tuple() | ast.List()]) if is_set(look, node.value):
            _report(look, node.value)
        case ast.Call():
            _call(look, node)
        case _:
            pass


def _call(look: Look, node: ast.Call) -> None:
    paths = {*look.paths(node.func)}
    if "builtins.set().pop" in paths:
        look.say(node, "set-order", shown(node.func, call=True), verb="takes whichever comes first")
        return
    keeps = bool(KEEPING & paths) or any(path.startswith("itertools.") for path in paths)
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("join", "extend", "extendleft"):
        keeps = True
    if not keeps or (LAZY & paths and _taken_unordered(look, node)):
        return
    for argument in node.args:
        if is_set(look, argument):
            _report(look, argument)


def _report(look: Look, node: ast.expr) -> None:
    look.say(node, "set-order", f"the set {shown(node)}")


def is_set(look: Look, node: ast.expr) -> bool:
    """Whether it may be a set. The tasks of a pass hash by the order of making, so a set of those keeps one."""
    if isinstance(node, ast.Set) and all(isinstance(e, ast.Constant) and isinstance(e.value, int) for e in node.elts):
        return False  # numbers hash to themselves
    if isinstance(node, ast.Set | ast.SetComp):
        return not _holds_tasks(look, node)
    for value in look.of(node):
        if isinstance(value, Named | Lit) and value.path in SETS:
            return not _made_of_tasks(look, node, value)
    return False


def _made_of_tasks(look: Look, node: ast.expr, value: Named | Lit) -> bool:
    if isinstance(value, Lit):
        return _holds_tasks(look, value.node)
    if value.args and value.unit is not None:
        found = look.meaning.paths(value.args[0], value.unit)
        inner = value.args[0].value if isinstance(value.args[0], ast.Subscript) else value.args[0]
        found += look.meaning.paths(inner, value.unit)
        return any(f"{path}()" in TASKS for path in found)
    if isinstance(node, ast.Name):
        for binding in look.meaning.binding(node, look.unit):
            if isinstance(binding.value, ast.SetComp) and _holds_tasks(look, binding.value):
                return True
        return _filled_with_tasks(look, node.id)
    return False


def _filled_with_tasks(look: Look, name: str) -> bool:
    """`tasks = set()` and then `tasks.add(asyncio.create_task(…))`."""
    for node in look.own.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="add", value=ast.Name(id=into)), args=[one]) if into == name:
                if _is_task(look, one):
                    return True
            case _:
                pass
    return False


def _holds_tasks(look: Look, node: ast.expr) -> bool:
    if isinstance(node, ast.SetComp):
        return _is_task(look, node.elt)
    elements = node.elts if isinstance(node, ast.Set | ast.List | ast.Tuple) else []
    return bool(elements) and all(_is_task(look, one) for one in elements)


def _is_task(look: Look, node: ast.expr) -> bool:
    if any(path in TASKS for path in look.paths(node)):
        return True
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "create_task"


# --- what does not mind the order ---------------------------------------------------------------------


def _taken_unordered(look: Look, node: ast.AST) -> bool:
    """Whether what stands around it takes the elements in any order."""
    above = look.own.parents.get(node)
    while isinstance(above, ast.Call) and node is not above.func:
        paths = {*look.paths(above.func)}
        if FREE & paths:
            return True
        if isinstance(above.func, ast.Attribute) and above.func.attr in SET_METHODS and is_set(look, above.func.value):
            return True
        if not LAZY & paths:
            return False
        node, above = above, look.own.parents.get(above)
    return isinstance(above, ast.Set) or (
        isinstance(above, ast.Compare) and all(isinstance(op, ast.In | ast.NotIn) for op in above.ops)
    )


def _unordered(look: Look, node: ast.stmt) -> bool:
    """Whether a statement of a loop's body does the same in any order of the elements."""
    match node:
        case ast.Pass() | ast.Continue() | ast.Assert() | ast.Delete():
            return True
        case ast.Return(value=None | ast.Constant()):
            return True
        case ast.If(body=body, orelse=orelse):
            return all(_unordered(look, part) for part in (*body, *orelse))
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr, value=held))):
            return attr == "cancel" or (attr in UNORDERED_STEPS and is_set(look, held))
        case ast.AugAssign(target=target, op=op):
            held_in_order = any(path in ORDERED for path in look.paths(target))
            return isinstance(op, SUMS) and not held_in_order
        case ast.Assign(targets=[ast.Subscript()]) | ast.Assign(targets=[ast.Attribute()]):
            return False
        case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name()):
            return not _carried(node)
        case _:
            return False


def _carried(node: ast.Assign | ast.AnnAssign) -> bool:
    """Whether an assignment keeps something from one element to the next; a name worked out anew does not."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    name = target.id if isinstance(target, ast.Name) else ""
    return node.value is None or any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.value))
