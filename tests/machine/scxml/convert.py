"""An SCXML document as one of Onefold's charts, with the functions that it names.

For: the public suites. What SCXML writes into the document as code becomes a named guard, action or
effect here; `<send delay>` becomes an effect that whoever plays the chart gives back in time, as a host does.
Never: mends a difference by hand. What cannot be said in a chart raises Beyond, and the list of the suites says so.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tests.machine.scxml.content import Content
from tests.machine.scxml.data import Beyond, Language, Scope, language

STATES: Final = ("state", "parallel", "final", "history")
SCXML_TYPES: Final = ("", "scxml", "http://www.w3.org/TR/scxml/", "http://www.w3.org/TR/scxml")


@dataclass
class Functions:
    """What the charts of one document name."""

    guards: dict[str, Any] = field(default_factory=dict)
    actions: dict[str, Any] = field(default_factory=dict)
    effects: dict[str, Any] = field(default_factory=dict)


def tag(element: ET.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def converted(file: Path) -> tuple[dict[str, Any], Functions]:
    """The chart in a file. Raises: Beyond."""
    functions = Functions()
    root = ET.parse(file).getroot()  # noqa: S314 - the suites' own files
    return Document(root, file.parent, functions, child=False).chart(), functions


class Document:
    """One <scxml> element."""

    def __init__(self, root: ET.Element, folder: Path, functions: Functions, *, child: bool) -> None:
        self.root = root
        self.folder = folder
        self.functions = functions
        self.child = child
        self.actors: dict[str, Any] = {}
        self.keys: set[str] = set()
        self.parents = {inner: outer for outer in root.iter() for inner in outer}
        self.language: Language = language(root.get("datamodel", "ecmascript"))
        self.content = Content(self)
        self.events = self._events()

    def chart(self) -> dict[str, Any]:
        made: dict[str, Any] = {"id": self.root.get("name") or "scxml", **self._state(self.root)}
        made["context"] = {
            "vars": {"$": "input.vars"} if self.child else {},
            "declared": {"$": "input.declared"} if self.child else [],
            "name": self.root.get("name") or "",
            "kept": {},
        }
        made["entry"] = [*self.content.first(self.root), *made.get("entry", [])]
        made.setdefault("on", {})["error.*"] = [*made.get("on", {}).get("error.*", []), {}]
        if self.actors:
            made["actors"] = self.actors
        return made

    # --- states -------------------------------------------------------------------------------

    def _key(self, id: str) -> str:
        key = re.sub(r"[^\w-]", "_", id)
        while key in self.keys:
            key += "_"
        self.keys.add(key)
        return key

    def _id(self, element: ET.Element) -> str:
        return element.get("id") or f"anonymous{list(self.root.iter()).index(element)}"

    def _state(self, element: ET.Element) -> dict[str, Any]:
        made: dict[str, Any] = {}
        inner = [child for child in element if tag(child) in STATES]
        if inner:
            made["states"] = {
                self._key(self._id(child)): {"id": self._id(child), **self._state(child)} for child in inner
            }
        kind = tag(element)
        if kind in ("parallel", "final", "history"):
            made["type"] = kind
        if kind == "history":
            return made | self._history(element)
        if inner and kind != "parallel":
            made["initial"] = self._initial(element, inner)
        for name, key in (("onentry", "entry"), ("onexit", "exit")):
            blocks = [block for block in element if tag(block) == name]
            if len(blocks) > 1:
                raise Beyond("several entry or exit blocks, each of which fails by itself")
            if blocks:
                made[key] = self.content.acts(blocks[0])
        invokes = [child for child in element if tag(child) == "invoke"]
        if invokes:
            prepared, made["invoke"] = self._invokes(element, invokes)
            made["entry"] = [*made.get("entry", []), *prepared]
        if kind == "final":
            done = next((child for child in element if tag(child) == "donedata"), None)
            if done is not None:
                acts, made["output"] = self.content.payload(done)
                made["entry"] = [*made.get("entry", []), *acts]
            return made
        return made | self._transitions(element, bool(inner))

    def _history(self, element: ET.Element) -> dict[str, Any]:
        made: dict[str, Any] = {"history": element.get("type", "shallow")}
        for transition in element:
            if tag(transition) == "transition":
                if len(transition):
                    raise Beyond("actions on the default transition of a history state")
                made["target"] = [f"#{id}" for id in transition.get("target", "").split()]
        return made

    def _initial(self, element: ET.Element, inner: list[ET.Element]) -> Any:
        given = element.get("initial")
        acts: list[Any] = []
        for child in element:
            if tag(child) == "initial":
                transition = next(part for part in child if tag(part) == "transition")
                given, acts = transition.get("target"), self.content.acts(transition)
        ids = given.split() if given else [self._id(next(child for child in inner if tag(child) != "history"))]
        return {"target": [f"#{id}" for id in ids], "actions": acts}

    # --- transitions --------------------------------------------------------------------------

    def _transitions(self, element: ET.Element, compound: bool) -> dict[str, Any]:
        always: list[Any] = []
        heard: list[tuple[str, Any]] = []
        for transition in element:
            if tag(transition) != "transition":
                continue
            arrow: dict[str, Any] = {"actions": self.content.acts(transition)}
            if transition.get("target"):
                arrow["target"] = [f"#{id}" for id in transition.get("target", "").split()]
                ids = set(transition.get("target", "").split())
                inside = ids <= {inner.get("id") for inner in element.iter() if inner is not element}
                internal = transition.get("type") == "internal" and compound and tag(element) != "parallel"
                arrow["reenter"] = not (internal and inside)
            if transition.get("cond") is not None:
                arrow["guard"] = self.content.guard(transition.get("cond", ""))
            if not transition.get("event"):
                always.append(arrow)
            for word in transition.get("event", "").split():
                heard += [(descriptor, arrow) for descriptor in _descriptors(word)]
        made: dict[str, Any] = {}
        if always:
            made["always"] = always
        on = self._on(heard)
        if on:
            made["on"] = on
        return made

    def _on(self, heard: list[tuple[str, Any]]) -> dict[str, list[Any]]:
        """The transitions by event. SCXML asks them in the order of the document, a chart the longest name first;
        where the two differ, each event of the document is written out."""
        on: dict[str, list[Any]] = {}
        for descriptor, arrow in heard:
            on.setdefault(descriptor, []).append(arrow)
        if any(_covers(one, two) for at, (one, _) in enumerate(heard) for two, _ in heard[at + 1 :] if one != two):
            for event in self.events:
                arrows = [arrow for descriptor, arrow in heard if _hears(descriptor, event)]
                if arrows:
                    on[event] = arrows
        return on

    def _events(self) -> set[str]:
        """Every event that is said in the document."""
        found = {"error.execution"}
        for element in self.root.iter():
            if tag(element) in ("raise", "send") and element.get("event"):
                found.add(str(element.get("event")))
            for word in element.get("event", "").split() if tag(element) == "transition" else ():
                found |= {d.removesuffix(".*") for d in _descriptors(word) if d not in ("*", "error.*", "done.*")}
        said = (event for event in found if not event.startswith(("done.", "error.")))
        return {*said, "error.execution"}

    # --- children -----------------------------------------------------------------------------

    def _invokes(self, owner: ET.Element, invokes: list[ET.Element]) -> tuple[list[Any], list[Any]]:
        prepared, made = [], []
        for at, element in enumerate(invokes):
            if element.get("type", "") not in SCXML_TYPES or element.get("typeexpr"):
                raise Beyond("an invoke of another kind than SCXML")
            if element.get("autoforward") == "true":
                raise Beyond("autoforward; a chart forwards by name")
            if any(tag(part) == "finalize" for part in element):
                raise Beyond("finalize")
            if element.get("idlocation") or element.get("srcexpr"):
                raise Beyond("an invoke whose id or source is computed")
            id = element.get("id") or f"{self._id(owner)}.{at}"
            child = Document(self._inner(element), self.folder, self.functions, child=True)
            self.actors[id] = child.chart()
            acts, name = self.content.input(element, child)
            prepared += acts
            made.append({"id": id, "src": id, "input": {"$": f"context.kept.{name}"}})
        return prepared, made

    def _inner(self, element: ET.Element) -> ET.Element:
        if element.get("src"):
            return ET.parse(self.folder / str(element.get("src")).removeprefix("file:")).getroot()  # noqa: S314 - as above
        content = next((part for part in element if tag(part) == "content"), None)
        inner = None if content is None else next((part for part in content if tag(part) == "scxml"), None)
        if inner is None:
            raise Beyond("an invoke whose chart is computed")
        return inner

    # --- functions ----------------------------------------------------------------------------

    def scope(self, context: Mapping[str, Any], event: Any) -> Scope:
        """The variables as an expression sees them."""
        name = getattr(event, "type", "init")
        data = getattr(event, "data", {})
        if name == "init":
            return Scope(context, self.language.built_in, None)
        body = data.get("output") if name.startswith("done.") else data.get("data")
        shown = re.sub(r"^done\.actor\.", "done.invoke.", name)
        return Scope(context, self.language.built_in, self.language.event(shown, body))

    def action(self, run: Any) -> str:
        """Name a function of (scope), which may change it, as an action."""
        name = f"a{len(self.functions.actions)}"

        def act(context: Mapping[str, Any], event: Any, now: datetime) -> Mapping[str, Any]:
            scope = self.scope(context, event)
            kept = run(scope)
            return scope.kept({**context, "kept": {**context["kept"], **(kept or {})}})

        self.functions.actions[name] = act
        return name

    def forget(self, name: str) -> str:
        """An action that takes a kept value away, so that whoever asks for it fails if it is not made anew."""
        action = f"a{len(self.functions.actions)}"
        self.functions.actions[action] = lambda context, event, now: {
            **context,
            "kept": {key: value for key, value in context["kept"].items() if key != name},
        }
        return action


def _descriptors(word: str) -> list[str]:
    """SCXML hears `foo` for `foo.bar` too; and its `*` hears errors, which a chart hears by name only."""
    word = word.removesuffix(".*").removesuffix(".")
    if word == "*":
        return ["*", "error.*"]
    if word == "done.invoke" or word.startswith("done.invoke."):
        word = "done.actor" + word.removeprefix("done.invoke")
    return [f"{word}.*"]


def _hears(descriptor: str, event: str) -> bool:
    if descriptor == "*":
        return not event.startswith("error.")
    return event == descriptor[:-2] or event.startswith(descriptor[:-1])


def _covers(one: str, two: str) -> bool:
    """Whether the first hears all that the second does."""
    return (one == "*" and not two.startswith("error.")) or (two.startswith(one[:-1]) and one != "*")
