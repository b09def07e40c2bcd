"""fence.places - which functions of a file are Onefold's to keep pure.

For: `Module(…)`, `from_machine(…)`, classes derived from Cell, `@actuator`, and the functions of steps and ports.
Never: looks for them by their names: a function called decide that no Module is given is nobody's business.
Was wrong once: only functions written where the Module is. `decide=make_decide(limit)` was not followed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from onefold.fence.classes import attribute, derived, lineage
from onefold.fence.meaning import Meaning
from onefold.fence.scopes import Function
from onefold.fence.units import Unit
from onefold.fence.values import Cls, Fun, Lit, Made, Named, Value, Values
from onefold.fence.words import Place

MOMENT: Final = Named("datetime.datetime()")
NOW: Final = "now"

# What each function of a module is handed, in order.
MODULE: Final[dict[str, tuple[str, ...]]] = {
    "key": ("event",),
    "event_id": ("event",),
    "decide": ("state", "event", NOW),
    "evolve": ("state", "fact"),
    "view": ("state",),
    "on_answer": ("state", "answer", NOW),
    "on_alarm": ("state", NOW),
    "wake": ("state",),
    "snapshot": ("state",),
}
CHART: Final[dict[str, tuple[str, ...]]] = {
    "guards": ("context", "event", NOW),
    "actions": ("context", "event", NOW),
    "effects": ("context", "event", NOW),
}
WORDS: Final = {"guards": "guard", "actions": "action", "effects": "effect"}
VERBS_OF_STEPS: Final = frozenset({"onefold.Run().step", "onefold.Run().db.step"})


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """One guarded function, or an expression that is worked out for one.

    handed: what its parameters are, in order. ports: names of libraries that are declared as ports.
    """

    unit: Unit
    body: Function | ast.expr
    place: Place
    handed: tuple[str, ...] = ()
    receiver: Made | Cls | None = None
    skipped: int = 0
    ports: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """The definition of a chart, and whose it is."""

    node: ast.expr
    place: Place


@dataclass(slots=True, eq=False)
class Places:
    """What was found in one file."""

    roots: list[Root] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    unsaved: list[tuple[ast.Call, Place]] = field(default_factory=list)


def places(meaning: Meaning, unit: Unit) -> Places:
    """Every place of a file. A function may stand under several."""
    found = Places()
    for node in ast.walk(unit.tree):
        match node:
            case ast.Call():
                _call(meaning, unit, node, found)
            case ast.ClassDef():
                found.roots += _cell(meaning, Cls(unit, node))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                _decorated(meaning, unit, node, found)
            case _:
                pass
    return found


def _call(meaning: Meaning, unit: Unit, node: ast.Call, found: Places) -> None:
    paths = {*meaning.paths(node.func, unit)}
    if not paths:
        return
    if "onefold.Module" in paths:
        _module(meaning, unit, node, found)
    elif "onefold.machine.from_machine" in paths:
        _machine(meaning, unit, node, found)
    elif paths & {"onefold.actuator", "onefold.actuator()", "onefold.Actuator"}:
        for value in meaning.of(node.args[0], unit) if node.args else ():
            if isinstance(value, Fun):
                found.roots.append(_actuator(meaning, unit, value, node))
    elif paths & VERBS_OF_STEPS:
        for value in meaning.of(node.args[0], unit) if node.args else ():
            if isinstance(value, Fun):
                found.roots.append(_step(value.unit, value.node))


# --- modules and charts -----------------------------------------------------------------------------


def _module(meaning: Meaning, unit: Unit, node: ast.Call, found: Places) -> None:
    owner = f"module {_name(node)}"
    given, complete = arguments(meaning, unit, node)
    for role, handed in MODULE.items():
        if role in given:
            place = Place("module", role, owner, NOW in handed)
            found.roots += _functions(meaning, given[role], place, handed)
    for _, value in _entries(meaning, given.get("upgrade")):
        found.roots += _functions(meaning, value, Place("module", "upgrade", owner), ("fact",))
    if "initial" in given:
        at, expression = given["initial"]
        found.roots.append(Root(at, expression, Place("module", "initial", owner)))
    if "snapshot" not in given and complete:
        found.unsaved.append((node, Place("module", "snapshot", owner)))


def _machine(meaning: Meaning, unit: Unit, node: ast.Call, found: Places) -> None:
    owner = f"chart {_name(node)}"
    given, _ = arguments(meaning, unit, node)
    for group, handed in CHART.items():
        for name, value in _entries(meaning, given.get(group)):
            place = Place("chart", f"{WORDS[group]} {name!r}" if name else WORDS[group], owner, now=True)
            found.roots += _functions(meaning, value, place, handed)
    for role, handed in (("key", ("event",)), ("wake", ("context",))):
        if role in given:
            found.roots += _functions(meaning, given[role], Place("chart", role, owner), handed)
    if "context" in given:
        at, expression = given["context"]
        found.roots.append(Root(at, expression, Place("chart", "context", owner)))
    definition = node.args[1] if len(node.args) > 1 else given["chart"][1] if "chart" in given else None
    if definition is not None:
        found.charts.append(Chart(definition, Place("chart", "definition", owner, now=True)))


Given = dict[str, tuple[Unit, ast.expr]]


def arguments(meaning: Meaning, unit: Unit, node: ast.Call) -> tuple[Given, bool]:
    """The keyword arguments of a call, those of `**parts` too, and whether these are all."""
    given: Given = {}
    complete = True
    for keyword in node.keywords:
        if keyword.arg is not None:
            given[keyword.arg] = (unit, keyword.value)
            continue
        entries = _entries(meaning, (unit, keyword.value))
        complete = complete and bool(entries) and all(name for name, _ in entries)
        given.update({name: value for name, value in entries if name})
    return given, complete


def _entries(meaning: Meaning, given: tuple[Unit, ast.expr] | None) -> list[tuple[str, tuple[Unit, ast.expr]]]:
    """The entries of a dict: written out, under a name, `dict(a=b)`, or of dicts within it."""
    if given is None:
        return []
    unit, node = given
    if isinstance(node, ast.Call) and meaning.paths(node.func, unit) == ["builtins.dict"]:
        inner = [entry for one in node.args[:1] for entry in _entries(meaning, (unit, one))]
        return inner + [(k.arg or "", (unit, k.value)) for k in node.keywords]
    if isinstance(node, ast.Name):
        for binding in meaning.binding(node, unit):
            if binding.kind == "value" and isinstance(binding.value, ast.Call):
                return _entries(meaning, (unit, binding.value))
    found: list[tuple[str, tuple[Unit, ast.expr]]] = []
    for value in meaning.of(node, unit):
        if isinstance(value, Lit) and isinstance(value.node, ast.Dict):
            for key, part in zip(value.node.keys, value.node.values, strict=True):
                if key is None:
                    found += _entries(meaning, (value.unit, part)) or [("", (value.unit, part))]
                else:
                    name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
                    found.append((name, (value.unit, part)))
    return found


def _functions(meaning: Meaning, given: tuple[Unit, ast.expr], place: Place, handed: tuple[str, ...]) -> Iterator[Root]:
    unit, node = given
    for value in meaning.of(node, unit):
        fun = _as_function(meaning, value)
        if fun is not None:
            yield Root(fun.unit, fun.node, place, handed, fun.receiver, fun.skipped)


def _as_function(meaning: Meaning, value: Value) -> Fun | None:
    """A function, or an instance that is called like one."""
    if isinstance(value, Made):
        return next((v for v in attribute(meaning, value, "__call__") if isinstance(v, Fun)), None)
    return value if isinstance(value, Fun) else None


def _name(node: ast.Call) -> str:
    first = node.args[0] if node.args else None
    text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
    return f"of line {node.lineno}" if text is None else f'"{text}"'


# --- cells --------------------------------------------------------------------------------------------


def _cell(meaning: Meaning, cls: Cls) -> Iterator[Root]:
    """The public methods of a cell, those of its bases too, and what its fields begin with."""
    if not cls.node.bases or not derived(meaning, cls, "onefold.Cell"):
        return
    owner = f"cell {cls.node.name}"
    seen: set[str] = set()
    for one in lineage(meaning, cls):
        for part in one.node.body:
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                if part.name.startswith("_") or part.name in seen:
                    continue
                seen.add(part.name)
                static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in part.decorator_list)
                receiver = None if static else Made(cls)
                yield Root(one.unit, part, Place("cell", part.name, owner), (), receiver)
            elif isinstance(part, ast.AnnAssign) and part.value is not None:
                yield Root(one.unit, part.value, Place("cell", _field(part), owner))


def _field(part: ast.AnnAssign) -> str:
    return f"field {part.target.id}" if isinstance(part.target, ast.Name) else "a field"


# --- actuators, ports, steps --------------------------------------------------------------------------


def _decorated(meaning: Meaning, unit: Unit, node: ast.FunctionDef | ast.AsyncFunctionDef, found: Places) -> None:
    fun = Fun(unit, node)
    for decorator in node.decorator_list:
        for path in meaning.paths(decorator, unit):
            if path in ("onefold.actuator", "onefold.actuator()"):
                options = decorator if isinstance(decorator, ast.Call) else None
                found.roots.append(_actuator(meaning, unit, fun, options))
            elif path.startswith("onefold.port."):
                found.roots.append(_step(unit, node))
    plain = [*node.args.posonlyargs, *node.args.args][:2]
    if any("onefold.Step" in meaning.paths(p.annotation, unit) for p in plain if p.annotation is not None):
        found.roots.append(_step(unit, node))


def _step(unit: Unit, node: Function) -> Root:
    name = "a step" if isinstance(node, ast.Lambda) else f"step {node.name}"
    return Root(unit, node, Place("step", name, name))


def _actuator(meaning: Meaning, unit: Unit, fun: Fun, options: ast.Call | None) -> Root:
    name = "" if isinstance(fun.node, ast.Lambda) else fun.node.name
    ports: set[str] = set()
    for keyword in options.keywords if options is not None else ():
        if keyword.arg == "capabilities":
            listed = [item for v in meaning.of(keyword.value, unit) if isinstance(v, Lit) for item in _items(v)]
            ports.update(path for item in listed for path in meaning.paths(item, unit) if "." in path)
        elif keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            name = str(keyword.value.value)
    place = Place("actuator", name, f"actuator {name}")
    return Root(fun.unit, fun.node, place, ("run", "input"), ports=frozenset(ports - {"builtins.str()"}))


def _items(value: Lit) -> list[ast.expr]:
    return [] if isinstance(value.node, ast.Dict) else value.node.elts


def handed_values(root: Root) -> dict[str, Values]:
    """What is known of a root's parameters without its annotations."""
    if isinstance(root.body, ast.expr) and not isinstance(root.body, ast.Lambda):
        return {}
    given = root.body.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    bound: dict[str, Values] = {}
    if root.receiver is not None and names:
        bound[names.pop(0)] = (root.receiver,)
    for name, what in zip(names[root.skipped :], root.handed, strict=False):
        if what == NOW:
            bound[name] = (MOMENT,)
        elif what == "run":
            bound[name] = (Named("onefold.Run()"),)
    return bound
