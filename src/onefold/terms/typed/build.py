"""terms.typed.build - from an annotation to its node.

For: every type that may stand in a signature, and a plain refusal for the others, naming the field.
Never: looks at a value. What cannot be told apart in JSON is refused here, when the app is loaded.
Was wrong once: deciding at the first value. The refusal came at night, from the second member of a union.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT

from onefold.terms.limits import MAX_INT, MIN_INT
from onefold.terms.typed.boxes import DictNode, ListNode, SetNode, TupleNode
from onefold.terms.typed.classes import TAG, ClassNode, DictClassNode, Field
from onefold.terms.typed.declared import (
    Bound,
    Declared,
    bindings,
    declared,
    has_form,
    is_model,
    limits_of,
    refuse,
    told,
)
from onefold.terms.typed.leaves import LEAVES, ChoiceNode, JsonNode, leaf
from onefold.terms.typed.models import ModelNode
from onefold.terms.typed.node import PROGRAM_FAULTS, Node, Unfit
from onefold.terms.typed.sayings import say
from onefold.terms.typed.unions import LaterNode, LooseUnionNode, UnionNode

LISTS: Final = {list: list, Sequence: list, set: set, frozenset: frozenset}
DICTS: Final = (dict, Mapping)
MARKS: Final = {"Required", "NotRequired", "ReadOnly", "Final"}


class Builder:
    """Builds the nodes of one annotation. Classes met before come from `classes`, made once a process."""

    classes: typing.ClassVar[dict[Any, Node]] = {}

    def __init__(self) -> None:
        self.open: dict[Any, LaterNode] = {}
        self.made: dict[Any, Node] = {}

    def node(self, annotation: Any, where: str, *, tagged: bool = False, bound: Bound | None = None) -> Node:
        bound = bound or {}
        plain, limits = self.bare(annotation, where, bound)
        origin = get_origin(plain)
        args = get_args(plain)
        if plain is None:
            plain = type(None)
        if plain in (Any, object):
            return JsonNode()
        if plain is types.UnionType or origin in (Union, types.UnionType):
            return self.union(args, where, bound)
        if origin is Literal:
            return self.literal(plain, args, where)
        if isinstance(plain, type) and plain in LEAVES:
            return self.limited(lambda: leaf(plain, limits), limits, where)
        kind = origin or plain
        if plain == tuple[()]:
            return TupleNode([])
        if kind in LISTS or kind in DICTS or kind is tuple:
            return self.limited(lambda: self.box(kind, args, limits, where, bound), limits, where)
        if not isinstance(kind, type):
            raise refuse(where, f"the type {told(annotation)} has no JSON form")
        if limits:
            raise refuse(where, f"{told(kind)} takes no limits here; check them in the class")
        if issubclass(kind, Enum):
            return self.enum(kind, where)
        return self.cls(kind, plain, where, tagged=tagged, bound=bound)

    def bare(self, annotation: Any, where: str, bound: Bound) -> tuple[Any, dict[str, Any]]:
        """The annotation without its wrappings, and the limits they held."""
        limits: dict[str, Any] = {}
        while True:
            if isinstance(annotation, typing.NewType):
                annotation = annotation.__supertype__
            elif get_origin(annotation) is Annotated:
                annotation, *metas = get_args(annotation)
                for meta in metas:
                    limits.update(limits_of(meta))
            elif getattr(get_origin(annotation), "_name", None) in MARKS:
                (annotation,) = get_args(annotation)
            elif type(annotation).__name__ == "TypeAliasType":
                annotation = annotation.__value__
            elif isinstance(annotation, TypeVar):
                if annotation not in bound:
                    raise refuse(where, f"the type variable {annotation} stands for nothing here; say which type")
                annotation = bound[annotation]
            elif isinstance(annotation, str | typing.ForwardRef):
                raise refuse(where, f"the annotation {annotation!r} is text that cannot be read here; give the type")
            else:
                return annotation, limits

    # --- several values ----------------------------------------------------------------------

    def limited(self, make: Callable[[], Node], limits: dict[str, Any], where: str) -> Node:
        """A node with limits, which not every type takes."""
        if not limits:
            return make()
        try:
            node = make()
            msgspec.json.Decoder(node.wire)
        except (TypeError, ValueError):
            raise refuse(where, f"its type takes no limits of this kind: {', '.join(sorted(limits))}") from None
        return node

    def box(self, kind: Any, args: tuple[Any, ...], limits: dict[str, Any], where: str, bound: Bound) -> Node:
        if kind in LISTS:
            item = self.node(args[0] if args else Any, f"{where}[]", bound=bound)
            return (ListNode if LISTS[kind] is list else SetNode)(LISTS[kind], item, limits)
        if kind is tuple:
            if not args or (len(args) == 2 and args[1] is Ellipsis):
                return ListNode(tuple, self.node(args[0] if args else Any, f"{where}[]", bound=bound), limits)
            return TupleNode([self.node(a, f"{where}[{at}]", bound=bound) for at, a in enumerate(args)])
        if args and self.bare(args[0], where, bound)[0] is not str:
            raise refuse(where, f"keys of JSON objects are text; write dict[str, …] instead of {told(args[0])}")
        return DictNode(self.node(args[1] if args else Any, f"{where}{{}}", bound=bound), limits)

    def union(self, args: Sequence[Any], where: str, bound: Bound) -> Node:
        members = self.flat(args, where, bound)
        others = [m for m in members if m not in (None, type(None))]
        if any(self.bare(m, where, bound)[0] in (Any, object) for m in others):
            if len(others) > 1:
                raise refuse(where, "any JSON beside another type cannot be told from it")
            return JsonNode()
        tagged = len(others) > 1
        nodes = [self.node(m, where, tagged=tagged, bound=bound) for m in members]
        tags = [tag for node in nodes if (tag := getattr(node, "tag", None))]
        if len(tags) != len(set(tags)):
            raise refuse(where, f"two classes of one name cannot be told apart: {', '.join(sorted(tags))}")
        if tags and any(dict in node.gives for node in nodes):
            raise refuse(where, "a dict cannot be told from the classes beside it; write a dataclass")
        if sum(isinstance(node, ListNode | TupleNode) for node in nodes) > 1:
            raise refuse(where, "two lists cannot be told apart in JSON; give one of them a class of its own")
        loose = any(node.wire is Any for node in nodes)
        union = LooseUnionNode(nodes) if loose else UnionNode(nodes)
        rest = [node for node in nodes if not loose or not getattr(node, "tag", None)]
        try:
            msgspec.json.Decoder(Union[tuple(n.wire for n in rest)] if rest else None)  # noqa: UP007 - made at run time
        except TypeError:
            raise refuse(
                where, f"{union.must} cannot be told apart in JSON; give one of them a class of its own"
            ) from None
        return union

    def flat(self, args: Sequence[Any], where: str, bound: Bound) -> list[Any]:
        """The members of a union, those of unions within it included, each once."""
        found: list[Any] = []
        for arg in args:
            plain, limits = self.bare(arg, where, bound)
            if get_origin(plain) in (Union, types.UnionType) and not limits:
                found += [m for m in self.flat(get_args(plain), where, bound) if m not in found]
            elif arg not in found:
                found.append(arg if limits else plain)
        return found

    # --- a few values --------------------------------------------------------------------------

    def literal(self, annotation: Any, args: tuple[Any, ...], where: str) -> Node:
        if not all(type(a) in (str, int, bool, type(None)) for a in args):
            raise refuse(where, "a Literal holds text, whole numbers, true, false or None")
        return ChoiceNode(annotation, args, tuple({type(a) for a in args}))

    def enum(self, kind: type[Enum], where: str) -> Node:
        values = [member.value for member in kind]
        if not values or not all(type(v) is str or (type(v) is int and MIN_INT <= v <= MAX_INT) for v in values):
            raise refuse(where, f"the values of {kind.__name__} must be text or whole numbers")
        return ChoiceNode(kind, values, (kind,))

    # --- classes -------------------------------------------------------------------------------

    def cls(self, kind: type, annotation: Any, where: str, *, tagged: bool, bound: Bound) -> Node:
        if not has_form(kind):
            problem = f"{kind.__name__} has no JSON form; write a dataclass, a pydantic model or a NamedTuple"
            raise refuse(where, problem)
        args = tuple(bound.get(a, a) for a in get_args(annotation))
        key = (kind, args, tagged)
        found = self.classes.get(key) or self.made.get(key) or self.open.get(key)
        if found is not None:
            return found
        self.open[key] = later = LaterNode(kind, kind.__name__ if tagged else None)
        try:
            node = self._cls(kind, args, where, tagged)
        finally:
            del self.open[key]
        later.node = self.made[key] = node
        if not self.open:  # nothing made here waits for a class that is still open
            self.classes.update(self.made)
        return node

    def _cls(self, kind: type, args: tuple[Any, ...], where: str, tagged: bool) -> Node:
        if is_model(kind):
            return ModelNode(kind, self, where, tagged=tagged)
        bound = bindings(kind, args)
        fields = [self.field(f, where, bound) for f in declared(kind, where)]
        doc = kind.__doc__
        doc = None if doc is None or doc.startswith(f"{kind.__name__}(") else inspect.cleandoc(doc)
        if issubclass(kind, dict):
            return DictClassNode(kind, fields, doc=doc)
        if tagged and any(f.wire_name == TAG for f in fields):
            raise refuse(
                where, f'{kind.__name__} has a field "type", which names the class of a union; call it otherwise'
            )
        return ClassNode(kind, fields, tagged=tagged, doc=doc)

    def field(self, declared: Declared, where: str, bound: Bound) -> Field:
        path = f"{where}.{declared.name}"
        node = self.node(declared.annotation, path, bound=bound)
        if declared.default is not NODEFAULT:
            try:
                node.check(declared.default)
            except Unfit as unfit:
                raise refuse(path, f"its default does not fit: it {unfit}") from None
            except PROGRAM_FAULTS as fault:
                raise refuse(path, f"its default does not fit: it {say(fault, node.must)}") from None
        return Field(
            declared.name,
            declared.wire_name,
            node,
            default=declared.default,
            factory=declared.factory,
            absent=declared.absent,
            named=declared.named,
        )
