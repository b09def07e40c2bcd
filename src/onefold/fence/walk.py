"""fence.walk - from each guarded function through every function of the user's that it reaches.

For: the order of the walk, what a call hands on, and which functions are a step's and left alone.
Never: judges a node by itself; each rule's file does.
Was wrong once: a function among the arguments taken for called. `run.step(fetch)` names the one function
that may do anything, and it was the first to be reported.
"""

from __future__ import annotations

import ast
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from onefold.fence import changes, keys, names, orders, outcomes, waiting
from onefold.fence.changes import origin_of
from onefold.fence.classes import attribute, fields, lineage, property_of
from onefold.fence.functions import around
from onefold.fence.keys import changing
from onefold.fence.look import Look, Own, Report, own
from onefold.fence.meaning import Meaning
from onefold.fence.names import takes_step
from onefold.fence.places import NOW, VERBS_OF_STEPS, Root, handed_values
from onefold.fence.scopes import FUNCTIONS, Function
from onefold.fence.units import Unit
from onefold.fence.values import Cls, Frame, Fun, Made, Named, Origin
from onefold.fence.words import Kind

MOST_LOOKS: Final = 8  # at one function, under different arguments
MOST: Final = 3000  # looks from one root: no program is that large, and a wrong turn of ours must end
FACTORIES: Final = frozenset(
    {"dataclasses.field", "pydantic.Field", "pydantic.fields.Field", "attrs.field", "attr.ib", "msgspec.field"}
)
MAKING: Final = ("__new__", "__init__", "__post_init__", "model_post_init")
ENTERING: Final = ("__enter__", "__exit__", "__aenter__", "__aexit__")
SEALED: Final = {
    "state": "the state",
    "event": "the event",
    "fact": "the fact",
    "answer": "the answer",
    "context": "the context",
}
Inspect = Callable[[Look, ast.AST], None]
PURE: Final[tuple[Inspect, ...]] = (names.inspect, waiting.inspect, changes.inspect, orders.inspect, keys.inspect)
INSPECTORS: Final[dict[Kind, tuple[Inspect, ...]]] = {
    "module": PURE,
    "chart": PURE,
    "cell": PURE,
    "actuator": (*PURE[:-1], outcomes.inspect),
    "step": (keys.inspect,),
}


