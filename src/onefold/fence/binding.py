"""fence.binding - one reading of a file's tree: every scope, every binding, the spot of every name.

For: `read`, which fills fence.scopes.
Never: judges; recurses into a deep expression (a sum of a thousand parts is a thousand levels deep).
Was wrong once: the symbol table of the compiler. It says that a name is local and not where it got its value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Literal

from onefold.fence.scopes import COMPREHENSIONS, Binding, BindingKind, Blocks, Function, Scope, Scopes, Spot, parameters


def read(tree: ast.Module) -> Scopes:
    """Note every scope, binding and spot. Deep expressions are walked with a list, not with the interpreter's stack."""
    noted = Scopes(Scope("module", tree, None))
    _Reader(noted).block(tree.body, noted.top, ())
    return noted


class _Reader:
    def __init__(self, noted: Scopes) -> None:
        self._noted = noted
        self._count = 0

    def _next(self) -> int:
        self._count += 1
        return self._count

    # --- statements -------------------------------------------------------------------------------

    def block(self, body: Iterable[ast.stmt], scope: Scope, blocks: Blocks) -> None:
        for statement in body:
            self._statement(statement, scope, blocks)

    def _arm(self, body: list[ast.stmt], scope: Scope, blocks: Blocks, number: int, arm: int) -> None:
        """One arm of a statement. Left by return or raise, nothing bound in it reaches what follows."""
        self.block(body, scope, (*blocks, (number, arm)))
        if body and isinstance(body[-1], ast.Return | ast.Raise):
            self._noted.dead_ends.add((number, arm))

    def _statement(self, node: ast.stmt, scope: Scope, blocks: Blocks) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._outer_parts(node, scope, blocks)
                self._bind(scope, Binding("def", node.name, node, scope, self._next(), blocks))
                self._function(node, scope, blocks)
            case ast.ClassDef():
                self._class(node, scope, blocks)
            case ast.Import() | ast.ImportFrom():
                self._import(node, scope, blocks)
            case ast.Global() | ast.Nonlocal():
                said: Literal["global", "nonlocal"] = "global" if isinstance(node, ast.Global) else "nonlocal"
                scope.outside.update(dict.fromkeys(node.names, said))
            case ast.If() | ast.For() | ast.AsyncFor() | ast.While() | ast.Try() | ast.TryStar() | ast.Match():
                self._compound(node, scope, blocks)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self.expression(item.context_expr, scope, blocks)
                    if item.optional_vars is not None:
                        self._target(item.optional_vars, item.context_expr, "enter", scope, blocks)
                self.block(node.body, scope, blocks)
            case _:
                self._simple(node, scope, blocks)

    def _simple(self, node: ast.stmt, scope: Scope, blocks: Blocks) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                self.expression(value, scope, blocks)
                for target in targets:
                    self._target(target, value, "value", scope, blocks)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                self.expression(annotation, scope, blocks)
                if value is not None:
                    self.expression(value, scope, blocks)
                self._target(target, value, "value", scope, blocks, annotation)
            case _ if type(node).__name__ == "TypeAlias":  # Python 3.12
                self.expression(node.value, scope, blocks)  # type: ignore[attr-defined]
                self._target(node.name, node.value, "value", scope, blocks)  # type: ignore[attr-defined]
            case _:
                for part in ast.iter_child_nodes(node):
                    if isinstance(part, ast.expr):
                        self.expression(part, scope, blocks)

    def _compound(self, node: ast.stmt, scope: Scope, blocks: Blocks) -> None:
        number = self._next()
        noted = self._noted
        match node:
            case ast.If():
                noted.forks.add(number)
                arm = 0
                while True:  # an elif is an if within; a long chain of them is no deep nesting
                    self.expression(node.test, scope, blocks)
                    self._arm(node.body, scope, blocks, number, arm)
                    arm += 1
                    if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                        break
                    node = node.orelse[0]
                self._arm(node.orelse, scope, blocks, number, arm)
            case ast.For() | ast.AsyncFor():
                noted.loops.add(number)
                self.expression(node.iter, scope, blocks)
                self._target(node.target, node.iter, "element", scope, (*blocks, (number, 0)))
                self._arm(node.body, scope, blocks, number, 0)
                self._arm(node.orelse, scope, blocks, number, 1)
            case ast.While():
                noted.loops.add(number)
                self.expression(node.test, scope, (*blocks, (number, 0)))
                self._arm(node.body, scope, blocks, number, 0)
                self._arm(node.orelse, scope, blocks, number, 1)
            case ast.Try() | ast.TryStar():
                self._try(node, scope, blocks, number)
            case ast.Match():
                noted.forks.add(number)
                self.expression(node.subject, scope, blocks)
                for arm, case in enumerate(node.cases):
                    here = (*blocks, (number, arm))
                    self._pattern(case.pattern, node.subject, (), scope, here)
                    if case.guard is not None:
                        self.expression(case.guard, scope, here)
                    self._arm(case.body, scope, blocks, number, arm)
            case _:
                raise AssertionError(type(node).__name__)  # _statement hands over no other

    def _try(self, node: ast.Try | ast.TryStar, scope: Scope, blocks: Blocks, number: int) -> None:
        self._arm(node.body, scope, blocks, number, 0)
        for arm, handler in enumerate(node.handlers, 1):
            here = (*blocks, (number, arm))
            if handler.type is not None:
                self.expression(handler.type, scope, here)
            if handler.name is not None:
                self._bind(scope, Binding("other", handler.name, handler, scope, self._next(), here))
            self._arm(handler.body, scope, blocks, number, arm)
        self._arm(node.orelse, scope, blocks, number, -1)
        self.block(node.finalbody, scope, blocks)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope, blocks: Blocks) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                name, detail = alias.asname or whole, (whole, 0)
            elif alias.name == "*":
                scope.stars.append((node.module or "", node.level))
                continue
            else:
                name = alias.asname or alias.name
                detail = (node.module or "", node.level, alias.name)  # type: ignore[assignment]
            self._bind(scope, Binding("import", name, node, scope, self._next(), blocks, detail=detail))

    # --- functions and classes ----------------------------------------------------------------------

    def _outer_parts(self, node: Function, scope: Scope, blocks: Blocks) -> None:
        """What is worked out where the function is defined: decorators, defaults, annotations."""
        if not isinstance(node, ast.Lambda):
            for decorator in node.decorator_list:
                self.expression(decorator, scope, blocks)
            if node.returns is not None:
                self.expression(node.returns, scope, blocks)
        given = node.args
        for default in (*given.defaults, *given.kw_defaults):
            if default is not None:
                self.expression(default, scope, blocks)
        for argument in parameters(node):
            if argument.annotation is not None:
                self.expression(argument.annotation, scope, blocks)

    def _function(self, node: Function, scope: Scope, blocks: Blocks) -> None:
        inner = Scope("function", node, scope)
        self._noted.inner[node] = inner
        here = inner.base = (*blocks, (self._next(), 0))
        for argument in parameters(node):
            binding = Binding("param", argument.arg, argument, inner, self._next(), here)
            binding.annotation = argument.annotation
            self._bind(inner, binding)
        if isinstance(node, ast.Lambda):
            self.expression(node.body, inner, here)
        else:
            self.block(node.body, inner, here)

    def _class(self, node: ast.ClassDef, scope: Scope, blocks: Blocks) -> None:
        for part in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self.expression(part, scope, blocks)
        inner = Scope("class", node, scope)
        self._noted.inner[node] = inner
        inner.base = (*blocks, (self._next(), 0))
        self.block(node.body, inner, inner.base)
        self._bind(scope, Binding("class", node.name, node, scope, self._next(), blocks))

    # --- binding --------------------------------------------------------------------------------------

    def _bind(self, scope: Scope, binding: Binding) -> None:
        said = scope.outside.get(binding.name)
        owner: Scope | None = scope
        if said == "global":
            owner = scope.top
        elif said == "nonlocal":
            owner = scope.parent
            while owner is not None and not (owner.kind == "function" and binding.name in owner.names):
                owner = owner.parent
        (owner or scope).names.setdefault(binding.name, []).append(binding)

    def _target(
        self,
        target: ast.expr,
        value: ast.expr | None,
        kind: BindingKind,
        scope: Scope,
        blocks: Blocks,
        annotation: ast.expr | None = None,
    ) -> None:
        """Bind what stands on the left; attributes and subscripts there are uses."""
        pending: list[tuple[ast.expr, BindingKind, tuple[str | int, ...]]] = [(target, kind, ())]
        while pending:
            part, kind, detail = pending.pop()
            if isinstance(part, ast.Name):
                order = self._next()
                binding = Binding(kind, part.id, part, scope, order, blocks, value, annotation, detail)
                self._noted.spots[part] = Spot(scope, order, blocks)
                self._bind(scope, binding)
            elif isinstance(part, ast.Tuple | ast.List):
                within: BindingKind = "unpack" if kind == "value" else kind
                if kind == "enter" or any(isinstance(item, ast.Starred) for item in part.elts):
                    within = "other"
                pending += ((item, within, (*detail, at)) for at, item in enumerate(part.elts))
            elif isinstance(part, ast.Starred):
                pending.append((part.value, "other", ()))
            else:
                self.expression(part, scope, blocks)

    def _pattern(
        self,
        pattern: ast.pattern,
        subject: ast.expr,
        within: tuple[ast.MatchClass, str | int] | tuple[()],
        scope: Scope,
        blocks: Blocks,
    ) -> None:
        """Bind the captures. A capture of a class's field remembers which: its type is in the annotation there."""
        match pattern:
            case ast.MatchClass():
                self.expression(pattern.cls, scope, blocks)
                for at, inner in enumerate(pattern.patterns):
                    self._pattern(inner, subject, (pattern, at), scope, blocks)
                for name, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
                    self._pattern(inner, subject, (pattern, name), scope, blocks)
                return
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                cls = within[0].cls if within else None
                detail = within[1:] if within else ()
                if isinstance(pattern, ast.MatchAs) and isinstance(pattern.pattern, ast.MatchClass):
                    cls, detail = pattern.pattern.cls, ()
                kind: BindingKind = "pattern" if isinstance(pattern, ast.MatchAs) else "other"
                binding = Binding(kind, name, pattern, scope, self._next(), blocks, subject, cls, detail)
                self._bind(scope, binding)
            case _:
                pass
        for part in ast.iter_child_nodes(pattern):
            if isinstance(part, ast.pattern):
                self._pattern(part, subject, within if isinstance(pattern, ast.MatchAs) else (), scope, blocks)
            elif isinstance(part, ast.expr):
                self.expression(part, scope, blocks)

    # --- expressions ------------------------------------------------------------------------------------

    def expression(self, root: ast.expr, scope: Scope, blocks: Blocks) -> None:
        pending: list[tuple[ast.AST, Scope]] = [(root, scope)]
        while pending:
            node, where = pending.pop()
            if isinstance(node, ast.Name):
                self._noted.spots[node] = Spot(where, self._next(), blocks)
            elif isinstance(node, ast.Lambda):
                self._outer_parts(node, where, blocks)
                self._function(node, where, blocks)
            elif isinstance(node, ast.NamedExpr):
                self.expression(node.value, where, blocks)
                self._target(node.target, node.value, "value", where.function, blocks)
            elif isinstance(node, COMPREHENSIONS):
                self._comprehension(node, where, blocks)
            else:
                pending.extend((part, where) for part in reversed(list(ast.iter_child_nodes(node))))

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: Scope, blocks: Blocks
    ) -> None:
        inner = Scope("comprehension", node, scope)
        self._noted.inner[node] = inner
        here = (*blocks, (self._next(), 0))
        for at, part in enumerate(node.generators):
            self.expression(part.iter, inner if at else scope, here)
            self._target(part.target, part.iter, "element", inner, here)
            for test in part.ifs:
                self.expression(test, inner, here)
        for element in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.expression(element, inner, here)
