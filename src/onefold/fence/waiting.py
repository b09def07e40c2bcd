"""fence.waiting - await where a plain answer is due, and instants as binary fractions.

For: the rules await and float-time.
Never: looks at an actuator's awaits; they are what it is made of.
Was wrong once: every async function reported where it is defined. A helper that only an actuator calls may wait.
"""

from __future__ import annotations

import ast

from onefold.fence.look import Look, shown

WHOLE = frozenset(f"builtins.{name}" for name in ("int", "round")) | {f"math.{n}" for n in ("floor", "ceil", "trunc")}
WAITS = (ast.Await, ast.AsyncFor, ast.AsyncWith)


def inspect(look: Look, node: ast.AST) -> None:
    if isinstance(node, ast.Call):
        _fraction(look, node)
    if not look.place.pure:
        return
    if isinstance(node, WAITS):
        words = {ast.AsyncFor: "`async for`", ast.AsyncWith: "`async with`"}
        look.say(node, "await", words.get(type(node), "`await`"))
    elif isinstance(node, ast.comprehension) and node.is_async:
        look.say(look.own.parents[node], "await", "an async comprehension")


def begin(look: Look) -> None:
    """A guarded function that gives no plain answer: a coroutine, also when it waits for nothing, or a generator."""
    if not look.place.pure or not look.root:
        return
    if isinstance(look.body, ast.AsyncFunctionDef) and not any(map(_waits, look.own.nodes)):
        look.say(look.body, "await", f"`async def {look.body.name}`", verb="gives a coroutine and no answer")
    first = next((node for node in look.own.nodes if isinstance(node, ast.Yield | ast.YieldFrom)), None)
    if first is not None:
        look.say(first, "await", "`yield`", verb="makes it a generator, which is no answer")


def _waits(node: ast.AST) -> bool:
    return isinstance(node, WAITS) or (isinstance(node, ast.comprehension) and bool(node.is_async))


def _fraction(look: Look, node: ast.Call) -> None:
    """`.timestamp()` of an instant, unless it is made whole on the spot."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "timestamp":
        return
    if "datetime.datetime().timestamp" not in look.paths(node.func):
        return
    above = look.own.parents.get(node)
    while isinstance(above, ast.BinOp | ast.UnaryOp):
        above = look.own.parents.get(above)
    if isinstance(above, ast.Call) and WHOLE & {*look.paths(above.func)}:
        return
    look.say(node, "float-time", shown(node.func, call=True))
