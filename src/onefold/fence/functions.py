"""fence.functions - small questions about one function: its defaults, what it returns, what is around it.

For: fence.meaning, and the rules that follow a call.
Never: evaluates an expression.
Was wrong once: the return statements of a function's inner functions counted as its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onefold.fence.scopes import FUNCTIONS, Function
from onefold.fence.values import Frame, Fun


def around(fun: Fun, frame: Frame | None) -> Frame | None:
    """The frame of the function that a function is written in, when that is among those being looked at."""
    scope = fun.unit.scopes.inner[fun.node].parent
    while scope is not None and scope.kind != "function":
        scope = scope.parent
    return frame.of(scope.node) if scope is not None and frame is not None else None


def default_of(node: Function, name: str) -> ast.expr | None:
    """The default of a parameter."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    for argument, default in zip(reversed(plain), reversed(given.defaults), strict=False):
        if argument.arg == name:
            return default
    for argument, other in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if argument.arg == name:
            return other
    return None


def returned(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """The expressions a function returns, without those of functions within it."""
    pending: list[ast.AST] = list(reversed(node.body))
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Return):
            if part.value is not None:
                yield part.value
        elif not isinstance(part, (*FUNCTIONS, ast.ClassDef, ast.expr)):
            pending.extend(reversed(list(ast.iter_child_nodes(part))))
