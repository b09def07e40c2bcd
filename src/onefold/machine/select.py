"""machine.select - which transitions an event takes, and which states they leave and enter.

For: selection, conflicts, exit and entry sets, as in XState 5: the innermost state that hears the event
answers it, an ancestor only when none within did; of two transitions that leave the same state the
inner one wins, else the first. `always` is looked for from each active leaf outwards, as in SCXML.
All of it in document order, so that a snapshot alone decides.
Never: runs an action; changes the actor it looks at.
Was wrong once: sets walked in the order of insertion. After a region was entered again its transitions
came last, and the same snapshot went two ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from onefold.machine.states import domain
from onefold.machine.table import Arrow, Chart, Guard, Node


class Looker(Protocol):
    """What selection may see of an actor."""

    chart: Chart
    active: set[Node]
    memory: dict[str, tuple[Node, ...]]

    def passes(self, guard: Guard) -> bool: ...


def enabled(actor: Looker, event: str) -> list[Arrow]:
    """The transitions that hear the event."""
    return _heard(actor, actor.chart.root, event)


def _heard(actor: Looker, node: Node, event: str) -> list[Arrow]:
    found: list[Arrow] = []
    if node.regions:
        active = actor.active
        for inner in node.regions:
            if inner in active:
                found += _heard(actor, inner, event) if inner.regions else _own(actor, inner, event)
    return found or _own(actor, node, event)


def _own(actor: Looker, node: Node, event: str) -> list[Arrow]:
    for arrow in node.on.get(event, ()):
        if arrow.guard is None or actor.passes(arrow.guard):
            return [arrow]
    for pattern, arrows in node.wild:
        if _matches(pattern, event):
            for arrow in arrows:
                if arrow.guard is None or actor.passes(arrow.guard):
                    return [arrow]
    return []


def _matches(pattern: str, event: str) -> bool:
    """`name.*` hears `name` and all that begins with it; `*` hears all but errors, which are never caught unnamed."""
    if pattern == "*":
        return not event.startswith("error.")
    return event.startswith(pattern[:-1]) or event == pattern[:-2]


def eventless(actor: Looker) -> list[Arrow]:
    """The `always` transitions that can be taken now."""
    found: list[Arrow] = []
    for leaf in leaves(actor.active):
        arrow = _always(actor, leaf)
        if arrow is not None and arrow not in found:
            found.append(arrow)
    return found


def _always(actor: Looker, leaf: Node) -> Arrow | None:
    for node in leaf.watching:
        for arrow in node.always:
            if arrow.guard is None or actor.passes(arrow.guard):
                return arrow
    return None


def leaves(active: set[Node]) -> list[Node]:
    """The active states without states within, in document order."""
    return sorted((node for node in active if not node.regions), key=_order)


def _order(node: Node) -> int:
    return node.order


# --- leaving --------------------------------------------------------------------------------------


def without_conflicts(actor: Looker, arrows: Sequence[Arrow]) -> Sequence[Arrow]:
    """Those that can be taken together."""
    if len(arrows) < 2:
        return arrows
    kept: list[tuple[Arrow, set[Node]]] = []
    for arrow in arrows:
        leaves_behind = set(left(actor, (arrow,), domains_of(actor, (arrow,))))
        rivals = [(other, others) for other, others in kept if not leaves_behind.isdisjoint(others)]
        if all(other.source.holds(arrow.source) for other, _ in rivals):
            kept = [pair for pair in kept if pair not in rivals]
            kept.append((arrow, leaves_behind))
    return [arrow for arrow, _ in kept]


def left(actor: Looker, arrows: Sequence[Arrow], domains: Sequence[Node | None]) -> list[Node]:
    """The active states that the transitions leave, innermost and last first."""
    if len(arrows) == 1:
        return _left(actor, arrows[0], domains[0])
    found: set[Node] = set()
    for arrow, around in zip(arrows, domains, strict=True):
        found.update(_left(actor, arrow, around))
    return sorted(found, key=_order, reverse=True)


def _left(actor: Looker, arrow: Arrow, around: Node | None) -> list[Node]:
    if not arrow.targets:
        return []
    if around is None:
        found = list(actor.active)
    else:
        first, last = around.order, around.last
        found = [node for node in actor.active if first < node.order <= last]
    if len(found) > 1:
        found.sort(key=_order, reverse=True)
    return found


def domains_of(actor: Looker, arrows: Sequence[Arrow]) -> list[Node | None]:
    """For each transition the innermost state it does not leave. Asked once, before anything is left: leaving
    changes what history remembers, and what was left must be what is entered again."""
    return [arrow.domain if arrow.fixed else _recalled(actor, arrow) for arrow in arrows]


def _recalled(actor: Looker, arrow: Arrow) -> Node | None:
    return domain(arrow.source, tuple(_aims(actor, arrow)), reenter=arrow.reenter, recalled=True)


def _aims(actor: Looker, arrow: Arrow) -> Iterator[Node]:
    """The targets, with what is remembered in the place of history."""
    for target in arrow.targets or ():
        yield from _remembered(actor, target)


def _remembered(actor: Looker, node: Node) -> Iterator[Node]:
    if node.kind != "history":
        yield node
        return
    for aim in actor.memory.get(node.id) or _otherwise(node):
        yield from _remembered(actor, aim)


def _otherwise(node: Node) -> tuple[Node, ...]:
    """Where a state of history leads when nothing is remembered."""
    parent = node.above[0]
    return node.initial or ((parent,) if parent.kind == "parallel" else parent.initial)


class Nobody:
    """An actor that has not begun: for what the chart alone decides."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.active: set[Node] = set()
        self.memory: dict[str, tuple[Node, ...]] = {}

    def passes(self, guard: Guard) -> bool:
        return False


