"""machine.acts - what a definition says to do: guards and actions by name, and the few acts that are Onefold's own.

For: turning `guard`, `actions`, `entry` and `exit` into the table's acts, bound to their functions.

    "plan"                                              a named action or effect
    {"raise": EVENT}                                    to this chart, before any event from outside
    {"sendTo": "tick", "event": EVENT}                  to a child ("#self": to this chart, after this event)
    {"sendParent": EVENT} · {"forwardTo": "tick"}       to the parent · the event that came, to a child
    {"choose": [{"guard": …, "actions": …}, …]}         the first whose guard holds
    guards: "due" · {"not": G} · {"and": [G, …]} · {"or": [G, …]} · {"in": "#id"}
    EVENT: "NAME" · {"type": "NAME", "any": "data"}, with places to fill (machine.fill)
Never: code. A name that is not handed in is refused with the nearest that is.
Was wrong once: one mapping for actions and effects. A name in both changed the context and owed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from onefold.machine.fill import filled
from onefold.machine.findings import Findings, Path
from onefold.machine.table import Act, Change, Choose, Guard, Make, Node, Owe, Raise, Scope, Send
from onefold.machine.words import Plain
from onefold.terms.codec import Json

Function = Callable[..., Any]
SELF: Final = "#self"
PARENT: Final = "#parent"
VERBS: Final = frozenset("raise sendTo sendParent forwardTo choose type".split())
COMBINED: Final = frozenset("not and or in type".split())


@dataclass(slots=True)
class Functions:
    """The functions a family of charts may name, and the events its members tell each other."""

    guards: Mapping[str, Function]
    actions: Mapping[str, Function]
    effects: Mapping[str, Function]
    spoken: set[str] = field(default_factory=set)


class Acts:
    """Reads the acts of one chart. `find` resolves "#id"; `children` are the ids of its invokes, known at the end."""

    def __init__(
        self,
        functions: Functions,
        found: Findings,
        fields: Collection[str] | None,
        find: Callable[[str, Path], Node | None],
        *,
        has_parent: bool,
    ) -> None:
        self._functions = functions
        self._found = found
        self._fields = fields
        self._find = find
        self._has_parent = has_parent
        self.told: list[tuple[Path, str]] = []  # children named by a send

    def acts(self, raw: Json, path: Path) -> tuple[Act, ...]:
        """One act, or a list of them."""
        if raw is None:
            return ()
        items = raw if isinstance(raw, list) else [raw]
        places = [(*path, at) for at in range(len(items))] if isinstance(raw, list) else [path]
        acts = [self._act(item, place) for item, place in zip(items, places, strict=True)]
        return tuple(act for act in acts if act is not None)

    def _act(self, raw: Json, path: Path) -> Act | None:
        if isinstance(raw, str):
            return self._named(raw, path)
        if not isinstance(raw, dict) or not raw:
            self._found.refuse(path, "an action is a name, or one of raise, sendTo, sendParent, forwardTo, choose")
            return None
        verb = next(iter(raw.keys() & VERBS), None)
        if verb is None:
            self._found.keys(raw, VERBS, path, "an action")
            return None
        self._found.keys(raw, frozenset({verb, "event"} if verb == "sendTo" else {verb}), path, f"the action {verb!r}")
        if verb == "type":
            return self._named(raw["type"], (*path, "type"))
        if verb == "raise":
            return Raise(self._event(raw["raise"], (*path, "raise")))
        if verb == "sendTo":
            to = self._child(raw["sendTo"], (*path, "sendTo"))
            return Send(to, self._event(raw.get("event"), (*path, "event")))
        if verb == "forwardTo":
            return Send(self._child(raw["forwardTo"], (*path, "forwardTo")), None)
        if verb == "sendParent":
            if not self._has_parent:
                self._found.refuse(path, "this chart has no parent; owe an effect instead")
            return Send(PARENT, self._event(raw["sendParent"], (*path, "sendParent")))
        return self._choose(raw["choose"], (*path, "choose"))

    def _named(self, name: Json, path: Path) -> Act | None:
        here = self._functions
        if isinstance(name, str) and name in here.actions:
            return Change(name, here.actions[name])
        if isinstance(name, str) and name in here.effects:
            return Owe(name, here.effects[name])
        self._found.unknown(path, "action or effect", name, {*here.actions, *here.effects})
        return None

    def _child(self, raw: Json, path: Path) -> str:
        if not isinstance(raw, str):
            self._found.refuse(path, "names a child by the id of its invoke")
            return SELF
        if raw != SELF:
            self.told.append((path, raw))
        return raw

    def _event(self, raw: Json, path: Path) -> Make:
        given = {"type": raw} if isinstance(raw, str) else raw
        name = given.get("type") if isinstance(given, dict) else None
        if not isinstance(name, str) or not name or "*" in name:
            self._found.refuse(path, 'an event is "NAME" or {"type": "NAME", …}')
            return lambda scope: Plain("")
        self._functions.spoken.add(name)
        data = {key: item for key, item in given.items() if key != "type"}
        fill = filled(data, path, ("context", "event"), self._fields, self._found)
        if not data:
            bare = Plain(name)
            return lambda scope: bare
        return lambda scope: Plain(name, fill(scope.shown, scope.event))

    def _choose(self, raw: Json, path: Path) -> Act | None:
        if not isinstance(raw, list) or not raw or not all(isinstance(item, dict) for item in raw):
            self._found.refuse(path, 'is a list of {"guard": …, "actions": …}')
            return None
        branches = []
        for at, item in enumerate(raw):
            self._found.keys(item, frozenset({"guard", "actions"}), (*path, at), "a branch")
            guard, text = self.guard(item.get("guard"), (*path, at, "guard"))
            branches.append((guard, text, self.acts(item.get("actions"), (*path, at, "actions"))))
        return Choose(tuple(branches))

    # --- guards -------------------------------------------------------------------------------

    def guard(self, raw: Json, path: Path) -> tuple[Guard | None, str]:
        """The guard, and how it reads; (None, "") where there is none."""
        if raw is None:
            return None, ""
        if isinstance(raw, str):
            return self._check(raw, path), raw
        if not isinstance(raw, dict) or len(raw.keys() & COMBINED) != 1:
            self._found.refuse(path, "a guard is a name, or one of not, and, or, in")
            return None, ""
        verb = next(iter(raw.keys() & COMBINED))
        self._found.keys(raw, frozenset({verb}), path, "a guard")
        inner = (*path, verb)
        if verb == "type":
            return self._check(raw["type"], inner), str(raw["type"])
        if verb == "in":
            return self._inside(raw["in"], inner), f"in {raw['in']}"
        if verb == "not":
            guard, text = self.guard(raw["not"], inner)
            return (lambda scope: not guard(scope)) if guard else None, f"not {_bracketed(text)}"
        return self._all_or_any(verb, raw[verb], inner)

    def _all_or_any(self, verb: str, raw: Json, path: Path) -> tuple[Guard | None, str]:
        if not isinstance(raw, list) or not raw:
            self._found.refuse(path, "is a list of guards")
            return None, ""
        read = [self.guard(item, (*path, at)) for at, item in enumerate(raw)]
        guards = [guard for guard, _ in read if guard is not None]
        text = f" {verb} ".join(_bracketed(text) for _, text in read)
        if verb == "and":
            return (lambda scope: all(guard(scope) for guard in guards)), text
        return (lambda scope: any(guard(scope) for guard in guards)), text

    def _check(self, name: Json, path: Path) -> Guard | None:
        if not isinstance(name, str) or name not in self._functions.guards:
            self._found.unknown(path, "guard", name, self._functions.guards)
            return None
        check = self._functions.guards[name]

        def holds(scope: Scope) -> bool:
            told = check(scope.shown, scope.event, scope.now)
            if told is True or told is False:
                return told
            raise TypeError(f"guard {name!r} gave {told!r}; a guard gives True or False")

        return holds

    def _inside(self, raw: Json, path: Path) -> Guard | None:
        if not isinstance(raw, str) or raw[:1] != "#":
            self._found.refuse(path, 'names a state by its id: "#id"')
            return None
        node = self._find(raw, path)
        return None if node is None else lambda scope: node in scope.active


def _bracketed(text: str) -> str:
    return f"({text})" if " and " in text or " or " in text else text
