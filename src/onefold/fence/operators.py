"""fence.operators - what `+`, `|`, `-`, `/` of two values give, as far as it matters to a rule.

For: sets, instants, paths, lists and dicts; everything else is nothing that reading could tell.
Never: works out a number.
Was wrong once: `now - since` taken for an instant. It is a span, and a span has no time zone and no `timestamp`.
"""

from __future__ import annotations

import ast
from typing import Final

from onefold.fence.values import Lit, Named, Values

INSTANT: Final = "datetime.datetime()"
OF_SETS: Final = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)


def summed(node: ast.BinOp, left: Values, right: Values) -> Values:
    """What the operator gives for these two."""
    both = {value.path: value for value in (*left, *right) if isinstance(value, Named | Lit)}
    if isinstance(node.op, OF_SETS):
        if _keys(node.left) or _keys(node.right):
            return (Named("builtins.set()"),)
        for path in ("builtins.set()", "builtins.frozenset()"):
            if path in both:
                value = both[path]
                return (value if isinstance(value, Named) else Named(path),)
    if isinstance(node.op, ast.Add | ast.Sub) and INSTANT in both:
        return () if _instant(left) and _instant(right) else (Named(INSTANT),)
    if isinstance(node.op, ast.Div) and "pathlib.Path()" in both:
        return (Named("pathlib.Path()"),)
    if isinstance(node.op, ast.Add | ast.BitOr):
        return tuple(value for path, value in both.items() if path in ("builtins.list()", "builtins.dict()"))
    return ()


def _instant(values: Values) -> bool:
    return any(isinstance(value, Named) and value.path == INSTANT for value in values)


def _keys(node: ast.expr) -> bool:
    """`rates.keys()`: with an operator of sets it gives a set, whatever rates is."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items")
