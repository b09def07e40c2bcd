"""machine.moves - one event in one actor, until it is at rest: the macrostep of SCXML.

For: leaving, acting, entering, done events, `always` and what the actor raised to itself, in that order.
Never: touches another actor. What it has for others lies in `later`, and children brings it.
Was wrong once: done and entry in one pass over the states entered. A parallel state was done before its
last region was entered.
"""

from __future__ import annotations

from collections.abc import Sequence

from onefold.machine.actor import Actor, Phase, Wrong, named
from onefold.machine.select import Entering, domains_of, enabled, eventless, leaves, left, without_conflicts
from onefold.machine.table import Arrow, Node
from onefold.machine.words import DONE_STATE, ERROR_ACTOR, EXECUTION, INIT, Plain
from onefold.terms.codec import Json


def born(actor: Actor) -> None:
    """The first step of an actor."""
    actor.mark = len(actor.run.effects)
    actor.event = Plain(INIT, {"input": actor.input})
    actor.version += 1
    try:
        actor.give(actor.chart.context(actor.input, None))
    except LookupError as fault:  # its input lacks something
        actor.give({})
        actor.wrong(fault)
    _enter(actor, actor.chart.enters, actor.chart.by_default)
    _rest(actor)


def take(actor: Actor, event: object) -> None:
    """One event from outside the actor."""
    actor.mark = len(actor.run.effects)
    actor.event = event
    arrows = enabled(actor, name := named(event))
    actor.spend()
    if arrows:
        _move(actor, arrows)
    elif isinstance(event, Wrong) and name.startswith(ERROR_ACTOR):
        _fail(actor, event)
    _rest(actor)


def _rest(actor: Actor) -> None:
    """Go on until no `always` can be taken and nothing raised is left."""
    look = actor.chart.watched
    while actor.status == "active":
        arrows = eventless(actor) if look else []
        if arrows:
            before = actor.version
            actor.spend()
            _move(actor, arrows)
            look = actor.version != before  # one that changed nothing would be taken for ever
            continue
        if not actor.inner:
            break
        event = actor.inner.pop(0)
        actor.event = event
        arrows = enabled(actor, event.type)
        if arrows:
            actor.spend()
            _move(actor, arrows)
        elif event.type == EXECUTION and isinstance(event, Wrong):
            _fail(actor, event)
        look = actor.chart.watched
    if actor.status != "active":
        for event in actor.inner:
            if isinstance(event, Wrong) and actor.status == "done" and not enabled(actor, event.type):
                _fail(actor, event)  # its last acts went wrong, and nobody there would have heard it
        actor.inner.clear()
        actor.stop_children()


def _fail(actor: Actor, event: Wrong) -> None:
    """An error that nobody here hears ends the actor; its parent is told, and a chart without one raises.

    What it owed and sent while it dealt with this event is taken back: half of it would be worse than none.
    """
    actor.status = "error"
    actor.later.clear()
    del actor.run.effects[actor.mark :]
    actor.error = event.data["error"]
    actor.cause = event.cause
    actor.version += 1


def _move(actor: Actor, chosen: Sequence[Arrow]) -> None:
    """One microstep."""
    arrows = without_conflicts(actor, chosen)
    actor.run.taken += arrows
    domains = domains_of(actor, arrows)
    leaving = left(actor, arrows, domains)
    if leaving:
        _leave(actor, leaving)
    for arrow in arrows:
        if arrow.acts:
            actor.perform(arrow.acts)
    nodes: Sequence[Node]
    if len(arrows) == 1 and arrows[0].enters is not None:
        nodes, by_default = arrows[0].enters, arrows[0].by_default
    else:
        entering = Entering(actor)
        nodes = entering.all_of(arrows, domains)
        by_default = frozenset(entering.by_default)
    if nodes:
        _enter(actor, nodes, by_default)
    if (leaving or nodes) and set(leaving) != set(nodes):
        actor.version += 1


def _leave(actor: Actor, leaving: Sequence[Node]) -> None:
    for node in leaving:
        if node.memories:
            _remember(actor, node)
    for node in leaving:
        if node.exit:
            actor.perform(node.exit)
        for invoke in node.invokes:
            actor.stop_child(invoke.id)
        actor.active.discard(node)


def _remember(actor: Actor, node: Node) -> None:
    for memory in node.memories:
        if memory.deep:
            kept = tuple(leaf for leaf in leaves(actor.active) if node.holds(leaf))
        else:
            kept = tuple(inner for inner in node.regions if inner in actor.active)
        if actor.memory.get(memory.id) != kept:
            actor.memory = {**actor.memory, memory.id: kept}
            actor.version += 1


def _enter(actor: Actor, nodes: Sequence[Node], by_default: frozenset[Node]) -> None:
    done: set[Node] = set()
    for node in nodes:
        actor.active.add(node)
        if node.invokes:
            _with_children(actor, node)
        elif node.entry:
            actor.perform(node.entry)
        if node.initial_acts and node in by_default:
            actor.perform(node.initial_acts)
        if node.kind == "final":
            _final(actor, node, done)
    if actor.status == "done":
        left_at_last = [node for node in actor.active if node.exit]
        for node in sorted(left_at_last, key=lambda node: node.order, reverse=True):
            actor.perform(node.exit)


def _with_children(actor: Actor, node: Node) -> None:
    """A state's entry, and then its children: they see the context that the entry left."""
    first = len(actor.later)
    ids = [invoke.id for invoke in node.invokes]
    actor.perform(node.entry, ids)
    for invoke in node.invokes:
        chart = actor.chart.actors[invoke.src]
        child = Actor(chart, actor.run, {}, id=invoke.id, src=invoke.src, parent=actor)
        child.phase = Phase.NEW
        try:
            child.input = None if invoke.input is None else invoke.input(actor.shown, actor.event)
        except LookupError as fault:
            actor.wrong(fault)
            continue
        actor.children = {**actor.children, invoke.id: child}
        actor.version += 1
        for letter in actor.later[first:]:
            if not isinstance(letter, Actor) and letter.to == invoke.id:
                letter.to = child
        actor.later.append(child)


def _final(actor: Actor, node: Node, done: set[Node]) -> None:
    """The done events of a final state that was entered, and the end of the actor if nothing is left."""
    parent = node.parent
    assert parent is not None  # the chart itself is never final
    output = _output(actor, node, actor.event)
    outer = parent if parent.kind == "parallel" else parent.parent
    if parent.kind == "compound":
        actor.inner.append(Plain(DONE_STATE + parent.id, {"output": output}))
    last, said = node, output
    while outer is not None and outer.kind == "parallel" and outer not in done and _finished(actor.active, outer):
        done.add(outer)
        actor.inner.append(Plain(DONE_STATE + outer.id, {"output": None}))
        last, said = outer, None
        outer = outer.parent
    if outer is not None:
        return
    root = actor.chart.root
    actor.status = "done"
    actor.version += 1
    actor.output = said if root.output is None else _output(actor, root, Plain(DONE_STATE + last.id, {"output": said}))


def _output(actor: Actor, node: Node, event: object) -> Json:
    if node.output is None:
        return None
    try:
        return node.output(actor.shown, event)
    except LookupError as fault:
        actor.wrong(fault)
        return None


def _finished(active: set[Node], node: Node) -> bool:
    if node.kind == "compound":
        return any(inner.kind == "final" and inner in active for inner in node.regions)
    if node.kind == "parallel":
        return all(_finished(active, inner) for inner in node.regions)
    return node.kind == "final" and node in active
