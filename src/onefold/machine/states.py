"""machine.states - what the shape of a chart alone decides: order, spans, ancestors, domains.

For: working it out once, when a chart is loaded.
Never: reads a definition; sees a running actor.
Was wrong once: descendants found by walking. With numbers in document order it is two comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence

from onefold.machine.table import Node


def order(root: Node) -> None:
    """Spans, ancestors and regions of a tree whose nodes are numbered in document order."""
    root.last = root.order
    for node in root.states.values():
        node.above = (root, *root.above)
        order(node)
        root.last = max(root.last, node.last)
    root.regions = tuple(node for node in root.states.values() if node.kind != "history")
    root.memories = tuple(node for node in root.states.values() if node.kind == "history")


def link(root: Node) -> None:
    """Which states look for `always` on behalf of each state, and what is active with each leaf."""
    line = (root, *root.above)
    root.watching = tuple(node for node in line if node.always)
    if root.atomic and not any(node.kind == "parallel" for node in line):
        root.line = frozenset(line)
    for node in root.states.values():
        link(node)


def domain(source: Node, targets: Sequence[Node], *, reenter: bool, recalled: bool = False) -> Node | None:
    """The innermost state that a transition does not leave; None: even the chart itself is left.

    Without `reenter` it is the source, if all targets are it or within it; else the nearest state
    around source and targets, parallel ones too (XState; SCXML takes the nearest compound one).
    recalled: the targets came out of history; what it leads to is entered, so it is left before.
    """
    if not reenter and all(source.holds(target) or (target is source and not recalled) for target in targets):
        return source
    head, *tail = (*targets, source)
    for node in head.above:
        if all(node.holds(other) for other in tail):
            return node
    return None if reenter else source.above[-1] if source.above else source


def compatible(one: Node, two: Node) -> bool:
    """Whether two states can be active together without one holding the other: regions of one parallel state."""
    if one is two or one.holds(two) or two.holds(one):
        return False
    shared = next((node for node in one.above if node.holds(two)), None)
    return shared is not None and shared.kind == "parallel"
