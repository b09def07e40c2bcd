"""Executable content of SCXML as a chart's acts: raise, send, if, foreach, assign, script, log.

For: Document, which reads the states around it.
Never: order by itself. Acts stand in the order of the document, and one that fails ends its block.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tests.machine.scxml.data import UNDEFINED, Beyond, Scope

if TYPE_CHECKING:
    from tests.machine.scxml.convert import Document

PROCESSORS: Final = ("", "scxml", "http://www.w3.org/TR/scxml/#SCXMLEventProcessor")
INSIDE: Final = re.compile(r"\s*(!|not\s+)?\s*In\(\s*['\"]([\w.-]+)['\"]\s*\)\s*;?\s*")
LITERAL: Final = re.compile(r"\s*['\"]([^'\"]*)['\"]\s*")
Run = Callable[[Scope], Any]


def tag(element: ET.Element) -> str:
    return str(element.tag).rpartition("}")[2]


class Content:
    """The content of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._count = 0

    # --- acts ---------------------------------------------------------------------------------

    def acts(self, block: ET.Element) -> list[Any]:
        found: list[Any] = []
        for element in block:
            found += self._act(element)
        return found

    def _act(self, element: ET.Element) -> list[Any]:
        match tag(element):
            case "raise":
                return [{"raise": element.get("event")}]
            case "send":
                return self._send(element)
            case "if":
                return [self._if(element)]
            case "cancel":
                return [self._effect("cancel", self._value(element, "sendid", "sendidexpr"))]
            case "":
                return []
            case _:
                return [self._document.action(self._plain(element))]

    def _if(self, element: ET.Element) -> dict[str, Any]:
        branches: list[dict[str, Any]] = [{"guard": self.guard(element.get("cond", "")), "actions": []}]
        for part in element:
            if tag(part) == "elseif":
                branches.append({"guard": self.guard(part.get("cond", "")), "actions": []})
            elif tag(part) == "else":
                branches.append({"actions": []})
            else:
                branches[-1]["actions"] += self._act(part)
        return {"choose": branches}

    def guard(self, cond: str) -> Any:
        inside = INSIDE.fullmatch(cond)
        if inside is not None:
            there = {"in": f"#{inside[2]}"}
            return {"not": there} if inside[1] else there
        run = self._expression(cond)
        guards, language = self._document.functions.guards, self._document.language
        name = f"g{len(guards)}"
        guards[name] = lambda context, event, now: language.truthy(run(self._document.scope(context, event)))
        return name

    def _expression(self, text: str) -> Run:
        """An expression; one that cannot be read fails when it is evaluated, as SCXML wants it."""
        if "In(" in text:
            raise Beyond("In() within an expression")
        if any(word in text for word in ("_ioprocessors", "origin", "sendid", "invokeid", "_event.type", "_event.raw")):
            raise Beyond("variables of the platform (origin, send id, I/O processors, kind of event)")
        try:
            return self._document.language.expression(text)
        except SyntaxError as bad:
            problem = str(bad)

            def fails(scope: Scope) -> Any:
                raise ValueError(problem)

            return fails

    def _value(self, element: ET.Element, plain: str, computed: str) -> Run:
        """An attribute that is given or computed."""
        if element.get(computed):
            return self._expression(element.get(computed, ""))
        given = element.get(plain)
        return lambda scope: given

    # --- data ---------------------------------------------------------------------------------

    def _plain(self, element: ET.Element) -> Run:
        """Content that only changes variables."""
        match tag(element):
            case "assign":
                return self._assign(element)
            case "script":
                return self._script(element)
            case "log":
                value = self._expression(element.get("expr") or "0")
                return lambda scope: value(scope) and None
            case "foreach":
                return self._foreach(element)
            case "if":
                return self._plain_if(element)
            case other:
                raise Beyond(f"<{other}> here")

    def _assign(self, element: ET.Element) -> Run:
        location = element.get("location", "")
        if len(element):
            raise Beyond("XML as data")
        value = self._expression(element.get("expr") or (element.text or "").strip())

        def run(scope: Scope) -> None:
            found = value(scope)
            scope.put(location, found)

        return run

    def _script(self, element: ET.Element) -> Run:
        text = element.text or ""
        if element.get("src"):
            file = self._document.folder / str(element.get("src"))
            if not file.exists():
                raise Beyond("a script that is not there; a chart names its functions")
            text = file.read_text(encoding="utf-8")
        run = self._document.language.script(text)
        return lambda scope: run(scope)

    def _plain_if(self, element: ET.Element) -> Run:
        branches: list[tuple[Run, list[Run]]] = [(self._expression(element.get("cond", "")), [])]
        for part in element:
            if tag(part) == "elseif":
                branches.append((self._expression(part.get("cond", "")), []))
            elif tag(part) == "else":
                branches.append((lambda scope: True, []))
            else:
                branches[-1][1].append(self._plain(part))
        truthy = self._document.language.truthy

        def run(scope: Scope) -> None:
            for test, acts in branches:
                if truthy(test(scope)):
                    for act in acts:
                        act(scope)
                    return

        return run

    def _foreach(self, element: ET.Element) -> Run:
        array = self._expression(element.get("array", ""))
        item, index = element.get("item", ""), element.get("index")
        acts = [self._plain(part) for part in element if tag(part)]

        def run(scope: Scope) -> None:
            values = array(scope)
            if not isinstance(values, list):
                raise TypeError(f"{values!r} is no list")
            scope.declare(item)
            if index:
                scope.declare(index)
            for at, value in enumerate(list(values)):
                scope.declare(item, value)
                if index:
                    scope.declare(index, at)
                for act in acts:
                    act(scope)

        return run

    def first(self, root: ET.Element) -> list[str]:
        """What a session does before it enters its first state: its data and its script."""
        if root.get("binding") == "late":
            raise Beyond("late binding of data")
        acts = []
        for data in (element for element in self._own(root) if tag(element) == "data"):
            acts += self._datum(data)

        def failed(scope: Scope) -> None:
            if scope.failed:
                raise ValueError(scope.failed)

        acts.append(self._document.action(failed))
        for script in (element for element in root if tag(element) == "script"):
            acts.append(self._document.action(self._script(script)))
        return acts

    def _own(self, root: ET.Element) -> list[ET.Element]:
        """The elements of this document, without those of the charts it invokes."""
        found = []
        for element in root:
            if tag(element) != "scxml":
                found += [element, *self._own(element)]
        return found

    def _datum(self, element: ET.Element) -> list[str]:
        """Declare, and set unless a parent already did; one that fails is declared all the same."""
        name = element.get("id", "")
        if len(element):
            raise Beyond("XML as data")
        text = (element.text or "").strip()
        if element.get("src"):
            text = (self._document.folder / str(element.get("src")).removeprefix("file:")).read_text(encoding="utf-8")
        value = self._expression(element.get("expr", "")) if element.get("expr") is not None else self._literal(text)

        def declare(scope: Scope) -> None:
            scope.declared.add(name)

        def fill(scope: Scope) -> dict[str, Any]:
            try:
                if name not in scope.vars:
                    scope.declare(name, value(scope))
            except Beyond:
                raise
            except Exception as fault:  # noqa: BLE001 - whatever the suite's expression does is its error event
                return {"failed": str(fault)}
            return {}

        declared = self._document.action(declare)
        if not text and element.get("expr") is None:
            return [declared]
        return [declared, self._document.action(fill)]

    def _literal(self, text: str) -> Run:
        """Text as data: JSON if it is some, else the text with its spaces made one."""
        try:
            value = json.loads(text)
        except ValueError:
            value = " ".join(text.split())
        return lambda scope: value

    # --- events -------------------------------------------------------------------------------

    def _send(self, element: ET.Element) -> list[Any]:
        name = self._said(element, "event", "eventexpr", "an event whose name is computed")
        if self._said(element, "type", "typeexpr", "a type of processor that is computed") not in PROCESSORS:
            raise Beyond("another event processor than SCXML's")
        target = self._said(element, "target", "targetexpr", "a target that is computed")
        if element.get("idlocation"):
            raise Beyond("variables of the platform (origin, send id, I/O processors, kind of event)")
        acts, data = self.payload(element)
        event: dict[str, Any] = {"type": name or "", **({"data": data} if data is not None else {})}
        if not name:
            raise Beyond("an event without a name")
        if element.get("delay") or element.get("delayexpr"):
            return [*acts, self._delayed(element, event, target)]
        if target in ("", f"#_{self._document.root.get('name')}"):
            return [*acts, {"sendTo": "#self", "event": event}]
        if target == "#_internal":
            return [*acts, {"raise": event}]
        if target == "#_parent":
            if not self._document.child:
                raise Beyond("a parent where there is none")
            return [*acts, {"sendParent": event}]
        if target.startswith("#_") and not target.startswith("#_scxml"):
            return [*acts, {"sendTo": target[2:], "event": event}]
        raise Beyond("a target outside of the chart")

    def _said(self, element: ET.Element, plain: str, computed: str, problem: str) -> str:
        given = element.get(plain)
        if element.get(computed):
            literal = LITERAL.fullmatch(str(element.get(computed)))
            if literal is None:
                raise Beyond(problem)
            given = literal[1]
        return given or ""

    def _delayed(self, element: ET.Element, event: dict[str, Any], target: str) -> str:
        if self._document.child or target:
            raise Beyond("a delay within an invoked chart, or to one; the chart itself waits and forwards")
        delay = self._value(element, "delay", "delayexpr")
        data = event.get("data", {}).get("$", "").removeprefix("context.kept.")
        name = f"e{len(self._document.functions.effects)}"

        def later(context: Any, cause: Any, now: datetime) -> dict[str, Any]:
            scope = self._document.scope(context, cause)
            kept = context["kept"].get(data) if data else None
            return {"do": "send", "id": element.get("id"), "delay": delay(scope), "event": event["type"], "data": kept}

        self._document.functions.effects[name] = later
        return name

    def _effect(self, kind: str, value: Run) -> str:
        name = f"e{len(self._document.functions.effects)}"
        scope = self._document.scope
        self._document.functions.effects[name] = lambda context, event, now: {
            "do": kind,
            "id": value(scope(context, event)),
        }
        return name

    def payload(self, element: ET.Element) -> tuple[list[Any], Any]:
        """What an event or a final state carries: acts that work it out, and the place where it then stands."""
        content = next((part for part in element if tag(part) == "content"), None)
        pairs = self._pairs(element)
        if content is not None:
            if len(content):
                raise Beyond("XML as data")
            text = (content.text or "").strip()
            value = self._expression(content.get("expr", "")) if content.get("expr") else self._literal(text)
        elif pairs:
            value = lambda scope: {name: run(scope) for name, run in pairs}  # noqa: E731 - one of two
        else:
            return [], None
        return self._kept(value)

    def _kept(self, value: Run) -> tuple[list[Any], Any]:
        self._count += 1
        name = f"k{self._count}"

        def nothing(scope: Scope) -> dict[str, Any]:
            return {name: None}

        def run(scope: Scope) -> dict[str, Any]:
            found = value(scope)
            return {name: None if found is UNDEFINED else found}

        return [self._document.action(nothing), self._document.action(run)], {"$": f"context.kept.{name}"}

    def _pairs(self, element: ET.Element) -> list[tuple[str, Run]]:
        pairs = [(name, self._expression(name)) for name in element.get("namelist", "").split()]
        for part in element:
            if tag(part) == "param":
                pairs.append((part.get("name", ""), self._expression(part.get("expr", part.get("location", "")))))
        return pairs

    def input(self, element: ET.Element, child: Document) -> tuple[list[Any], str]:
        """What an invoked chart begins with: of the parameters, those it has data for."""
        known = {data.get("id") for data in child.content._own(child.root) if tag(data) == "data"}
        pairs = self._pairs(element)

        def value(scope: Scope) -> dict[str, Any]:
            given = {name: run(scope) for name, run in pairs}
            kept = {name: item for name, item in given.items() if name in known}
            return {"vars": kept, "declared": sorted(kept)}

        acts, place = self._kept(value)
        name = str(place["$"]).removeprefix("context.kept.")
        return [self._document.forget(name), acts[1]], name
