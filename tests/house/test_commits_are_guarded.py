"""Every commit that writes what belongs to an actor goes by a guard: a node that was fenced writes nothing.

A turn's guard is sent by its lane (`node.batch`). Everything else that transacts says by what: `guard.around(body)`, or it
stands below, with the reason why it needs none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.tree import PACKAGE, parsed, python_files

TRANSACTS = {"transact", "author", "join"}
BELOW = ("store", "testing")  # what a commit is made of, and what tries it
FREE = {
    "fleet/abroad.py": "is a space that is another process's, and refuses",
    "host/cells.py number_shapes": "shapes are the store's: each is numbered once, by a unique key, whoever opens first",
    "host/deploying.py _commit": "a version is numbered behind the one it was judged against, by a unique key, whichever node",
    "host/lease.py renew": "a node's own life, by its incarnation",
    "host/fleet.py open": "what a node's code reads, under its own name",
    "host/routing.py _refused": "a letter of this node that was refused, and that nobody else is told of",
    "host/letterbox.py _fill": "a letter belongs to its box, which anybody may post to, also while nobody owns the actor",
    "host/membership.py transact": "owners change: each body locks the rows, and goes by their epochs",
    "host/membership.py join": "as above",
    "host/membership.py _tell": "as above",
    "host/membership.py _try": "as above",
    "host/fleet.py _taking": "as above",
    "host/fleet.py renew": "as above",
    "host/fleet.py release": "as above",
    "host/reflex_databases.py _act": "an author's table changed by a task, in no actor's name",
    "node/author.py author": "the journal is a turn: its lane made the body",
    "node/blobs.py put": "bytes under their own hash, of a principal and of no actor; putting them twice is putting them once",
    "node/lane.py ask": "the lane itself",
    "node/lane.py submit": "the lane itself",
    "reflex/acting.py committed": "a task is its claimer's by a token, which every write of it compares",
    "reflex/engine.py _admit": "a fact in, once by its key, whoever brings it",
    "reflex/engine.py backfill": "runs of occurrences, each once by its key; refused under an older set",
}
"""Who commits without a guard, and why that is right."""


def commits() -> Iterator[tuple[str, str, ast.Call]]:
    """The file, the function, and the call that commits."""
    for path in python_files("src/onefold"):
        name = path.relative_to(PACKAGE).as_posix()
        if name.split("/")[0] in BELOW:
            continue
        for function in ast.walk(parsed(path)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for call in _own_calls(function):
                    if _name_of(call.func) in TRANSACTS and _of_a_space(call):
                        yield name, function.name, call


def _own_calls(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Call]:
    """Those that are not within a function of its own."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Call):
            yield node
        waiting.extend(ast.iter_child_nodes(node))


def _of_a_space(call: ast.Call) -> bool:
    """Not a text's `join`, nor an actor's `author`."""
    if _name_of(call.func) == "transact":
        return True
    return isinstance(call.func, ast.Attribute) and _name_of(call.func.value) == "space"


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _guarded(call: ast.Call) -> bool:
    told = call.args[0] if call.args else None
    return isinstance(told, ast.Call) and _name_of(told.func) == "around"


def test_every_commit_has_a_guard_or_a_reason() -> None:
    bare = {f"{file} {function}": file for file, function, call in commits() if not _guarded(call)}
    assert sorted(where for where, file in bare.items() if where not in FREE and file not in FREE) == []


def test_no_reason_is_left_over() -> None:
    there = {
        where for file, function, call in commits() if not _guarded(call) for where in (file, f"{file} {function}")
    }
    assert sorted(set(FREE) - there - {"fleet/abroad.py"}) == []


def test_the_rule_finds_them() -> None:
    guarded = {f"{file} {function}" for file, function, call in commits() if _guarded(call)}
    assert guarded >= {"node/sweeping.py committed", "node/blob_sweep.py _sweep", "host/sweep.py _commit"}
