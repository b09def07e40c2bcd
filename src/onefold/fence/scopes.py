"""fence.scopes - which name is bound where, by what, and which of its bindings reach a use.

For: one reading of a file's tree that notes every scope, every binding and the spot of every name.
Never: says what a name means (fence.meaning does); follows a call.
Was wrong once: the last binding in the file taken for the one that counts. `names = set(found)` two
lines above `names = sorted(names)` then made the sorted list a set.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Blocks: TypeAlias = "tuple[tuple[int, int], ...]"
"""The blocks a spot stands in, from the outside: (number of the statement, which of its arms)."""
END = 1 << 60

BindingKind = Literal["import", "def", "class", "param", "value", "unpack", "element", "enter", "pattern", "other"]


@dataclass(slots=True, eq=False)
class Scope:
    """One scope. `names` holds what is bound in it; a comprehension is a scope of its own."""

    kind: Literal["module", "class", "function", "comprehension"]
    node: ast.AST
    parent: Scope | None
    names: dict[str, list[Binding]] = field(default_factory=dict)
    outside: dict[str, Literal["global", "nonlocal"]] = field(default_factory=dict)
    stars: list[tuple[str, int]] = field(default_factory=list)
    base: Blocks = ()

    @property
    def function(self) -> Scope:
        """The scope that a walrus in a comprehension binds in."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope

    def owner(self, name: str) -> Scope | None:
        """The scope whose binding a name in this scope means; None for a builtin or an unknown one."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            said = scope.outside.get(name)
            if said == "global":
                return scope.top
            if said is None and name in scope.names and (scope.kind != "class" or first):
                return scope
            first = first and scope.kind == "comprehension"
            scope = scope.parent
        return None

    @property
    def top(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


@dataclass(slots=True, eq=False)
class Binding:
    """One place where a name gets its value.

    value: the expression it is taken from: what is assigned, iterated, entered, matched. annotation: its
    type as written; of a pattern the class it stands in. detail: where in the value: indexes, or a field.
    Of an import: module, leading dots, name.
    """

    kind: BindingKind
    name: str
    node: ast.AST
    scope: Scope
    order: int
    blocks: Blocks
    value: ast.expr | None = None
    annotation: ast.expr | None = None
    detail: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an expression stands."""

    scope: Scope
    order: int
    blocks: Blocks


@dataclass(slots=True, eq=False)
class Scopes:
    """All that was noted of one tree."""

    top: Scope
    spots: dict[ast.AST, Spot] = field(default_factory=dict)
    inner: dict[ast.AST, Scope] = field(default_factory=dict)
    loops: set[int] = field(default_factory=set)
    forks: set[int] = field(default_factory=set)
    dead_ends: set[tuple[int, int]] = field(default_factory=set)

    def reaching(self, name: str, owner: Scope, spot: Spot) -> list[Binding]:
        """The bindings in `owner` that a use at `spot` may see, the nearest first.

        A use in an inner function sees what stands at the end of the outer one.
        """
        bindings = owner.names.get(name, ())
        order, blocks = spot.order, spot.blocks
        if spot.scope.function is not owner.function:
            order, blocks = END, owner.base
        found = []
        settled = False
        for binding in reversed(bindings):
            if binding.order < order and not settled and not self._apart(binding.blocks, blocks):
                found.append(binding)
                settled = blocks[: len(binding.blocks)] == binding.blocks
            elif binding.order > order and self._in_one_loop(binding.blocks, blocks):
                found.append(binding)
        return found

    def _apart(self, there: Blocks, here: Blocks) -> bool:
        """Whether no way leads from one to the other: two arms of one fork, or an arm that was left by return."""
        common = _common(there, here)
        if any(block in self.dead_ends for block in there[common:]):
            return True
        if common < len(there) and common < len(here) and there[common][0] == here[common][0]:
            return there[common][0] in self.forks and not self._in_one_loop(there, here)
        return False

    def _in_one_loop(self, there: Blocks, here: Blocks) -> bool:
        return any(block[0] in self.loops for block in there[: _common(there, here)])


def _common(one: Blocks, two: Blocks) -> int:
    length = 0
    for a, b in zip(one, two, strict=False):
        if a != b:
            break
        length += 1
    return length


def parameters(node: Function) -> list[ast.arg]:
    """Every parameter, in the order of the signature."""
    given = node.args
    found = [*given.posonlyargs, *given.args]
    if given.vararg is not None:
        found.append(given.vararg)
    found += given.kwonlyargs
    if given.kwarg is not None:
        found.append(given.kwarg)
    return found
