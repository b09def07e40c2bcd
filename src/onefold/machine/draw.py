"""machine.draw - a chart as DOT or Mermaid text, from the table that is stepped.

For: the console and the command line. What is drawn is what runs, since both read one table.
Never: lays out, colours by state, or draws children's charts within their parent; each has its own picture.
Was wrong once: drawing from the definition as it was written. A target that had been refused was in the picture.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from onefold.machine.table import Act, Arrow, Change, Chart, Choose, Node, Owe, Raise
from onefold.machine.words import DONE_ACTOR, DONE_STATE, ERROR_ACTOR

INDENT = "  "


# --- words both use -------------------------------------------------------------------------------


def act_text(act: Act) -> str:
    """How an act reads: its name, or its verb and whom it is for."""
    if isinstance(act, Change | Owe):
        return act.name
    if isinstance(act, Raise):
        return "raise"
    if isinstance(act, Choose):
        parts = [f"[{text or 'else'}] {acts_text(acts)}".rstrip() for _, text, acts in act.branches]
        return " | ".join(parts)
    return f"forward to {act.to}" if act.event is None else f"send to {act.to}"


def acts_text(acts: tuple[Act, ...]) -> str:
    return ", ".join(map(act_text, acts))


def arrow_text(arrow: Arrow) -> str:
    """EVENT [guard] / actions, as statecharts are labelled."""
    event = arrow.event or "always"
    for prefix, word in ((DONE_STATE, "done"), (DONE_ACTOR, "done"), (ERROR_ACTOR, "error")):
        if event.startswith(prefix):
            inner = event.removeprefix(prefix)
            event = word if inner == arrow.source.id else f"{word} {inner}"
    guard = f" [{arrow.guard_text}]" if arrow.guard_text else ""
    acts = f" / {acts_text(arrow.acts)}" if arrow.acts else ""
    return f"{event}{guard}{acts}{' (enters anew)' if arrow.reenter else ''}"


def state_lines(chart: Chart, node: Node) -> list[str]:
    """What stands within a state: entry, exit, children, and the transitions that lead nowhere else."""
    lines = [f"entry / {acts_text(node.entry)}"] if node.entry else []
    lines += [f"exit / {acts_text(node.exit)}"] if node.exit else []
    lines += [f"runs {invoke.id}" + (f" ({invoke.src})" if invoke.src != invoke.id else "") for invoke in node.invokes]
    for arrow in chart.arrows:
        if arrow.source is node and (not arrow.targets or (node.states and arrow.targets == (node,))):
            lines.append(arrow_text(arrow))
    return lines


# --- DOT ------------------------------------------------------------------------------------------


def dot(chart: Chart) -> str:
    """The chart for Graphviz: one cluster for each state with states within."""
    lines = [
        f"digraph {_quoted(chart.root.id)} {{",
        f"{INDENT}compound=true; rankdir=LR;",
        f"{INDENT}node [shape=box, style=rounded]; edge [fontsize=10];",
        *_dot_cluster(chart, chart.root, INDENT),
        *(f"{INDENT}{edge}" for edge in _dot_edges(chart)),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _dot_cluster(chart: Chart, node: Node, pad: str) -> Iterator[str]:
    yield f"{pad}subgraph {_quoted('cluster ' + node.id)} {{"
    inner = pad + INDENT
    style = "dashed" if node.parent is not None and node.parent.kind == "parallel" else "rounded"
    yield f"{inner}label={_quoted(_lined(chart, node))}; style={style};"
    yield f'{inner}{_quoted("in " + node.id)} [shape=point, style=invis, label=""];'
    for state in node.states.values():
        if state.states:
            yield from _dot_cluster(chart, state, inner)
        else:
            yield f"{inner}{_quoted(state.id)} [{_dot_shape(chart, state)}];"
    if node.initial:
        start = _quoted("start " + node.id)
        yield f'{inner}{start} [shape=point, label=""];'
        label = f"/ {acts_text(node.initial_acts)}" if node.initial_acts else ""
        yield from (f"{inner}{start} -> {_dot_to(target, node, label)}" for target in node.initial)
    yield f"{pad}}}"


def _dot_shape(chart: Chart, node: Node) -> str:
    if node.kind == "history":
        return f'shape=circle, label="{"H*" if node.deep else "H"}"'
    extra = ", peripheries=2" if node.kind == "final" else ""
    return f"label={_quoted(_lined(chart, node))}{extra}"


def _dot_edges(chart: Chart) -> Iterator[str]:
    for node in chart.nodes:
        if node.kind == "history":
            yield from (f"{_quoted(node.id)} -> {_dot_to(target, node, 'else')}" for target in node.initial)
    for arrow in chart.arrows:
        for target in arrow.targets or ():
            if target is not arrow.source or not target.states:
                yield f"{_dot_end(arrow.source)} -> {_dot_to(target, arrow.source, arrow_text(arrow))}"


def _dot_to(target: Node, source: Node, label: str) -> str:
    """The head of an edge with what is said along it; an end that is a cluster is cut at its border."""
    said = [f"label={_quoted(label)}"] if label else []
    if source.states and not source.holds(target):
        said.append(f"ltail={_quoted('cluster ' + source.id)}")
    if target.states and not target.holds(source):
        said.append(f"lhead={_quoted('cluster ' + target.id)}")
    tail = f" [{', '.join(said)}]" if said else ""
    return f"{_dot_end(target)}{tail};"


def _dot_end(node: Node) -> str:
    return _quoted(f"in {node.id}" if node.states else node.id)


def _lined(chart: Chart, node: Node) -> str:
    return "\n".join([node.key, *state_lines(chart, node)])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# --- Mermaid --------------------------------------------------------------------------------------


def mermaid(chart: Chart) -> str:
    """The chart for Mermaid, as `stateDiagram-v2`."""
    names = _names(chart)
    lines = ["stateDiagram-v2", *_mermaid_inner(chart, chart.root, names, INDENT)]
    for node in chart.nodes:
        if node.kind == "history":
            lines += [f"{INDENT}{names[node]} --> {names[target]} : else" for target in node.initial]
    for arrow in chart.arrows:
        for target in arrow.targets or ():
            if target is not arrow.source or not target.states:
                lines.append(f"{INDENT}{names[arrow.source]} --> {names[target]} : {_safe(arrow_text(arrow))}")
    return "\n".join(lines) + "\n"


def _names(chart: Chart) -> dict[Node, str]:
    """A word for each state; no two the same."""
    names: dict[Node, str] = {}
    for node in chart.nodes:
        word = re.sub(r"\W", "_", node.id, flags=re.ASCII)
        while word in names.values():
            word += "_"
        names[node] = word
    return names


def _mermaid_inner(chart: Chart, node: Node, names: dict[Node, str], pad: str) -> Iterator[str]:
    for target in node.initial:
        acts = f" : {_safe('/ ' + acts_text(node.initial_acts))}" if node.initial_acts else ""
        yield f"{pad}[*] --> {names[target]}{acts}"
    for at, state in enumerate(node.states.values()):
        if at and node.kind == "parallel" and state.kind != "history":
            yield f"{pad}--"
        yield from _mermaid_state(chart, state, names, pad)


def _mermaid_state(chart: Chart, node: Node, names: dict[Node, str], pad: str) -> Iterator[str]:
    name = names[node]
    shown = ("H*" if node.deep else "H") if node.kind == "history" else node.key
    if node.states:
        yield f'{pad}state "{_safe(shown)}" as {name} {{'
        yield from _mermaid_inner(chart, node, names, pad + INDENT)
        yield f"{pad}}}"
    else:
        yield f'{pad}state "{_safe(shown)}" as {name}'
    lines = state_lines(chart, node)
    if lines and node.states:
        yield f"{pad}note right of {name}"
        yield from (f"{pad}{INDENT}{_safe(line)}" for line in lines)
        yield f"{pad}end note"
    else:
        yield from (f"{pad}{name} : {_safe(line)}" for line in lines)
    if node.kind == "final":
        yield f"{pad}{name} --> [*]"


def _safe(text: str) -> str:
    """Text that no rule of Mermaid takes for its own."""
    return re.sub(r"[^\w \[\]/,.*()|-]", lambda found: f"#{ord(found[0])};", text)
