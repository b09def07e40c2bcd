"""machine.arrows - the second reading of a chart: transitions with their targets, what states do, what they invoke.

For: arrows as the table keeps them. It comes after all states are known, since a target may stand further down.
Never: reads the tree of states; definition does.
Was wrong once: `onDone` of an invoke put over an `on` of the same name. Both are heard, in the order written.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from onefold.machine.acts import Acts
from onefold.machine.fill import filled
from onefold.machine.findings import ARROW_KEYS, INVOKE_KEYS, Findings, Path
from onefold.machine.states import compatible, domain
from onefold.machine.table import Arrow, Invoke, Node
from onefold.machine.words import DONE_ACTOR, DONE_STATE, ERROR_ACTOR, EXECUTION
from onefold.terms.codec import Json


class States(Protocol):
    """Where states are found: by "#id", or by a path of keys below one."""

    raw: dict[Node, tuple[Path, dict[str, Any]]]
    ids: dict[str, Node]

    def find(self, text: str, path: Path) -> Node | None: ...

    def under(self, node: Node, text: str, path: Path) -> Node | None: ...


class Arrows:
    """Reads what one chart's states do. `heard` are the events named, `invokes` the children, with their places."""

    def __init__(self, acts: Acts, states: States, found: Findings, fields: Collection[str] | None) -> None:
        self._acts = acts
        self._states = states
        self._found = found
        self._fields = fields
        self.arrows: list[Arrow] = []
        self.heard: list[tuple[Path, str]] = []
        self.invokes: list[tuple[Path, Node, Invoke]] = []

    def read(self, root: Node) -> None:
        self._invoked(root)
        self._done = {
            f"{DONE_STATE}{id}" for id, node in self._states.ids.items() if node.kind in ("compound", "parallel")
        }
        for _, _, invoke in self.invokes:
            self._done |= {f"{DONE_ACTOR}{invoke.id}", f"{ERROR_ACTOR}{invoke.id}"}
        self._done.add(EXECUTION)
        self._node(root)

    # --- children -----------------------------------------------------------------------------

    def _invoked(self, node: Node) -> None:
        path, raw = self._states.raw[node]
        given = raw.get("invoke")
        items = given if isinstance(given, list) else [] if given is None else [given]
        for at, item in enumerate(items):
            place = (*path, "invoke", at) if isinstance(given, list) else (*path, "invoke")
            if not isinstance(item, dict) or not isinstance(item.get("src"), str):
                self._found.refuse(place, 'is {"src": the name of a chart in `actors`, …}')
                continue
            self._found.keys(item, INVOKE_KEYS, place, "an invoke")
            id = item.get("id", f"{at}.{node.id}")
            if not isinstance(id, str) or not id or id[0] == "#":
                self._found.refuse((*place, "id"), "is text, and has no # in front")
                id = f"{at}.{node.id}"
            fill = None
            if "input" in item:
                fill = filled(item["input"], (*place, "input"), ("context", "event"), self._fields, self._found)
            self.invokes.append((place, node, Invoke(id, item["src"], fill)))
        node.invokes = tuple(invoke for _, owner, invoke in self.invokes if owner is node)
        for inner in node.states.values():
            self._invoked(inner)

    # --- states -------------------------------------------------------------------------------

    def _node(self, node: Node) -> None:
        path, raw = self._states.raw[node]
        node.entry = self._acts.acts(raw.get("entry"), (*path, "entry"))
        node.exit = self._acts.acts(raw.get("exit"), (*path, "exit"))
        if "output" in raw:
            node.output = filled(raw["output"], (*path, "output"), ("context", "event"), self._fields, self._found)
        if node.kind == "compound":
            self._initial(node, path, raw)
        elif node.kind == "history":
            node.deep = raw.get("history") == "deep"
            if raw.get("target") is not None and node.parent is not None:
                node.initial = self._targets(node, raw["target"], (*path, "target")) or ()
        on = self._on(node, path, raw)
        exact = {event: arrows for event, arrows in on.items() if not event.endswith("*")}
        wild = sorted((event for event in on if event.endswith("*")), key=len, reverse=True)
        node.on = {event: tuple(arrows) for event, arrows in exact.items()}
        node.wild = tuple((event, tuple(on[event])) for event in wild)
        node.always = tuple(self._transitions(node, "", raw.get("always"), (*path, "always")))
        for at, arrow in enumerate(node.always):
            if arrow.guard is None and not arrow.targets and not arrow.acts:
                self._found.refuse((*path, "always", at), "without guard, target and actions it does nothing, for ever")
        for inner in node.states.values():
            self._node(inner)

    def _on(self, node: Node, path: Path, raw: dict[str, Any]) -> dict[str, list[Arrow]]:
        on: dict[str, list[Arrow]] = {}
        given = raw.get("on", {})
        if not isinstance(given, dict):
            self._found.refuse((*path, "on"), "is an object of transitions by event")
            given = {}
        for event, item in given.items():
            place = (*path, "on", event)
            self._hear(event, place)
            on[event] = self._transitions(node, event, item, place)
        if raw.get("onDone") is not None:
            event = f"{DONE_STATE}{node.id}"
            on.setdefault(event, []).extend(self._transitions(node, event, raw["onDone"], (*path, "onDone")))
            if node.parent is None:
                self._found.refuse((*path, "onDone"), "when the chart is done there is nobody left to hear it")
        for place, owner, invoke in self.invokes:
            if owner is not node:
                continue
            at = place[-1]
            item = raw["invoke"][at] if isinstance(at, int) else raw["invoke"]
            for key, prefix in (("onDone", DONE_ACTOR), ("onError", ERROR_ACTOR)):
                if item.get(key) is not None:
                    event = f"{prefix}{invoke.id}"
                    on.setdefault(event, []).extend(self._transitions(node, event, item[key], (*place, key)))
        return on

    def _hear(self, event: str, place: Path) -> None:
        if not event or "*" in event.removesuffix("*") or (event.endswith("*") and event != "*" and event[-2] != "."):
            self._found.refuse(place, 'an event is a name, "*" for any, or "name.*" for all that begin so')
        elif event.endswith("*"):
            return
        elif event.startswith("xstate.") or (event.startswith(("done.", "error.")) and event not in self._done):
            self._found.unknown(place, "event", event, self._done)
        else:
            self.heard.append((place, event))

    def _initial(self, node: Node, path: Path, raw: dict[str, Any]) -> None:
        given = raw.get("initial")
        place = (*path, "initial")
        if isinstance(given, dict):
            self._found.keys(given, frozenset({"target", "actions", "description"}), place, "an initial transition")
            node.initial_acts = self._acts.acts(given.get("actions"), (*place, "actions"))
            given, place = given.get("target"), (*place, "target")
        names = given if isinstance(given, list) else [given]
        if given is None or not names:
            states = ", ".join(repr(key) for key in node.states)
            self._found.refuse(place, f"a state with states within says which is entered first: one of {states}")
            return
        targets = []
        for at, name in enumerate(names):
            spot = (*place, at) if isinstance(given, list) else place
            if not isinstance(name, str) or not name:
                self._found.refuse(spot, "names a state")
                continue
            if name[0] == "#":
                target = self._states.find(name, spot)
            else:
                target = self._states.under(node, name.removeprefix("."), spot)
            if target is not None and not node.holds(target):
                self._found.refuse(spot, f"{target.key!r} does not stand within {node.key!r}")
            elif target is not None:
                targets.append(target)
        self._legal(targets, place)
        node.initial = tuple(targets)

    # --- transitions --------------------------------------------------------------------------

    def _transitions(self, node: Node, event: str, raw: Json, path: Path) -> list[Arrow]:
        if raw is None and event:
            self._found.refuse(path, "write {} for an event that is heard and changes nothing")
        items = raw if isinstance(raw, list) else [] if raw is None else [raw]
        made = []
        for at, item in enumerate(items):
            place = (*path, at) if isinstance(raw, list) else path
            given = {"target": item} if isinstance(item, str) else item
            if not isinstance(given, dict):
                self._found.refuse(place, "a transition is the state it leads to, or an object")
                continue
            made.append(self._arrow(node, event, given, place))
        return made

    def _arrow(self, node: Node, event: str, given: dict[str, Any], place: Path) -> Arrow:
        self._found.keys(given, ARROW_KEYS, place, "a transition")
        targets = None
        if given.get("target") is not None:
            targets = self._targets(node, given["target"], (*place, "target"))
        reenter = given.get("reenter", False)
        if not isinstance(reenter, bool):
            self._found.refuse((*place, "reenter"), "is true or false")
        guard, text = self._acts.guard(given.get("guard"), (*place, "guard"))
        acts = self._acts.acts(given.get("actions"), (*place, "actions"))
        arrow = Arrow(len(self.arrows), node, event, targets, guard, text, acts, reenter is True)
        if targets:
            arrow.fixed = all(target.kind != "history" for target in targets)
            arrow.domain = domain(node, targets, reenter=arrow.reenter) if arrow.fixed else None
        self.arrows.append(arrow)
        return arrow

    def _targets(self, node: Node, raw: Json, path: Path) -> tuple[Node, ...] | None:
        names = raw if isinstance(raw, list) else [raw]
        found = []
        for at, name in enumerate(names):
            place = (*path, at) if isinstance(raw, list) else path
            target = self._target(node, name, place)
            if target is not None and target.parent is None:
                self._found.refuse(place, "the chart itself is no target; name a state within it")
            elif target is not None:
                found.append(target)
        self._legal(found, path)
        return tuple(found) if found else None

    def _target(self, node: Node, name: Json, path: Path) -> Node | None:
        if not isinstance(name, str) or not name:
            self._found.refuse(path, 'names a state: "key" beside it, ".key" within it, "#id" anywhere')
            return None
        if name[0] == "#":
            return self._states.find(name, path)
        if name[0] == ".":
            return self._states.under(node, name[1:], path)
        if node.parent is None:
            self._found.refuse(path, f"nothing stands beside the chart itself; write {'.' + name!r} for what is within")
            return None
        return self._states.under(node.parent, name, path)

    def _legal(self, targets: list[Node], path: Path) -> None:
        for at, one in enumerate(targets):
            for two in targets[:at]:
                if not compatible(one, two):
                    told = f"{two.key!r} and {one.key!r} cannot be active together"
                    self._found.refuse(path, f"{told}; several targets lie in different regions of a parallel state")
