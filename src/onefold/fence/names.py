"""fence.names - names of libraries in a guarded function, and values that were read when the file was loaded.

For: the rules clock, chance, environment, files, network, threads, process, sleep, terminal, outside-step.
Never: follows a call of the user's; the walk does, and comes back with the function's own names.
Was wrong once: only calls. `field(default_factory=uuid4)` calls nothing and draws an id for every fact.
"""

from __future__ import annotations

import ast
from typing import Final

from onefold.fence.classes import derived
from onefold.fence.judging import Ban, judge
from onefold.fence.look import Look, own, shown
from onefold.fence.meaning import Meaning
from onefold.fence.scopes import FUNCTIONS, Binding, Function
from onefold.fence.units import Unit
from onefold.fence.values import Cls, Fun, Named

LOADED: Final = frozenset("clock chance environment files network".split())
"""What a value may have been read from when the file was loaded, so that the next start has another one."""
FAR: Final = 4  # names of names of names
SETTINGS: Final = "pydantic_settings.BaseSettings"


def inspect(look: Look, node: ast.AST) -> None:
    """One node: a name, a dotted name, or a call of something that is for a step."""
    if isinstance(node, ast.Call):
        _outside_step(look, node)
        if isinstance(node.func, ast.Call | ast.Subscript):
            _made(look, node)
    if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return
    above = look.own.parents.get(node)
    call = above if isinstance(above, ast.Call) and above.func is node else None
    root = look.made(node)
    for path in look.paths(node):
        ban = judge(path, call, pure=look.place.pure, root=root, entered=isinstance(above, ast.withitem))
        if ban is not None:
            look.skipped.add(node)
            _report(look, node, call, path, ban)
            return
    if isinstance(node, ast.Name) and root == "global":
        _loaded(look, node)


def begin(look: Look) -> None:
    """Defaults of parameters, which were worked out when the file was loaded."""
    if not isinstance(look.body, FUNCTIONS):
        return
    given = look.body.args
    for default in (*given.defaults, *given.kw_defaults):
        if default is None or isinstance(default, ast.Constant):
            continue
        found = _read(look.meaning, look.unit, default, FAR)
        if found is not None:
            _say_loaded(look, default, shown(default), *found)


def _report(look: Look, node: ast.Name | ast.Attribute, call: ast.Call | None, path: str, ban: Ban) -> None:
    what = shown(node, call=call is not None)
    if isinstance(node, ast.Name) and node.id not in path:
        what += f" ({path})"
    look.say(node, ban.rule, what, verb=ban.verb, instead=_cure(look, path, ban.rule))
    given = [*call.args, *(keyword.value for keyword in call.keywords)] if call is not None else []
    look.skipped.update(one for one in given if isinstance(one, ast.Name | ast.Attribute))  # named there, not called


def _made(look: Look, node: ast.Call) -> None:
    """`getattr(time, "time")()`: called without a name of its own."""
    for path in look.paths(node.func):
        ban = judge(path, node, pure=look.place.pure)
        if ban is not None:
            look.say(node, ban.rule, f"{shown(node.func, call=True)} ({path})", verb=ban.verb)
            return


def _cure(look: Look, path: str, rule: str) -> str:
    """What fits this one name better than the rule's own advice."""
    if look.place.kind == "actuator":
        if rule == "chance" and "uuid" in path:
            return "use run.uuid(), which is the same on every replay"
        if rule == "chance" and path.startswith(("random.", "secrets.", "numpy.random")):
            return "use run.random, which is the same on every replay; a secret is drawn in a step"
    return ""


def _outside_step(look: Look, node: ast.Call) -> None:
    """A port, an actuator, or a function that asks for its `step`, called by itself."""
    for value in look.of(node.func):
        kind = ""
        if isinstance(value, Named):
            port = value.path == "onefold.Port()" or value.path in look.ports
            kind = "is a port" if port else "is an actuator" if value.path == "onefold.Actuator()" else ""
        elif isinstance(value, Fun) and takes_step(look.meaning, value):
            kind = "asks for its `step`"
        if kind:
            look.say(node, "outside-step", shown(node.func, call=True), verb=f"{kind}, and is called")
            look.skipped.add(node.func)
            return


