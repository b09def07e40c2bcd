"""machine.snapshot - between the states that are active and the JSON that says so.

For: reading a snapshot's value and history back into states, and writing them.
Never: repairs. A value that the chart cannot be in stops the step, by name; nothing is guessed.
Was wrong once: a state that was renamed read as its parent's initial one. Paid orders became open again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onefold.machine.table import Chart, Node
from onefold.machine.words import ChartChanged, Value
from onefold.terms.codec import Json
from onefold.terms.ids import nearest


def value_of(node: Node, active: set[Node]) -> Value:
    """Where the actor is, below `node`: regions in the order they are written in."""
    if node.kind == "compound":
        for inner in node.regions:
            if inner in active:
                return inner.key if inner.atomic else {inner.key: value_of(inner, active)}
        return {}
    return {inner.key: value_of(inner, active) for inner in node.regions if inner in active}


def states_of(chart: Chart, value: Value) -> set[Node]:
    """The states a value speaks of, their ancestors with them. Raises: ChartChanged."""
    node: Node | None = chart.root
    inner = value
    while node is not None and type(inner) is dict and len(inner) == 1:  # a line without regions, the most common
        ((key, inner),) = inner.items()
        node = node.states.get(key)
    if node is not None and type(inner) is str:
        leaf = node.states.get(inner)
        if leaf is not None and leaf.line is not None:
            return set(leaf.line)
    active = {chart.root}
    _read(chart, chart.root, value, active)
    return active


def _read(chart: Chart, node: Node, value: Value, active: set[Node]) -> None:
    if node.kind == "compound":
        if isinstance(value, str):
            value = {value: {}}
        if not isinstance(value, Mapping) or len(value) != 1:
            raise ChartChanged(chart.name, f"{value!r} in state {node.id!r}", None)
    elif not isinstance(value, Mapping) or len(value) != len(node.regions):
        raise ChartChanged(chart.name, f"{value!r} in state {node.id!r}", None)
    for key, inner in value.items():
        state = node.states.get(key)
        if state is None or state.kind == "history":
            raise ChartChanged(chart.name, f"the state {node.id}.{key}", nearest(str(key), node.states))
        active.add(state)
        if state.kind == "compound" or state.kind == "parallel" or inner:
            _read(chart, state, inner, active)


def history_of(chart: Chart, kept: Mapping[str, Iterable[str]]) -> dict[str, tuple[Node, ...]]:
    """What each state of history remembers. Raises: ChartChanged."""
    found = {}
    for id, states in kept.items():
        for name in (id, *states):
            if name not in chart.ids:
                raise ChartChanged(chart.name, f"the state {name!r} in its history", nearest(name, chart.ids))
        found[id] = tuple(chart.ids[name] for name in states)
    return found


def history_json(memory: Mapping[str, tuple[Node, ...]]) -> dict[str, Json]:
    return {id: [node.id for node in nodes] for id, nodes in memory.items()}
