"""fence.outcomes - what an actuator does with a suspension, and with nobody's answer.

For: the rules swallowed and expired.
Never: checks types; mypy and pyright find a forgotten case too, where the file is typed.
Was wrong once: `except Exception` reported as well. A suspension is no Exception, and catching those is
how a program goes on without the customer whose step failed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from onefold.fence.look import Look, own, shown
from onefold.fence.scopes import FUNCTIONS
from onefold.fence.values import Fun, Named

WIDE: Final = frozenset({"builtins.BaseException", "onefold.Suspended"})
WAITS: Final = frozenset({"onefold.Run().wait_for_approval()", "onefold.Run().wait_for_event()"})
NO_TRUTH: Final = "has no truth value, and is asked for one"


def inspect(look: Look, node: ast.AST) -> None:
    match node:
        case ast.Try() | ast.TryStar():
            if _suspends(look, node.body):
                _handlers(look, node)
                _left_by_force(look, node)
        case ast.With() | ast.AsyncWith():
            for item in node.items:
                if _suppresses(look, item.context_expr) and _suspends(look, node.body):
                    look.say(item.context_expr, "swallowed", shown(item.context_expr))
        case ast.Match():
            _match(look, node)
        case ast.Expr() | ast.Assign() | ast.AnnAssign():
            _kept(look, node)
        case ast.expr():
            _truth(look, node)
        case _:
            pass


def _kept(look: Look, node: ast.Expr | ast.Assign | ast.AnnAssign) -> None:
    """What becomes of an outcome: thrown away, or kept under a name."""
    wait = _wait(look, node.value) if node.value is not None else None
    if wait is None:
        return
    if isinstance(node, ast.Expr):
        if _approval(wait):
            look.say(node, "expired", f"the outcome of {shown(wait.func, call=True)}", verb="is thrown away")
        return
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if isinstance(target, ast.Name) and _expires(wait):
        _unasked(look, node, target.id)


# --- suspension ---------------------------------------------------------------------------------------


def _suspends(look: Look, body: Sequence[ast.stmt]) -> bool:
    """Whether a block may be left by a suspension: it awaits, or uses run's verbs from a plain function."""
    for node in _inside(body):
        if isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith):
            return True
        if isinstance(node, ast.Call):
            for value in look.of(node.func):
                if isinstance(value, Named) and value.path.startswith("onefold.Run()."):
                    return not value.path.endswith((".now", ".step")) and ".random" not in value.path
                if isinstance(value, Fun) and any("onefold.Run()" in look.paths(argument) for argument in node.args):
                    return True
    return False


