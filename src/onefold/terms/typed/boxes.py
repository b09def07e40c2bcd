"""terms.typed.boxes - lists, tuples, sets and dicts of values.

For: turning each item, and telling which item was wrong.
Never: turns items that need no turning: a list of numbers is written as it is.
Was wrong once: sets in the order of their hashes. The same set had another digest after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import GenericAlias
from typing import Annotated, Any, Final

import msgspec

from onefold.terms.codec import Json, below, shown
from onefold.terms.errors import Fault
from onefold.terms.limits import MAX_FAULTS
from onefold.terms.typed.leaves import LEAVES
from onefold.terms.typed.node import PROGRAM_FAULTS, Mode, Node, Schema, Turn, Unfit

TEXT: Final = frozenset({str})
_write = msgspec.json.Encoder(order="sorted").encode


def limited(wire: Any, limits: dict[str, Any]) -> Any:
    return Annotated[wire, msgspec.Meta(**limits)] if limits else wire


class ListNode(Node):
    """A list, or a tuple of any length."""

    def __init__(self, kind: type, item: Node, limits: dict[str, Any]) -> None:
        self.inner = GenericAlias(tuple, (item.wire, ...)) if kind is tuple else GenericAlias(list, (item.wire,))
        super().__init__(limited(self.inner, limits), f"a list, each {item.must}", gives=(kind,))
        self.kind = kind
        self.item = item
        self.out = _checked(kind, item.out)
        self.into = _each(kind, item.into)
        self.slim = _each(kind, item.slim)

    def explain(self, json: Json, path: str) -> list[Fault]:
        if not isinstance(json, list):
            return [Fault(path, "must be a list", shown(json))]
        faults = _explained((self.item, item, below(path, at)) for at, item in enumerate(json))
        return faults or super().explain(json, path)

    def schema(self, defs: dict[str, Schema], mode: Mode) -> Schema:
        bounds = msgspec.json.schema(self.wire) if self.wire is not self.inner else {}
        limits: Schema = {key: bounds[key] for key in ("minItems", "maxItems") if key in bounds}
        return {"type": "array", "items": self.item.schema(defs, mode), **limits}


def _explained(items: Iterable[tuple[Node, Json, str]]) -> list[Fault]:
    """What is wrong with these. Those that nobody will be told of are only counted: to explain each takes seconds."""
    faults: list[Fault] = []
    for node, item, path in items:
        if len(faults) <= MAX_FAULTS:
            faults += node.explain(item, path)
            continue
        try:
            node.read(item)
        except (Unfit, *PROGRAM_FAULTS):
            faults.append(Fault(path, f"must be {node.must}"))
    return faults


def _each(kind: type, turn: Turn | None) -> Turn | None:
    if turn is None:
        return None
    if kind is list:
        return lambda value: [turn(item) for item in value]
    return lambda value: kind([turn(item) for item in value])


def _checked(kind: type, turn: Turn | None) -> Turn:
    """Only the declared kind goes out: anything else would come back as another."""
    turned = _each(kind, turn)

    def out(value: Any) -> Any:
        if not isinstance(value, list | tuple) or value.__class__ is not kind:
            raise Unfit(f"must be a {kind.__name__}", value)
        try:
            return turned(value) if turned else value
        except Unfit:
            raise _located(enumerate(value), turn) from None

    return out


def _located(items: Iterable[tuple[str | int, Any]], turn: Turn | None) -> Unfit:
    """The first item that is not fit, with its place. Only asked when there is one."""
    for key, item in items:
        try:
            if turn:
                turn(item)
        except Unfit as unfit:
            return unfit.inside(key)
    return Unfit("is not fit")


class SetNode(ListNode):
    """A set, written as a list in order: by value where values have one, else by their bytes."""

    def __init__(self, kind: type, item: Node, limits: dict[str, Any]) -> None:
        super().__init__(list, item, limits)
        order = None if set(item.gives) <= LEAVES.keys() and len(item.gives) == 1 else _write
        turn = item.out

        def out(value: Any) -> Any:
            if not isinstance(value, set | frozenset) or value.__class__ is not kind:
                raise Unfit(f"must be a {kind.__name__}", value)
            items = [turn(part) for part in value] if turn else list(value)
            try:
                items.sort(key=order)
            except TypeError:
                raise Unfit(f"must be {self.must}", value) from None
            return items

        back = item.into
        self.gives = (kind,)
        self.out = out
        self.into = (lambda value: kind([back(part) for part in value])) if back else kind

    def schema(self, defs: dict[str, Schema], mode: Mode) -> Schema:
        return {**super().schema(defs, mode), "uniqueItems": True}


class TupleNode(Node):
    """A tuple of known length, each place with its own kind."""

    def __init__(self, places: Sequence[Node]) -> None:
        wires = tuple(place.wire for place in places)
        super().__init__(tuple[wires] if wires else tuple[()], f"a list of {len(places)}", gives=(tuple,))  # type: ignore[valid-type]
        self.places = tuple(places)
        turned = _by_place(tuple(place.out for place in places))
        self.into = _by_place(tuple(place.into for place in places))
        self.slim = _by_place(tuple(place.slim for place in places))

        def out(value: Any) -> Any:
            if value.__class__ is not tuple or len(value) != len(wires):
                raise Unfit(f"must be a tuple of {len(wires)}", value)
            return turned(value) if turned else value

        self.out = out

    def explain(self, json: Json, path: str) -> list[Fault]:
        if not isinstance(json, list) or len(json) != len(self.places):
            return [Fault(path, f"must be {self.must}", shown(json))]
        pairs = zip(self.places, json, strict=True)
        faults = [f for at, (place, item) in enumerate(pairs) for f in place.explain(item, below(path, at))]
        return faults or super().explain(json, path)

    def schema(self, defs: dict[str, Schema], mode: Mode) -> Schema:
        places = [place.schema(defs, mode) for place in self.places]
        told: Schema = {"type": "array", "minItems": len(places), "maxItems": len(places)}
        return {**told, "prefixItems": places, "items": False} if places else told


def _by_place(turns: tuple[Turn | None, ...]) -> Turn | None:
    if not any(turns):
        return None
    return lambda value: tuple([turn(item) if turn else item for turn, item in zip(turns, value, strict=True)])


class DictNode(Node):
    """A dict with text as keys."""

    def __init__(self, item: Node, limits: dict[str, Any]) -> None:
        self.inner = GenericAlias(dict, (str, item.wire))
        super().__init__(limited(self.inner, limits), f"an object, each value {item.must}", gives=(dict,))
        self.item = item
        turned = _each_value(item.out)
        self.into = _each_value(item.into)
        self.slim = _each_value(item.slim)

        def out(value: Any) -> Any:
            if not isinstance(value, dict):
                raise Unfit("must be a dict", value)
            if not TEXT.issuperset(map(type, value)):
                raise Unfit("must be a dict with text as keys", value)
            try:
                return turned(value) if turned else value
            except Unfit:
                raise _located(value.items(), item.out) from None

        self.out = out

    def explain(self, json: Json, path: str) -> list[Fault]:
        if not isinstance(json, dict):
            return [Fault(path, "must be an object", shown(json))]
        faults = _explained((self.item, item, below(path, key)) for key, item in json.items())
        return faults or super().explain(json, path)

    def schema(self, defs: dict[str, Schema], mode: Mode) -> Schema:
        bounds = msgspec.json.schema(self.wire) if self.wire is not self.inner else {}
        limits: Schema = {key: bounds[key] for key in ("minProperties", "maxProperties") if key in bounds}
        return {"type": "object", "additionalProperties": self.item.schema(defs, mode), **limits}


def _each_value(turn: Turn | None) -> Turn | None:
    return (lambda value: {key: turn(item) for key, item in value.items()}) if turn else None
