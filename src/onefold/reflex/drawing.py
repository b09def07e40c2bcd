"""reflex.drawing - a graph of reflexes as DOT, and as lines of text.

For: `onefold graph`, the console, a review.
Never: draws what the findings do not see: both read the same arrows. Lays out.
Was wrong once: an arrow between reflexes with the entity as its label. Five writers and five watchers were a hedge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from onefold.almanac import Calendar, Cron
from onefold.reflex.findings import listed
from onefold.reflex.words import OnClock, OnRun, OnSignal, OnWrite, Reflex, Trigger
from onefold.terms.ids import Principal

if TYPE_CHECKING:
    from onefold.reflex.graph import Edge, Graph

PAD: Final = "  "


def trigger_text(on: Trigger) -> str:
    """What sets a reflex off, as a person says it."""
    if isinstance(on, OnClock):
        tz = on.rule.zone.name
        if isinstance(on.rule, Calendar):
            day = f" on {on.clause['on']}" if "on" in on.clause else ""
            return f"every {on.rule.every}{day} at {on.clause['at']} {tz}"
        return f"cron {on.clause['cron']} {tz}" if isinstance(on.rule, Cron) else f"once at {on.clause['at']} {tz}"
    if isinstance(on, OnWrite):
        return f"{on.op or 'any write'} of {on.entity}"
    if isinstance(on, OnSignal):
        return f"signal {on.name}"
    return f"settled run of {on.reflex}" if isinstance(on, OnRun) else "by hand"


def traits(reflex: Reflex) -> list[str]:
    """What else decides whether and how often it acts."""
    found = []
    if reflex.when is not None:
        found.append("when")
    if reflex.select is not None:
        found.append("each row" if reflex.select.mode == "each" else "all rows")
    if not reflex.enabled:
        found.append("disarmed")
    return found


def _by_principal(reflexes: Iterable[Reflex]) -> list[tuple[Principal, list[Reflex]]]:
    """Nobody's first, then by name."""
    found: dict[Principal, list[Reflex]] = {}
    for reflex in reflexes:
        found.setdefault(reflex.principal, []).append(reflex)
    return sorted(found.items(), key=lambda item: (item[0] is not None, item[0] or ""))


# --- text ----------------------------------------------------------------------------------------------


def text(graph: Graph) -> str:
    woken: dict[tuple[Principal, str, bool], list[str]] = {}
    for reflex in graph.reflexes:
        if isinstance(reflex.on, OnWrite | OnRun):
            name = reflex.on.entity if isinstance(reflex.on, OnWrite) else reflex.on.reflex
            key = (reflex.principal, name, isinstance(reflex.on, OnRun))
            woken.setdefault(key, []).append(reflex.id + "".join(f" [{trait}]" for trait in traits(reflex)))
    lines: list[str] = []
    for principal, reflexes in _by_principal(graph.reflexes):
        lines.append("as nobody" if principal is None else f"as {principal}")
        for reflex in reflexes:
            lines += _lines(graph, reflex, woken)
    return "\n".join(lines) + "\n" if lines else "no reflexes\n"


def _lines(graph: Graph, reflex: Reflex, woken: Mapping[tuple[Principal, str, bool], list[str]]) -> Iterator[str]:
    extra = "".join(f" [{trait}]" for trait in traits(reflex))
    yield f"{PAD}{reflex.id}: {trigger_text(reflex.on)}{extra} → {reflex.effect}"
    for entity in sorted(set(graph.writes(reflex) or ())):
        wakes = woken.get((reflex.principal, entity, False))
        yield f"{PAD * 2}writes {entity} → {listed(wakes) if wakes else 'nobody here'}"
    if graph.is_blind(reflex):
        yield f"{PAD * 2}writes what it does not say"
    if wakes := woken.get((reflex.principal, reflex.id, True)):
        yield f"{PAD * 2}settles → {listed(wakes)}"


# --- DOT -----------------------------------------------------------------------------------------------


def dot(graph: Graph) -> str:
    lines = ["digraph reflexes {", f"{PAD}rankdir=LR; node [shape=box, style=rounded]; edge [fontsize=10];"]
    by_principal: dict[Principal, list[Edge]] = {}
    for edge in graph.edges:
        by_principal.setdefault(edge.principal, []).append(edge)
    for n, (principal, reflexes) in enumerate(_by_principal(graph.reflexes)):
        name = "as nobody" if principal is None else f"as {principal}"
        lines.append(f"{PAD}subgraph {_quoted(f'cluster {n}')} {{")
        lines.append(f"{PAD * 2}label={_quoted(name)};")
        lines += [f"{PAD * 2}{line}" for line in _cluster(n, reflexes, by_principal.get(principal, []))]
        lines.append(f"{PAD}}}")
    return "\n".join([*lines, "}"]) + "\n"


def _cluster(n: int, reflexes: Iterable[Reflex], edges: Iterable[Edge]) -> Iterator[str]:
    for reflex in reflexes:
        label = "\n".join([reflex.id, trigger_text(reflex.on), *traits(reflex), f"→ {reflex.effect}"])
        style = "" if reflex.enabled else ', style="rounded,dashed"'
        yield f"{_named(n, 'reflex', reflex.id)} [label={_quoted(label)}{style}];"
    entities = dict[str, None]()
    arrows: list[str] = []
    for edge in edges:
        if edge.kind == "writes":
            entities[edge.target] = None
            arrows.append(f"{_named(n, 'reflex', edge.source)} -> {_named(n, 'entity', edge.target)};")
        elif edge.kind == "blind":
            arrows.append(
                f"{_named(n, 'blind', edge.target)} [label={_quoted(f'{edge.target} writes ?')}, style=dotted];"
            )
            arrows.append(f"{_named(n, 'reflex', edge.source)} -> {_named(n, 'blind', edge.target)} [style=dotted];")
        elif edge.kind == "follows":
            arrows.append(
                f"{_named(n, 'reflex', edge.source)} -> {_named(n, 'reflex', edge.target)} [label=settles, style=dashed];"
            )
        else:
            entities[edge.source] = None
            arrows.append(f"{_named(n, 'entity', edge.source)} -> {_named(n, 'reflex', edge.target)};")
    yield from (
        f"{_named(n, 'entity', entity)} [label={_quoted(entity)}, shape=ellipse, style=solid];" for entity in entities
    )
    yield from dict.fromkeys(arrows)


def _named(n: int, kind: str, name: str) -> str:
    """A node's own name: the same id or entity stands in several clusters."""
    return _quoted(f"{n} {kind} {name}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