def _inside(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _handlers(look: Look, node: ast.Try | ast.TryStar) -> None:
    for handler in node.handlers:
        if _wide(look, handler.type):
            if not _raises(handler.body):
                words = "a bare `except:`" if handler.type is None else f"`except {ast.unparse(handler.type)}`"
                look.say(handler, "swallowed", words)
            return  # what it lets pass, no later one sees


def _wide(look: Look, caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    parts = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(path in WIDE for part in parts for path in look.paths(part))


def _raises(body: Sequence[ast.stmt]) -> bool:
    """Whether a handler always ends by raising: on every way through it the last statement is a raise."""
    last = body[-1]
    if any(isinstance(part, ast.Return | ast.Break | ast.Continue) for part in _inside(body)):
        return False
    match last:
        case ast.Raise():
            return True
        case ast.If(body=one, orelse=other):
            return bool(other) and _raises(one) and _raises(other)
        case ast.With(body=inner) | ast.AsyncWith(body=inner):
            return _raises(inner)
        case ast.Try(finalbody=final) if final:
            return _raises(final) or _raises(last.body)
        case _:
            return False


def _left_by_force(look: Look, node: ast.Try | ast.TryStar) -> None:
    """A `return` in a finally block throws away what is on its way up."""
    pending: list[tuple[ast.AST, bool]] = [(part, False) for part in reversed(node.finalbody)]
    while pending:
        part, loop = pending.pop()
        if isinstance(part, ast.Return) or (isinstance(part, ast.Break | ast.Continue) and not loop):
            words = f"`{type(part).__name__.lower()}`"
            cure = f"let the finally block end without {words}"
            look.say(part, "swallowed", f"{words} in a finally block", instead=cure)
        loop = loop or isinstance(part, ast.For | ast.AsyncFor | ast.While)
        if not isinstance(part, (*FUNCTIONS, ast.ClassDef)):
            pending.extend((inner, loop) for inner in reversed(list(ast.iter_child_nodes(part))))


def _suppresses(look: Look, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or "contextlib.suppress" not in look.paths(node.func):
        return False
    return any(_wide(look, argument) for argument in node.args)


# --- nobody's answer ----------------------------------------------------------------------------------


def _wait(look: Look, node: ast.expr) -> ast.Call | None:
    """The wait whose outcome an expression is, also through a function of the user's that returns it."""
    while isinstance(node, ast.Await | ast.NamedExpr):
        node = node.value
    if not isinstance(node, ast.Call):
        return None
    found = _verb(look, node)
    if found is not None:
        return found
    if not WAITS & {*look.paths(node)}:
        return None
    for value in look.of(node.func):
        if isinstance(value, Fun):
            inner = [part for part in own(value.node).nodes if isinstance(part, ast.Call)]
            return next((part for part in inner if _verb_in(look, part, value) is not None), None)
    return None


def _verb(look: Look, node: ast.Call) -> ast.Call | None:
    return node if any(f"{path}()" in WAITS for path in look.paths(node.func)) else None


def _verb_in(look: Look, node: ast.Call, fun: Fun) -> ast.Call | None:
    return node if any(f"{path}()" in WAITS for path in look.meaning.paths(node.func, fun.unit)) else None


def _expires(wait: ast.Call) -> bool:
    """Whether Expired is among the outcomes: the wait has a timeout."""
    for keyword in wait.keywords:
        if keyword.arg == "timeout":
            return not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None)
    return False


def _approval(wait: ast.Call) -> bool:
    return isinstance(wait.func, ast.Attribute) and wait.func.attr == "wait_for_approval"


def _match(look: Look, node: ast.Match) -> None:
    wait = _of_subject(look, node.subject)
    if wait is None or not _expires(wait):
        return
    if not any(case.guard is None and _takes_expired(look, case.pattern) for case in node.cases):
        look.say(node, "expired", "this `match`")


def _of_subject(look: Look, subject: ast.expr) -> ast.Call | None:
    if isinstance(subject, ast.Name):
        for binding in look.meaning.binding(subject, look.unit):
            if binding.kind == "value" and binding.value is not None:
                return _wait(look, binding.value)
        return None
    return _wait(look, subject)


def _takes_expired(look: Look, pattern: ast.pattern) -> bool:
    match pattern:
        case ast.MatchAs(pattern=None):
            return True
        case ast.MatchAs(pattern=ast.pattern() as inner):
            return _takes_expired(look, inner)
        case ast.MatchOr(patterns=patterns):
            return any(_takes_expired(look, part) for part in patterns)
        case ast.MatchClass(cls=cls, patterns=inner, kwd_patterns=named):
            whole = all(isinstance(part, ast.MatchAs) and part.pattern is None for part in (*inner, *named))
            return whole and bool({"onefold.Expired", "builtins.object"} & {*look.paths(cls)})
        case _:
            return False


def _unasked(look: Look, node: ast.stmt, name: str) -> None:
    """An outcome that is kept and then never told apart: no match, no isinstance, not handed on."""
    uses = [
        part
        for part in look.own.nodes
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
    ]
    read = [use for use in uses if isinstance(look.own.parents.get(use), ast.Attribute)]
    if len(read) == len(uses):  # a truth test is told of where it stands
        look.say(node, "expired", f"the outcome `{name}`")


def _truth(look: Look, node: ast.expr) -> None:
    """An outcome asked for its truth, or whether it is None; or read from without being told apart."""
    above = look.own.parents.get(node)
    tested = _tests(look, node)
    read = isinstance(node, ast.Await | ast.Call) and isinstance(above, ast.Attribute)
    if not tested and not read:
        return
    wait = _of_subject(look, node)
    if wait is not None and (_expires(wait) or (tested and _approval(wait))):
        told = shown(node) if isinstance(node, ast.Name) else f"of {shown(wait.func, call=True)}"
        look.say(node, "expired", f"the outcome {told}", verb=NO_TRUTH if tested else "")


def _tests(look: Look, node: ast.expr) -> bool:
    """Whether an expression stands where its truth is asked for."""
    above = look.own.parents.get(node)
    match above:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return test is node
        case ast.UnaryOp(op=ast.Not()) | ast.BoolOp():
            return True
        case ast.Call(func=ast.Name(id="bool")):
            return True
        case ast.comprehension(ifs=ifs):
            return node in ifs
        case ast.Compare(comparators=[ast.Constant(value=None | True | False)]):
            return True
        case _:
            return False
