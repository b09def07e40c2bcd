"""program.source - a program's text, read: one call, its statements, or why it is none.

For: finding the body that needs no interpreter, calls of names that do not exist, and the statements to count.
Never: runs or evaluates anything; a literal is read as data.
Was wrong once: unknown names found when they were reached. A program of ten calls was paid for and thrown away.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from onefold.program.values import as_json
from onefold.program.words import Limits, OneCall, Program, Scope, Statements, Stopped
from onefold.terms.ids import nearest

_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))

TOO_DEEP = "it is nested too deeply"
AROUND = 8


def read(source: str, scope: Scope, limits: Limits) -> Program | Stopped:
    """What a text is. Pure: the same text and scope, the same answer."""
    if len(source.encode("utf-8", "surrogatepass")) > limits.source_bytes:
        return Stopped("limit", {"limit": f"{limits.source_bytes} bytes of source"}, 0, 0)
    try:
        tree = ast.parse(source)
    except SyntaxError as wrong:
        return _unread(wrong.lineno or 1, wrong.msg or "it cannot be read")
    except ValueError as wrong:  # a NUL, half of a surrogate pair
        return _unread(1, str(wrong))
    except (RecursionError, MemoryError):
        return _unread(1, TOO_DEEP)
    if not tree.body:
        return _unread(1, "it is empty")
    # A level takes a character, but for the few around and below a name: most programs are too short to be deep.
    deep = _beyond(tree, limits.nesting) if len(source) > limits.nesting - AROUND else None
    if deep is not None:
        return _unread(deep, TOO_DEEP)
    # Only an escape or the character itself writes half of a pair; most programs have neither.
    half = None if source.isascii() and "\\" not in source else next(_halves(tree), None)
    if half is not None:
        return _unread(half, "a text holds half of a surrogate pair")
    one = _one_call(tree, scope)
    if one is not None:  # a call of the scope with literals calls no other name
        return one
    unknown = next(_strange(tree, scope), None)
    if unknown is not None:
        return Stopped("call", {"name": unknown, "nearest": nearest(unknown, list(scope))}, 0, len(tree.body))
    return _statements(source, tree)


def _unread(line: int, message: str) -> Stopped:
    return Stopped("parse", {"line": line, "message": message.rstrip(".")}, 0, 0)


def _beyond(tree: ast.Module, most: int) -> int | None:
    """The line where it is nested deeper than `most` levels, read level by level."""
    line = 1
    level: list[ast.AST] = [tree]
    for _ in range(most):
        level = [inner for node in level for inner in ast.iter_child_nodes(node)]
        if not level:
            return None
        line = next((node.lineno for node in level if isinstance(node, ast.expr | ast.stmt)), line)
    return line


def _one_call(tree: ast.Module, scope: Scope) -> OneCall | None:
    """The whole body as a call of a method with literals; None when it is more than that."""
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        return None
    call = tree.body[0].value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in scope:
        return None
    names = scope[call.func.id].parameters
    given: dict[str, object] = {}
    try:
        for at, node in enumerate(call.args):
            given[names[at]] = as_json(ast.literal_eval(node))
        for word in call.keywords:
            if word.arg is None or word.arg in given:
                return None
            given[word.arg] = as_json(ast.literal_eval(word.value))
    except (ValueError, TypeError, IndexError, SyntaxError, MemoryError):
        return None  # the interpreter says what is wrong with it
    return OneCall(call.func.id, given)


def _halves(tree: ast.Module) -> Iterator[int]:
    """The lines of texts that no codec writes. The interpreter would put another character in their place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not _is_whole(node.value):
            yield node.lineno


def _is_whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def _strange(tree: ast.Module, scope: Scope) -> Iterator[str]:
    """Names that are called and that nobody defines: neither the scope, nor Python, nor the program."""
    own = set(_defined(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name not in scope and name not in _BUILTINS and name not in own:
                yield name


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.rest


def _statements(source: str, tree: ast.Module) -> Statements:
    """Each top-level statement as text, in lines of its own."""
    lines = source.encode().splitlines(keepends=True)
    parts: list[str] = []
    starts: list[int] = []
    for node in tree.body:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        column = 0 if decorators else node.col_offset
        last, end = node.end_lineno or first, node.end_col_offset or 0
        text = lines[first - 1 : last]
        text[-1] = text[-1][:end]
        text[0] = text[0][column:]
        parts.append(b"".join(text).decode())
        starts.append(first)
    return Statements(tuple(parts), tuple(starts))
