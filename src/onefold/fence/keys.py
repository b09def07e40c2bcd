"""fence.keys - owed keys, event ids and idempotency keys that are another the next time.

For: the rule key-source, in what a module or a chart owes and in what a step sends.
Never: minds `now` anywhere but in a key.
Was wrong once: only the key's own expression. `stamp = now.isoformat()` stood two lines above it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from onefold.fence.classes import field_at
from onefold.fence.judging import judge
from onefold.fence.look import Look, shown
from onefold.fence.values import Cls

HEADERS: Final = frozenset({"idempotency-key", "x-idempotency-key", "idempotency_key", "x-request-id"})
ARGUMENTS: Final = frozenset({"idempotency_key", "idempotencyKey", "idempotency_token", "client_token", "dedupe_key"})
DELIVERED: Final = ("deliver.", "event.", "call.")
VERBS: Final = frozenset({"call", "start", "deliver", "ingest", "post"})


def inspect(look: Look, node: ast.AST) -> None:
    if look.place.kind == "step":
        _step(look, node)
    elif isinstance(node, ast.Call) and "onefold.Owed" in look.paths(node.func):
        _owed(look, node)


def _owed(look: Look, node: ast.Call) -> None:
    given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    for name, value in zip(("port", "key", "body"), node.args, strict=False):
        given.setdefault(name, value)
    if (key := given.get("key")) is not None:
        _check(look, key, "the owed key")
    port = given.get("port")
    named = port.value if isinstance(port, ast.Constant) and isinstance(port.value, str) else None
    if (body := given.get("body")) is not None and (named is None or named.startswith(DELIVERED)):
        _event(look, body)


def _event(look: Look, node: ast.expr) -> None:
    """The id of an event that is made on the spot."""
    if not isinstance(node, ast.Call):
        return
    for keyword in node.keywords:
        if keyword.arg == "id":
            _check(look, keyword.value, "the event's id")
    for cls in look.of(node.func):
        if isinstance(cls, Cls):
            for at, argument in enumerate(node.args):
                if field_at(look.meaning, cls, at) == "id":
                    _check(look, argument, "the event's id")


def _step(look: Look, node: ast.AST) -> None:
    if isinstance(node, ast.Dict):
        for name, value in zip(node.keys, node.values, strict=True):
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.lower() in HEADERS:
                _check(look, value, f"the key {name.value!r}")
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        at = node.targets[0].slice
        if isinstance(at, ast.Constant) and isinstance(at.value, str) and at.value.lower() in HEADERS:
            _check(look, node.value, f"the key {at.value!r}")
    elif isinstance(node, ast.Call):
        app = isinstance(node.func, ast.Attribute) and node.func.attr in VERBS
        app = app and any(path.startswith("onefold.App().") for path in look.paths(node.func))
        for keyword in node.keywords:
            if keyword.arg in ARGUMENTS or (app and keyword.arg == "key"):
                _check(look, keyword.value, f"the key `{keyword.arg}`")
        if app:
            for argument in node.args:
                _event(look, argument)


def _check(look: Look, key: ast.expr, what: str) -> None:
    cause = changing(look, key)
    if cause is not None:
        look.say(key, "key-source", f"{what} {shown(key)}", verb=f"is made from {cause}")


def changing(look: Look, node: ast.expr) -> str | None:
    """What in an expression is another the next time, as a sentence names it; None when nothing is."""
    if node not in look.causes:
        look.causes[node] = None  # while it is worked out: a name may be made of itself
        look.causes[node] = _cause(look, node)
    return look.causes[node]


def _cause(look: Look, node: ast.expr) -> str | None:
    for part, above in _parts(node):
        if isinstance(part, ast.Name):
            found = _name(look, part)
            if found is not None:
                return found
        if isinstance(part, ast.Name | ast.Attribute):
            call = above if isinstance(above, ast.Call) and above.func is part else None
            for path in look.paths(part):
                if path == "onefold.Step().attempt":
                    return "the attempt"
                ban = judge(path, call, pure=False)
                if ban is not None and ban.rule in ("clock", "chance") and "()" not in path:
                    return "a clock" if ban.rule == "clock" else "chance"
    return None


def _parts(root: ast.expr) -> Iterator[tuple[ast.expr, ast.AST | None]]:
    """Every part that goes into the value; what only chooses between values does not."""
    pending: list[tuple[ast.AST, ast.AST | None]] = [(root, None)]
    while pending:
        node, above = pending.pop()
        if isinstance(node, ast.expr):
            yield node, above
        inner = [node.body, node.orelse] if isinstance(node, ast.IfExp) else list(ast.iter_child_nodes(node))
        if not isinstance(node, ast.Compare | ast.Lambda):
            pending.extend((part, node) for part in reversed(inner))


def _name(look: Look, node: ast.Name) -> str | None:
    for binding in look.meaning.binding(node, look.unit):
        if binding.kind == "param":
            frame = look.frame.of(binding.scope.node)
            if frame is not None and binding.name in frame.taints:
                return frame.taints[binding.name]
        elif binding.kind in ("value", "unpack") and binding.value is not None and binding.scope.kind != "module":
            found = changing(look, binding.value)
            if found is not None:
                return found
    return None
