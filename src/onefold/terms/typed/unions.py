"""terms.typed.unions - one of several: told apart by class in Python and by "type" in JSON.

For: choosing the member of a value, and of what was read.
Never: tries one member after the other on what was read. Two that fit would make the choice an accident.
Was wrong once: the first that fits. `{}` was an Approved with all its defaults.

Where there are two members or more besides None, each class among them carries "type": "ClassName".
One class or None is no choice, and carries none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from onefold.terms.codec import Json, shown
from onefold.terms.errors import Fault
from onefold.terms.typed.classes import TAG, ClassNode, Nobody
from onefold.terms.typed.node import Mode, Node, Schema, Turn, Unfit, as_json


class UnionNode(Node):
    """Members that msgspec can tell apart by itself."""

    def __init__(self, members: Sequence[Node], wire: Any = None) -> None:
        must = _or([member.must for member in sorted(members, key=lambda member: type(None) in member.gives)])
        gives = tuple(kind for member in members for kind in member.gives)
        reads = tuple(kind for member in members for kind in member.reads)
        if wire is None:  # a class alone among scalars must name itself, so it is given company
            alone = [Nobody] if sum(getattr(member, "tag", None) is not None for member in members) == 1 else []
            wire = Union[(*alone, *(member.wire for member in members))]
        super().__init__(wire, must, gives=gives, reads=reads)
        self.members = tuple(members)
        self.tags = {tag: member for member in members if (tag := getattr(member, "tag", None))}
        self.plain = [member for member in members if member not in self.tags.values()]
        self.out = _choose_out(members, must)
        self.into = _choose(members, "into")
        self.slim = _choose(members, "slim")

    def explain(self, json: Json, path: str) -> list[Fault]:
        if isinstance(json, dict) and self.tags and not any(dict in member.gives for member in self.plain):
            wrong = ClassNode.wrong_tag(json, path, list(self.tags))
            return [wrong] if wrong else self.tags[json[TAG]].explain(json, path)
        tried = [(member, member.explain(json, path)) for member in self.plain]
        if not all(faults for _, faults in tried):
            return super().explain(json, path) if self.wire is not Any else []
        for member, faults in tried:
            if member.reads != (object,) and all(fault.field != path for fault in faults):
                return faults  # of this member's kind, and wrong further in
        close = [(member, faults) for member, faults in tried if type(None) not in member.gives]
        if len(close) == 1 and not self.tags:
            member, faults = close[0]
            kinds = (f"must be {member.must}", "must be an object", "must be a list")
            if [fault.field for fault in faults] == [path] and faults[0].problem in kinds:
                return [Fault(path, f"must be {self.must}", shown(json))]
            return faults
        return [Fault(path, f"must be {self.must}", shown(json))]

    def schema(self, defs: dict[str, Schema], mode: Mode) -> Schema:
        return {"anyOf": [member.schema(defs, mode) for member in self.members]}


def _or(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _choose_out(members: Sequence[Node], must: str) -> Turn:
    turns = {kind: member.out for member in members for kind in member.gives}

    def out(value: Any) -> Any:
        try:
            turn = turns[value.__class__]
        except KeyError:
            turn = _near(value, turns, must)
        return turn(value) if turn else value

    return out


def _near(value: Any, turns: dict[type, Turn | None], must: str) -> Turn | None:
    """The turn for a value of no declared class itself: an int where a float is asked for, a dict of another make."""
    if value.__class__ is int and float in turns:
        return turns[float]
    for kind, turn in turns.items():
        if isinstance(value, kind) and kind is not int:
            return turn
    raise Unfit(f"must be {must}", value)


def _choose(members: Sequence[Node], name: str) -> Turn | None:
    turns: dict[type, Turn] = {kind: turn for m in members if (turn := getattr(m, name)) for kind in m.reads}
    if not turns:
        return None

    def choose(found: Any) -> Any:
        turn = turns.get(found.__class__)
        return turn(found) if turn else found

    return choose


class LooseUnionNode(UnionNode):
    """Members of which msgspec knows some only as JSON: models, and classes that hold themselves."""

    def __init__(self, members: Sequence[Node]) -> None:
        super().__init__(members, Any)
        self.reads = (object,)
        self.nullable = type(None) in self.gives
        rest = [member for member in self.plain if type(None) not in member.gives]
        self.rest = UnionNode(rest) if len(rest) > 1 else rest[0] if rest else None
        choose = self.out
        assert choose is not None
        self.out = lambda value: as_json(choose(value))
        self.into = self._into
        self.slim = self._slim

    def _member(self, json: Json) -> Node:
        member = self.tags.get(json.get(TAG)) if isinstance(json, dict) and self.tags else self.rest
        if member is None:
            raise Unfit(f"must be {self.must}", json)
        return member

    def _into(self, json: Json) -> Any:
        return None if json is None and self.nullable else self._member(json).read(json)

    def _slim(self, json: Json) -> Any:
        if json is None and self.nullable:
            return None
        member = self._member(json)
        if member.slim is None:
            return json
        return as_json(member.slim(member.mirror(member.read(json))))


class LaterNode(Node):
    """A class inside itself. Its node is set when the class has been read; until then nobody uses it."""

    def __init__(self, cls: type, tag: str | None) -> None:
        super().__init__(Any, f"a {cls.__name__}", gives=(cls,), reads=(object,))
        self.tag = tag
        self.node: Node | None = None
        self.out = lambda value: as_json(self.found.mirror(value))
        self.into = self._into
        self.slim = self._slim

    @property
    def found(self) -> Node:
        assert self.node is not None
        return self.node

    def _into(self, json: Json) -> Any:
        return self.found.read(json)

    def _slim(self, json: Json) -> Any:
        found = self.found
        return as_json(found.slim(found.mirror(found.read(json)))) if found.slim else json

    def explain(self, json: Json, path: str) -> list[Fault]:
        return self.found.explain(json, path)

    def schema(self, defs: dict[str, Schema], mode: Mode) -> Schema:
        return self.found.schema(defs, mode)
