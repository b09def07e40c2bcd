"""fence.charts - delayed transitions in a chart, as a dict or as JSON text.

For: the rule delayed, at the line where the key stands.
Never: checks anything else of a chart; the loader does, and refuses it with every fault at once.
Was wrong once: every key named `after`. A state may be called that, and an event, and a field of the context.
"""

from __future__ import annotations

import ast
from typing import Final

from onefold.fence.meaning import Meaning
from onefold.fence.units import Unit
from onefold.fence.values import Lit

DELAYS: Final = frozenset({"after", "delay", "delays"})
NAMES: Final = frozenset({"states", "on", "actors"})
"""Keys whose own keys are names the author chose."""
DATA: Final = frozenset("context input output data meta description tags params id raise event sendParent type".split())
READERS: Final = frozenset({"json.loads", "msgspec.json.decode", "orjson.loads"})
DEEP: Final = 40


def delays(meaning: Meaning, node: ast.expr, unit: Unit) -> list[tuple[Unit, int, str]]:
    """Each delay of a chart: the file, the line, and the key."""
    found: list[tuple[Unit, int, str]] = []
    _chart(meaning, node, unit, found, named=False, deep=DEEP)
    return list(dict.fromkeys(found))


def _chart(
    meaning: Meaning, node: ast.expr, unit: Unit, found: list[tuple[Unit, int, str]], *, named: bool, deep: int
) -> None:
    """named: the keys of this dict are names, and only what is under them is a chart's."""
    if not deep:
        return
    text = _text(meaning, node, unit)
    if text is not None:
        where, line, raw = text
        _json(raw, where, line, found)
        return
    for value in meaning.of(node, unit):
        if not isinstance(value, Lit):
            continue
        if not isinstance(value.node, ast.Dict):
            for part in value.node.elts:
                _chart(meaning, part, value.unit, found, named=False, deep=deep - 1)
            continue
        for key, part in zip(value.node.keys, value.node.values, strict=True):
            name = key.value if isinstance(key, ast.Constant) else None
            if key is None:
                _chart(meaning, part, value.unit, found, named=named, deep=deep - 1)
            elif named:
                _chart(meaning, part, value.unit, found, named=False, deep=deep - 1)
            elif name in DELAYS:
                found.append((value.unit, key.lineno, str(name)))
            elif name not in DATA:
                _chart(meaning, part, value.unit, found, named=name in NAMES, deep=deep - 1)


def _text(meaning: Meaning, node: ast.expr, unit: Unit) -> tuple[Unit, int, str] | None:
    """The JSON text an expression is: written there, under a name, or read by a parser."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        raw = node.value.decode("utf-8", "replace") if isinstance(node.value, bytes) else node.value
        return (unit, node.lineno, raw) if raw.lstrip()[:1] in ("{", "[") else None
    if isinstance(node, ast.Call) and node.args and READERS & {*meaning.paths(node.func, unit)}:
        return _text(meaning, node.args[0], unit)
    if isinstance(node, ast.Name):
        for binding in meaning.binding(node, unit):
            if binding.kind == "value" and isinstance(binding.value, ast.Constant | ast.Call):
                return _text(meaning, binding.value, unit)
    return None


def _json(raw: str, unit: Unit, line: int, found: list[tuple[Unit, int, str]]) -> None:
    """JSON is nearly a Python literal: read as one, it keeps its lines."""
    try:
        tree = ast.parse(raw.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # the loader says what is wrong with it
    first = line + raw[: len(raw) - len(raw.lstrip())].count("\n")
    pending: list[tuple[ast.AST, bool]] = [(tree, False)]
    while pending:
        node, named = pending.pop()
        if isinstance(node, ast.List):
            pending.extend((part, False) for part in node.elts)
        elif isinstance(node, ast.Dict):
            for key, part in zip(node.keys, node.values, strict=True):
                name = key.value if isinstance(key, ast.Constant) else None
                if named:
                    pending.append((part, False))
                elif name in DELAYS and key is not None:
                    found.append((unit, first + key.lineno - 1, str(name)))
                elif name not in DATA:
                    pending.append((part, name in NAMES))
