"""Which bindings a use may see: the nearest that cannot be avoided, and those on the ways around it."""

from __future__ import annotations

import ast
import textwrap

import pytest

from onefold.fence.binding import read

CASES = {
    "the last one counts": ("x = 1\nx = 2\nUSE(x)", [2]),
    "one in an arm may have been passed by": ("x = 1\nif c:\n    x = 2\nUSE(x)", [2, 1]),
    "one of two arms": ("if c:\n    x = 1\nelse:\n    x = 2\nUSE(x)", [2, 1]),
    "the other arm is never seen": ("x = 0\nif c:\n    x = 1\nelse:\n    USE(x)", [0]),
    "nor that of another case": (
        "match c:\n    case 1:\n        x = 1\n    case 2:\n        x = 2\n        USE(x)",
        [2],
    ),
    "an elif is an arm like the others": ("x = 0\nif c:\n    x = 1\nelif d:\n    x = 2\nelif e:\n    USE(x)", [0]),
    "in a loop the other arm came before": ("for c in d:\n    if c:\n        USE(x)\n    else:\n        x = 1", [1]),
    "in a loop what stands below came before": ("x = 0\nwhile c:\n    USE(x)\n    x = 1", [1, 0]),
    "an arm that returns leads nowhere": ("x = 0\nif c:\n    x = 1\n    return\nUSE(x)", [0]),
    "an arm that raises leads nowhere": ("x = 0\nif c:\n    x = 1\n    raise E\nUSE(x)", [0]),
    "a try may have got so far": ("x = 0\ntry:\n    x = 1\nexcept E:\n    USE(x)", [1, 0]),
    "what finally binds cannot be avoided": ("x = 0\ntry:\n    pass\nfinally:\n    x = 1\nUSE(x)", [1]),
    "itself, before it was bound": ("x = 0\nx = USE(x) or 1", [0]),
    "the end of the function around it": ("x = 0\ndef g():\n    USE(x)\nx = 1", [1]),
    "its own, and not that around it": ("x = 0\ndef g():\n    x = 1\n    USE(x)", [1]),
    "in a comprehension, that before it": ("x = 0\ny = [USE(x) for z in c]\nx = 1", [0]),
    "a walrus in one binds outside": ("x = 0\ny = [x := 1 for z in c]\nUSE(x)", [1, 0]),
    "what nonlocal writes may be seen": ("x = 0\ndef g():\n    nonlocal x\n    x = 1\nUSE(x)", [1, 0]),
}


@pytest.mark.parametrize("title", CASES)
def test_a_use_sees(title: str) -> None:
    text, expected = CASES[title]
    tree = ast.parse("def f(c, d, e):\n" + textwrap.indent(text, "    "))
    scopes = read(tree)
    (use,) = (
        node.args[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "USE"
    )
    assert isinstance(use, ast.Name)
    spot = scopes.spots[use]
    owner = spot.scope.owner(use.id)
    assert owner is not None
    found = [b.value.value for b in scopes.reaching(use.id, owner, spot) if isinstance(b.value, ast.Constant)]
    assert found == expected


def test_a_class_is_not_around_its_methods() -> None:
    tree = ast.parse("x = 0\nclass A:\n    x = 1\n    y = x\n    def f(self):\n        return x\n")
    scopes = read(tree)
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    found = [(scopes.spots[use].scope, scopes.spots[use].scope.owner("x")) for use in uses]
    assert [(at.kind, owner.kind) for at, owner in found if owner] == [("class", "class"), ("function", "module")]