class Walk:
    """One walk for all roots of a check. `report` gets each finding, perhaps more than once."""

    def __init__(self, meaning: Meaning, report: Report) -> None:
        self._meaning = meaning
        self._report = report
        self._own: dict[ast.AST, Own] = {}
        self._seen: set[object] = set()
        self._looks: Counter[tuple[ast.AST, str]] = Counter()
        self._waiting: deque[Look] = deque()

    def root(self, root: Root) -> None:
        """Look at one guarded function and at all it reaches."""
        self._meaning.fresh()
        frame = Frame(root.body, handed_values(root))
        if root.place.kind in ("module", "chart"):
            _seal(root, frame)
        chain = (name_of(root.body, root.place.role),)
        nodes = self._nodes(root.body)
        look = Look(
            meaning=self._meaning,
            unit=root.unit,
            body=root.body,
            own=nodes,
            frame=frame,
            place=root.place,
            chain=chain,
            ports=root.ports,
            entered={root.body},
            report=self._report,
        )
        self._wait_for(look)
        left = MOST
        while self._waiting and left:
            self._inspect(self._waiting.popleft())
            left -= 1
        self._waiting.clear()

    def _nodes(self, body: Function | ast.expr) -> Own:
        if body not in self._own:
            self._own[body] = own(body)
        return self._own[body]

    def _wait_for(self, look: Look) -> None:
        frame = look.frame
        place = look.place
        seen = (
            look.body,
            (place.kind, place.now),
            frozenset(frame.bound.items()),
            frozenset(frame.origins.items()),
            frozenset(frame.taints.items()),
        )
        self._looks[look.body, place.kind] += 1
        if seen not in self._seen and self._looks[look.body, place.kind] <= MOST_LOOKS:
            self._seen.add(seen)
            self._waiting.append(look)

    # --- one function -------------------------------------------------------------------------------

    def _inspect(self, look: Look) -> None:
        if look.place.kind != "step":
            waiting.begin(look)
            names.begin(look)
        inspectors = INSPECTORS[look.place.kind]
        for node in look.own.nodes:
            if node in look.skipped or look.own.parents.get(node) in look.skipped:
                look.skipped.add(node)
                continue
            if isinstance(node, ast.Call):
                self._leave_to_steps(look, node)
            for inspect in inspectors:
                inspect(look, node)
        for node in look.own.nodes:
            if node not in look.skipped:
                self._follow(look, node)

    def _follow(self, look: Look, node: ast.AST) -> None:
        """Whatever runs when this node does."""
        if isinstance(node, ast.Call):
            if node.func not in look.skipped:
                self._call(look, node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            for value in look.of(node.value):
                found = property_of(look.meaning, value, node.attr) if isinstance(value, Made) else None
                if found is not None:
                    self._reach(look, found, None)
        elif isinstance(node, ast.withitem):
            for value in look.of(node.context_expr):
                if isinstance(value, Made):
                    self._methods(look, value, ENTERING, None)

    def _leave_to_steps(self, look: Look, node: ast.Call) -> None:
        """What is handed to run.step is not called here."""
        if not VERBS_OF_STEPS & {*look.paths(node.func)}:
            return
        undo = [keyword.value for keyword in node.keywords if keyword.arg == "undo"]
        for argument in (*node.args[:1], *undo):
            plain = isinstance(argument, ast.Name | ast.Attribute | ast.Lambda)
            if plain or any(isinstance(value, Fun) for value in look.of(argument)):
                look.skipped.add(argument)

    # --- where it leads -----------------------------------------------------------------------------

    def _call(self, look: Look, node: ast.Call) -> None:
        values = look.of(node.func)
        users = False
        for value in values:
            if isinstance(value, Fun):
                self._reach(look, value, node)
            elif isinstance(value, Cls):
                self._make(look, value, node)
            elif isinstance(value, Made):
                self._methods(look, value, ("__call__",), node)
            users = users or isinstance(value, Fun | Cls | Made)
        told = [value.path for value in values if isinstance(value, Named)]
        if users or any(path.startswith("onefold.") or path == "functools.partial" for path in told):
            return
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            for value in look.of(argument):
                if isinstance(value, Fun):
                    self._reach(look, value, None)

    def _methods(self, look: Look, made: Made, names: tuple[str, ...], node: ast.Call | None) -> None:
        for name in names:
            for value in attribute(look.meaning, made, name):
                if isinstance(value, Fun):
                    self._reach(look, value, node)

    def _make(self, look: Look, cls: Cls, node: ast.Call) -> None:
        """Making an instance runs its constructors, and the factories of the fields that were not given."""
        for name in MAKING:
            for value in attribute(look.meaning, Made(cls), name):
                if isinstance(value, Fun):
                    self._reach(look, value, node if name != "__post_init__" else None, called=cls.node.name)
        given = {keyword.arg for keyword in node.keywords} | {*fields(look.meaning, cls)[: len(node.args)]}
        for one in lineage(look.meaning, cls):
            for part in one.node.body:
                if not isinstance(part, ast.AnnAssign) or part.value is None:
                    continue
                if isinstance(part.target, ast.Name) and part.target.id not in given:
                    self._default(look, one, part.value)

    def _default(self, look: Look, cls: Cls, value: ast.expr) -> None:
        """What a field gets by itself: a factory's result, or what was worked out when the file was loaded."""
        if isinstance(value, ast.Call) and FACTORIES & {*look.meaning.paths(value.func, cls.unit)}:
            for keyword in value.keywords:
                if keyword.arg == "default_factory":
                    for fun in look.meaning.of(keyword.value, cls.unit):
                        if isinstance(fun, Fun):
                            self._reach(look, fun, None, called=cls.node.name)
                    self._expression(look, cls, keyword.value)
            return
        if isinstance(value, ast.Call):
            self._expression(look, cls, value)

    def _expression(self, look: Look, cls: Cls, body: ast.expr) -> None:
        self._further(look, cls.unit, body, Frame(body), cls.node.name)

    def _further(self, look: Look, unit: Unit, body: Function | ast.expr, frame: Frame, name: str) -> None:
        chain = (*look.chain, name)
        nodes = self._nodes(body)
        look.entered.add(body)
        self._wait_for(
            replace(look, unit=unit, body=body, own=nodes, frame=frame, chain=chain, skipped=set(), causes={})
        )

    def _reach(self, look: Look, fun: Fun, node: ast.Call | None, *, called: str = "") -> None:
        """Look at a function of the user's, called by `node` or by whatever it was handed to."""
        if takes_step(look.meaning, fun) and look.place.kind != "step":
            return
        bound = look.meaning.arguments(fun, node, look.unit, look.frame)
        frame = Frame(fun.node, bound, around(fun, look.frame))
        for name, argument in _handed(fun, node):
            frame.made[name] = look.made(argument)
            origin = origin_of(look, argument)
            if origin is not None:
                frame.origins[name] = origin
            if look.place.kind != "actuator" and (taint := changing(look, argument)) is not None:
                frame.taints[name] = taint
        self._further(look, fun.unit, fun.node, frame, called or _shown(fun))


def _handed(fun: Fun, node: ast.Call | None) -> Iterator[tuple[str, ast.expr]]:
    """Which parameter gets which argument, the receiver too."""
    if node is None:
        return
    names = [argument.arg for argument in (*fun.node.args.posonlyargs, *fun.node.args.args)]
    if fun.receiver is not None and names:
        own_name = names.pop(0)
        if isinstance(node.func, ast.Attribute) and isinstance(fun.receiver, Made):
            yield own_name, node.func.value
    for name, argument in zip(names[fun.skipped :], node.args, strict=False):
        if isinstance(argument, ast.Starred):
            break
        yield name, argument
    for keyword in node.keywords:
        if keyword.arg is not None:
            yield keyword.arg, keyword.value


def _seal(root: Root, frame: Frame) -> None:
    """What a module's function is handed is not its own, and `now` is another at every try."""
    body = root.body
    if not isinstance(body, FUNCTIONS):
        return
    plain = [argument.arg for argument in (*body.args.posonlyargs, *body.args.args)]
    if root.receiver is not None:
        frame.origins[plain[0]] = Origin("global", f"the object that {name_of(body, 'it')} is a method of")
        plain = plain[1:]
    for name, what in zip(plain[root.skipped :], root.handed, strict=False):
        if what in SEALED:
            frame.origins[name] = Origin("sealed", SEALED[what])
        elif what == NOW:
            frame.taints[name] = "`now`"


def _shown(fun: Fun) -> str:
    """What a chain calls a function that was reached, with its class if it has one."""
    above = fun.unit.scopes.inner[fun.node].parent
    room = f"{above.node.name}." if above is not None and isinstance(above.node, ast.ClassDef) else ""
    return f"{room}{name_of(fun.node, 'a lambda')}"


def name_of(body: ast.AST, otherwise: str) -> str:
    """What a chain calls a function."""
    return body.name if isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef) else otherwise
