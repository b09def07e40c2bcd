"""machine.definition - from a chart as it was written, a dict or JSON, to the table that steps read.

For: `load`, which refuses whatever could go wrong later: unknown names, states and keys, delays,
inline code, illegal targets, children that invoke each other in a circle. All of it at once.
Never: guesses. Where XState takes something without a word and does nothing with it, this refuses.
Was wrong once: unknown keys let through. `onDOne` was one of them, and a job never ended.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from onefold.machine.acts import SELF, Acts, Function, Functions
from onefold.machine.arrows import Arrows
from onefold.machine.fill import filled
from onefold.machine.findings import NO_CODE, ROOT_KEYS, STATE_KEYS, Findings, Path
from onefold.machine.select import foresee
from onefold.machine.states import link, order
from onefold.machine.table import Chart, ContextCodec, Fill, Invoke, Kind, Node
from onefold.terms.codec import Json, canonical, parse
from onefold.terms.errors import BadArguments, LoadRefused
from onefold.terms.typed import codec_of

KEY: Final = re.compile(r"[^.#*\x00-\x1f]+")
KINDS: Final = ("atomic", "compound", "parallel", "final", "history")
NO_FUNCTIONS: Final[Mapping[str, Function]] = {}


def load(
    definition: Mapping[str, Any] | str | bytes,
    *,
    name: str = "",
    context: object = None,
    guards: Mapping[str, Function] = NO_FUNCTIONS,
    actions: Mapping[str, Function] = NO_FUNCTIONS,
    effects: Mapping[str, Function] = NO_FUNCTIONS,
    events: Collection[str] | None = None,
) -> Chart:
    """A chart, bound to the functions it names: each a function of (context, event, now).

    context: what the chart begins with, of a type that terms.typed can write; without it the chart is
    plain JSON and says so itself. events: the names of all events from outside, if they are known.
    Raises: LoadRefused with every fault found.
    """
    found = Findings(name or "without a name")
    raw = _read(definition, found)
    if not name and isinstance(raw.get("id"), str) and raw["id"]:
        name = found.chart = raw["id"]
    both = sorted(actions.keys() & effects.keys())
    if both:
        found.refuse((), f"{', '.join(map(repr, both))} stands in actions and in effects; a name is one of the two")
    functions = Functions(guards, actions, effects)
    family = _Family(functions, found)
    chart = family.chart(raw, (), name or "chart", {}, root=True, context=context)
    if events is not None:
        family.check_events(events)
    found.end()
    return chart


def _no_text(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Where keys are no text, as in `{1000: "late"}`."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                yield path, key
            yield from _no_text(item, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            yield from _no_text(item, (*path, str(at)))


def _texts(value: Any) -> Any:
    """The same with each such key as text."""
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else str(key): _texts(item) for key, item in value.items()}
    return [_texts(item) for item in value] if isinstance(value, list) else value


def _read(definition: Mapping[str, Any] | str | bytes, found: Findings) -> dict[str, Any]:
    """The definition as JSON of our own, so that nobody changes it afterwards."""
    try:
        if isinstance(definition, str | bytes):
            raw = parse(definition.encode() if isinstance(definition, str) else definition, "the chart")
        else:
            for path in _code(definition, ()):
                found.refuse(path, NO_CODE)
            found.end()
            for path, key in _no_text(definition, ()):
                found.refuse(path, f"has a key that is not text, {key!r}; write {str(key)!r}")
            definition = _texts(definition)  # so that what else is wrong is found in the same look
            canonical(definition)  # refuses what is no JSON; its own order of keys would lose the order of states
            raw = _copied(definition)
    except BadArguments as bad:
        for fault in bad.faults:
            found.refuse((fault.field,) if fault.field else (), fault.problem)
        found.end()
        raise
    if not isinstance(raw, dict):
        found.refuse((), "a chart is an object")
        found.end()
    return dict(raw)


def _copied(raw: Any) -> Any:
    if isinstance(raw, Mapping):
        return {key: _copied(item) for key, item in raw.items()}
    return [_copied(item) for item in raw] if isinstance(raw, list | tuple) else raw


def _code(raw: object, path: Path) -> Iterator[Path]:
    if callable(raw):
        yield path
    elif isinstance(raw, Mapping):
        for key, item in raw.items():
            yield from _code(item, (*path, str(key)))
    elif isinstance(raw, list | tuple):
        for at, item in enumerate(raw):
            yield from _code(item, (*path, at))


class _Family:
    """A chart and the charts it invokes, read together: they share functions and talk to each other."""

    def __init__(self, functions: Functions, found: Findings) -> None:
        self.functions = functions
        self.found = found
        self.heard: list[tuple[Path, str]] = []

    def chart(
        self,
        raw: dict[str, Any],
        path: Path,
        name: str,
        outer: Mapping[str, Chart],
        *,
        root: bool,
        context: object = None,
    ) -> Chart:
        found = self.found
        found.keys(raw, ROOT_KEYS, path, "a chart")
        states = _States(found)
        given = raw.get("id", name)
        top = states.node(raw, path, name, given if isinstance(given, str) and given else name, None)
        order(top)
        codec: ContextCodec | None = None
        fields: Collection[str] | None = None
        first: Fill = filled(raw.get("context", {}), (*path, "context"), ("input", ""), None, found)
        if context is not None:
            codec, start = _codec(context, found)
            fields = start.keys() if isinstance(start, dict) else None
            first = lambda one, two: start  # noqa: E731 - one value for every actor of this chart
            if "context" in raw:
                found.refuse((*path, "context"), "the context was handed in; leave it out here")
        actors = {**outer, **self._actors(raw, path, outer)}
        acts = Acts(self.functions, found, fields, states.find, has_parent=not root)
        arrows = Arrows(acts, states, found, fields)
        arrows.read(top)
        link(top)
        self._check_children(arrows, acts, actors)
        self.heard += arrows.heard
        made = Chart(
            name=name,
            root=top,
            nodes=tuple(states.nodes),
            ids=states.ids,
            arrows=tuple(arrows.arrows),
            actors=actors,
            context=first,
            codec=codec,
            watched=any(node.always for node in states.nodes),
            hears=frozenset(arrow.event for arrow in arrows.arrows if arrow.event),
        )
        if not found.found:
            foresee(made)
        return made

    def _actors(self, raw: dict[str, Any], path: Path, outer: Mapping[str, Chart]) -> dict[str, Chart]:
        """The charts under `actors`; each may invoke those that stand before it, and those further out."""
        given = raw.get("actors", {})
        if not isinstance(given, dict):
            self.found.refuse((*path, "actors"), "is an object of charts by name")
            return {}
        known: dict[str, Chart] = {}
        for name, chart in given.items():
            place = (*path, "actors", name)
            if not isinstance(chart, dict):
                self.found.refuse(place, "a chart is an object")
                continue
            known[name] = self.chart(chart, place, name, {**outer, **known}, root=False)
        return known

    def _check_children(self, arrows: Arrows, acts: Acts, actors: Mapping[str, Chart]) -> None:
        known = {invoke.id for _, _, invoke in arrows.invokes}
        for place, child in acts.told:
            if child not in known:
                self.found.unknown(place, "child", child, {*known, SELF})
        for place, _, invoke in arrows.invokes:
            if invoke.src not in actors:
                later = "; a chart may invoke those that stand before it in `actors`" if actors else ""
                self.found.unknown((*place, "src"), f"chart in `actors`{later}", invoke.src, actors)
        for at, (place, node, invoke) in enumerate(arrows.invokes):
            if any(_together(node, other, invoke, same) for _, other, same in arrows.invokes[:at]):
                told = f"two states that may be active together both call their child {invoke.id!r}"
                self.found.refuse((*place, "id"), f"{told}; give each an id of its own")

    def check_events(self, outside: Collection[str]) -> None:
        """Refuse what no one says: not from outside, not a member of the family, not Onefold."""
        known = {*outside, *self.functions.spoken}
        for place, event in self.heard:
            if event not in known and not event.startswith(("done.", "error.")):
                self.found.unknown(place, "event", event, known)


def _together(one: Node, two: Node, first: Invoke, second: Invoke) -> bool:
    """Whether two invokes of one id may run at once: neither is an alternative of the other."""
    if first.id != second.id:
        return False
    if one is two or one.holds(two) or two.holds(one):
        return True
    shared = next(node for node in one.above if node.holds(two))
    return shared.kind == "parallel"


def _codec(context: object, found: Findings) -> tuple[ContextCodec | None, Json]:
    """How a context is kept, and what the first one is as JSON."""
    try:
        codec = codec_of(type(context))
        return codec, codec.to_json(context)
    except LoadRefused as refused:
        found.found += refused.findings
    except BadArguments as bad:
        for fault in bad.faults:
            found.refuse(("context", fault.field) if fault.field else ("context",), fault.problem)
    return None, {}


class _States:
    """The states of one chart: read, numbered in document order, found by id and by path."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self.nodes: list[Node] = []
        self.ids: dict[str, Node] = {}
        self.raw: dict[Node, tuple[Path, dict[str, Any]]] = {}

    def node(self, raw: dict[str, Any], path: Path, key: str, id: str, parent: Node | None) -> Node:
        """One state and all within it."""
        found = self._found
        within = raw.get("states", {})
        if not isinstance(within, dict):
            found.refuse((*path, "states"), "is an object of states by key")
            within = {}
        node = Node(key, id, self._kind(raw, path, within, parent), len(self.nodes), parent)
        self.nodes.append(node)
        self.raw[node] = (path, raw)
        if id in self.ids:
            found.refuse((*path, "id"), f"a second state is called {id!r}")
        self.ids.setdefault(id, node)
        base = self.nodes[0].id
        for name, inner in within.items():
            place = (*path, "states", name)
            if not KEY.fullmatch(name):
                found.refuse(place, "the key of a state has no dot, #, * or control character")
            if not isinstance(inner, dict):
                found.refuse(place, "a state is an object; {} for one that has nothing")
                continue
            found.keys(inner, STATE_KEYS, place, "a state")
            given = inner.get("id")
            if given is not None and (not isinstance(given, str) or not given or given[0] == "#"):
                found.refuse((*place, "id"), "is text, and has no # in front")
            inherited = ".".join([base, *(str(p) for p in place[1 + len(self.raw[self.nodes[0]][0]) :: 2])])
            chosen = given if isinstance(given, str) and given else inherited
            node.states[name] = self.node(inner, place, name, chosen, node)
        self._fits(node, path, raw)
        return node

    def _kind(self, raw: dict[str, Any], path: Path, within: dict[str, Any], parent: Node | None) -> Kind:
        given = raw.get("type")
        if given is None:
            return "compound" if within else "history" if raw.get("history") else "atomic"
        if given not in KINDS:
            self._found.unknown((*path, "type"), "type of state", given, KINDS)
            return "atomic"
        if parent is None and given in ("final", "history"):
            self._found.refuse((*path, "type"), f"the chart itself cannot be {given}")
            return "atomic"
        kind: Kind = given
        return kind

    def _fits(self, node: Node, path: Path, raw: dict[str, Any]) -> None:
        """Refuse what a state of this kind cannot have."""
        refuse, kind = self._found.refuse, node.kind
        wrong: dict[str, str] = {}
        if kind in ("atomic", "final", "history"):
            wrong |= dict.fromkeys(("states", "initial"), f"a state of type {kind} has no states within")
            wrong["onDone"] = f"a state of type {kind} is never done by what is within it"
        if kind == "parallel":
            wrong["initial"] = "all regions of a parallel state are entered; it has no initial one"
        if kind in ("final", "history"):
            wrong |= dict.fromkeys(("on", "always", "invoke"), f"a state of type {kind} hears and does nothing")
        if kind == "history":
            wrong |= dict.fromkeys(("entry", "exit"), "a state of history is never entered; it leads elsewhere")
        else:
            wrong |= dict.fromkeys(("history", "target"), "only a state of type history has this")
        if kind != "final" and node.parent is not None:
            wrong["output"] = "only a final state has output, and the chart itself"
        for key in raw.keys() & wrong.keys():
            if raw[key] not in ({}, None, False) or key == "initial":
                refuse((*path, key), wrong[key])
        if kind in ("compound", "parallel") and not any(n.kind != "history" for n in node.states.values()):
            refuse(path, f"a {kind} state has at least one state within")
        if kind == "history" and node.parent is not None and node.parent.parent is None:
            refuse(path, "the chart itself is never left, so nothing of it is remembered; put it into a state within")
        if kind == "history" and raw.get("history") not in (None, True, "shallow", "deep"):
            refuse((*path, "history"), 'is "shallow" or "deep"')

    def find(self, text: str, path: Path) -> Node | None:
        """The state of "#id", or of "#id.key.key"; None, and a finding, where there is none."""
        whole = text[1:]
        if whole in self.ids:
            return self.ids[whole]
        parts = whole.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            start = self.ids.get(".".join(parts[:cut]))
            if start is not None:
                return self.under(start, ".".join(parts[cut:]), path)
        self._found.unknown(path, "state", text, [f"#{id}" for id in self.ids])
        return None

    def under(self, node: Node, text: str, path: Path) -> Node | None:
        """The state at a path of keys below `node`."""
        for key in text.split("."):
            if key not in node.states:
                self._found.unknown(path, "state", key, node.states, f" within {node.key!r}")
                return None
            node = node.states[key]
        return node
