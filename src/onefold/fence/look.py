"""fence.look - what an inspector sees of one function: its own nodes, what they mean, and how to report.

For: every rule's file, which gets a Look and a node.
Never: decides that something is wrong.
Was wrong once: `ast.walk` over a function. It went into the functions within, and a step that was
defined inside its actuator was taken for a part of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from onefold.fence.meaning import Meaning
from onefold.fence.rules import RULES
from onefold.fence.scopes import Function, Scope
from onefold.fence.units import Unit
from onefold.fence.values import Frame, Root, Values
from onefold.fence.words import Finding, Place

Report: TypeAlias = Callable[[Finding, int], None]
"""Takes a finding, and the column where it begins: two things of one line are two findings."""
ANYWHERE = frozenset({"swallowed", "expired", "set-order", "float-time", "global-state"})
"""Rules of an actuator that have nothing to do with its steps."""
CHECKS = frozenset({"isinstance", "issubclass"})


@dataclass(slots=True, eq=False)
class Own:
    """The nodes that run when a function runs, in the order of the text, each with the one it stands in."""

    nodes: list[ast.AST] = field(default_factory=list)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)


def own(body: Function | ast.expr) -> Own:
    """Without the bodies of functions within, annotations, and the classes named by `except`, `case`, isinstance."""
    found = Own()
    starts: list[ast.AST] = [body]
    if isinstance(body, ast.Lambda):
        starts = [body.body]
    elif isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef):
        starts = list(body.body)
    for start in starts:
        if start is not body:
            found.parents[start] = body
    pending = list(reversed(starts))
    while pending:
        node = pending.pop()
        found.nodes.append(node)
        parts = _parts(node)
        for part in parts:
            found.parents[part] = node
        pending.extend(reversed(parts))
    return found


def _parts(node: ast.AST) -> list[ast.AST]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            given = node.args
            outer = [] if isinstance(node, ast.Lambda) else node.decorator_list
            return [*outer, *given.defaults, *(d for d in given.kw_defaults if d is not None)]
        case ast.AnnAssign():
            return [node.target, *([node.value] if node.value is not None else [])]
        case ast.ExceptHandler():
            return list(node.body)
        case ast.match_case():
            return [*([node.guard] if node.guard is not None else []), *node.body]
        case ast.Call(func=ast.Name(id=name)) if name in CHECKS:
            return list(node.args[:1])
        case _:
            return [part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.expr_context)]


@dataclass(slots=True, eq=False)
class Look:
    """One function, or one expression, as reached on one way from a guarded place.

    ports: names of libraries that were declared as ports. entered: all functions reached from the place so
    far; what their variables hold ends with the call. skipped: nodes that are told of, or a step's.
    """

    meaning: Meaning
    unit: Unit
    body: Function | ast.expr
    own: Own
    frame: Frame
    place: Place
    chain: tuple[str, ...]
    ports: frozenset[str]
    entered: set[ast.AST]
    report: Report
    skipped: set[ast.AST] = field(default_factory=set)
    causes: dict[ast.AST, str | None] = field(default_factory=dict)

    @property
    def root(self) -> bool:
        """Whether this is the guarded function itself."""
        return len(self.chain) == 1

    def of(self, node: ast.AST | None) -> Values:
        return self.meaning.of(node, self.unit, self.frame)

    def paths(self, node: ast.AST | None) -> list[str]:
        return self.meaning.paths(node, self.unit, self.frame)

    def made(self, node: ast.AST) -> Root:
        """Where the thing at the front of a dotted expression was made."""
        name = front(node)
        if name is None:
            return "local"
        bindings = self.meaning.binding(name, self.unit)
        if any(binding.scope.kind == "module" for binding in bindings):
            return "global"
        for binding in bindings:
            if binding.kind == "param":
                frame = self.frame.of(binding.scope.node)
                return frame.made.get(binding.name, "parameter") if frame is not None else "parameter"
        return "local"

    def outlives(self, scope: Scope) -> bool:
        """Whether the variables of a function are still there after the guarded call."""
        return scope.kind == "function" and scope.node not in self.entered and self.frame.of(scope.node) is None

    def say(self, node: ast.AST, rule: str, what: str, *, verb: str = "", why: str = "", instead: str = "") -> None:
        """Report one finding at the line of `node`."""
        told = RULES[rule]
        reason = why or told.reason(self.place)
        problem = f"{self.where(rule)}, {what} {verb or told.verb}" + (f": {reason}" if reason else "")
        found = Finding(
            self.unit.file,
            getattr(node, "lineno", 1),
            rule,
            sentence(problem),
            sentence(instead or told.cure(self.place)),
        )
        self.report(found, getattr(node, "col_offset", 0))

    def where(self, rule: str) -> str:
        """The place in words, and the way there."""
        place = self.place
        if place.kind == "actuator":
            there = f"in {place.owner}" if rule in ANYWHERE else f"outside a step of {place.owner}"
        elif place.kind == "step":
            there = f"in {place.owner}"
        else:
            there = f"in {place.role} of {place.owner}"
        return there if self.root else f"{there} ({' → '.join(self.chain)})"


def sentence(text: str) -> str:
    """With a capital in front and a stop behind, unless it begins with code."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '…')) else '.'}"


def front(node: ast.AST) -> ast.Name | None:
    """The name that a dotted or indexed expression begins with; None when something was called on the way."""
    while not isinstance(node, ast.Name):
        if not isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Await):
            return None
        node = node.value
    return node


def shown(node: ast.AST, *, call: bool = False) -> str:
    """An expression as a sentence shows it: short, on one line, in backquotes."""
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        text = "this expression"
    text = " ".join(text.split())
    if len(text) > 60:
        text = f"{text[:59]}…"
    return f"`{text}()`" if call else f"`{text}`"