def takes_step(meaning: Meaning, fun: Fun) -> bool:
    """Whether a function's first parameter is annotated `Step`."""
    given = fun.node.args
    plain = [*given.posonlyargs, *given.args]
    if fun.receiver is not None:
        plain = plain[1:]
    if not plain or plain[0].annotation is None:
        return False
    found = meaning.of(plain[0].annotation, fun.unit)
    return any(isinstance(value, Named) and value.path == "onefold.Step" for value in found)


# --- values read when the file was loaded -------------------------------------------------------------


def _loaded(look: Look, node: ast.Name) -> None:
    found = loaded(look.meaning, look.unit, node.id)
    if found is None:
        return
    _say_loaded(look, node, f"`{node.id}`", *found)


def _say_loaded(look: Look, node: ast.expr, what: str, rule: str, path: str) -> None:
    verb = f"was made of `{path}` when the file was loaded, and is read"
    why = "the next start, and every other machine, may have another value"
    look.say(node, rule, what, verb=verb, why=why)


def loaded(meaning: Meaning, unit: Unit, name: str, far: int = FAR) -> tuple[str, str] | None:
    """The rule that a name at the top of a file breaks by its value, and the name of the library behind it."""
    asked = (unit.file, name)
    if asked not in meaning.loads:
        meaning.loads[asked] = None  # while it is worked out: a name may be made of itself
        found = (_made_of(meaning, unit, binding, far) for binding in unit.scopes.top.names.get(name, ()))
        meaning.loads[asked] = next((one for one in found if one is not None), None)
    return meaning.loads[asked]


def _made_of(meaning: Meaning, unit: Unit, binding: Binding, far: int) -> tuple[str, str] | None:
    if not far:
        return None
    if binding.kind == "import" and len(binding.detail) == 3:
        module, level, name = binding.detail
        known = meaning.units.meant(unit, str(module), int(level))
        return loaded(meaning, known, str(name), far - 1) if known is not None else None
    if binding.kind not in ("value", "unpack", "enter") or binding.value is None:
        return None
    return _read(meaning, unit, binding.value, far)


def _read(meaning: Meaning, unit: Unit, body: Function | ast.expr, far: int) -> tuple[str, str] | None:
    """What an expression, or a function that is called, reads from the world. What is only named reads nothing."""
    part = own(body)
    for node in part.nodes:
        found = None
        if isinstance(node, ast.Name | ast.Attribute):
            above = part.parents.get(node)
            call = above if isinstance(above, ast.Call) and above.func is node else None
            found = _world(meaning, unit, node, call)
            if found is None and isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found = _top_name(meaning, unit, node, far)
        elif isinstance(node, ast.Call) and far > 1:
            found = _called(meaning, unit, node, far)
        if found is not None:
            return found
    return None


def _world(meaning: Meaning, unit: Unit, node: ast.expr, call: ast.Call | None) -> tuple[str, str] | None:
    for path in meaning.paths(node, unit):
        ban = judge(path, call, pure=False)
        if ban is None or ban.rule not in LOADED or path in ("builtins.hash", "builtins.id"):
            continue  # the two stay the same as long as the process lives, and are used for nothing else
        if call is not None or ban.rule == "environment":
            return ban.rule, path
    return None


def _top_name(meaning: Meaning, unit: Unit, node: ast.Name, far: int) -> tuple[str, str] | None:
    top = [binding for binding in meaning.binding(node, unit) if binding.scope.kind == "module"]
    return loaded(meaning, unit, node.id, far - 1) if top and far > 1 else None


def _called(meaning: Meaning, unit: Unit, node: ast.Call, far: int) -> tuple[str, str] | None:
    for func in meaning.of(node.func, unit):
        if isinstance(func, Cls) and derived(meaning, func, SETTINGS):
            return "environment", SETTINGS
        found = _read(meaning, func.unit, func.node, far - 1) if isinstance(func, Fun) else None
        if found is not None:
            return found
    return None