def foresee(chart: Chart) -> None:
    """Work out what an actor enters when it starts, and each transition taken alone where history has no say in it."""
    nobody = Nobody(chart)
    beginning = Entering(nobody)
    chart.enters = tuple(beginning.first(chart.root))
    chart.by_default = frozenset(beginning.by_default)
    for arrow in chart.arrows:
        entering = Entering(nobody)
        nodes = entering.all_of((arrow,), (arrow.domain,)) if arrow.targets and arrow.fixed else []
        if not entering.recalled and arrow.fixed:
            arrow.enters = tuple(nodes)
            arrow.by_default = frozenset(entering.by_default)


# --- entering -------------------------------------------------------------------------------------


class Entering:
    """The states that transitions enter, and those among them whose initial transition is followed."""

    def __init__(self, actor: Looker) -> None:
        self._actor = actor
        self.states: set[Node] = set()
        self.by_default: set[Node] = set()
        self.recalled = False  # history had a say

    def all_of(self, arrows: Sequence[Arrow], domains: Sequence[Node | None]) -> list[Node]:
        """In document order."""
        for arrow, around in zip(arrows, domains, strict=True):
            if arrow.targets:
                self._by(arrow, arrow.targets, around)
        return sorted(self.states, key=_order)

    def first(self, root: Node) -> list[Node]:
        """What an actor enters when it starts."""
        self._with_inner(root)
        return sorted(self.states, key=_order)

    def _by(self, arrow: Arrow, targets: Sequence[Node], around: Node | None) -> None:
        for target in targets:
            if target is arrow.source and target is around and not arrow.reenter:
                self._inner(target)  # a state that leads to itself without `reenter` only begins anew within
            else:
                self._with_inner(target)
        for aim in _aims(self._actor, arrow):
            self._outer(aim, around)
            if around is not None and around.kind == "parallel":
                self._regions(around)

    def _with_inner(self, node: Node) -> None:
        if node.kind == "history":
            self.recalled = True
            parent = node.above[0]
            kept = self._actor.memory.get(node.id)
            if not kept and not node.initial and parent.kind == "compound":
                self.by_default.add(parent)
            self._each(kept or _otherwise(node), parent)
            return
        self.states.add(node)
        if node.kind == "compound":
            self.by_default.add(node)
        self._inner(node)

    def _inner(self, node: Node) -> None:
        if node.kind == "compound":
            self._each(node.initial, node)
        elif node.kind == "parallel":
            self._regions(node)

    def _each(self, aims: Sequence[Node], around: Node) -> None:
        for aim in aims:
            self._with_inner(aim)
        for aim in aims:
            self._outer(aim, around)

    def _outer(self, node: Node, around: Node | None) -> None:
        """The ancestors of `node` up to `around`, and the regions that they bring with them."""
        for outer in node.above:
            if outer is around:
                return
            if around is not None and not around.holds(outer):
                return
            self.states.add(outer)
            if outer.kind == "parallel":
                self._regions(outer)

    def _regions(self, node: Node) -> None:
        for region in node.regions:
            if region not in self.states and not any(region.holds(other) for other in self.states):
                self._with_inner(region)
