"""reflex.cel.running - the tree of an expression becomes a function of what it may see.

For: `compiled`, which names what is not known before anything runs, and the function that then runs.
Never: a name beyond those it is given; a step that is not counted; an order that Python's dict does not have.
Was wrong once: Google's own evaluator. It gives the keys of an object in another order in each process, so a
retry under the same key sent other bytes; docs/adr has what else was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from onefold.reflex.cel import values
from onefold.reflex.cel.reading import (
    MACROS,
    RESERVED,
    Binary,
    Call,
    Choice,
    Field,
    Index,
    Items,
    Literal,
    Loop,
    Misread,
    Name,
    Node,
    Pairs,
    Unary,
    read,
)
from onefold.reflex.cel.values import FUNCTIONS, METHODS, Meter, Unmet, kind
from onefold.terms.ids import nearest

MAX_TREE: Final = 64
"""Levels of the tree, each of which is a level of Python's stack when it runs."""
SHOWN: Final = 8  # names told of an object that lacks one

See: TypeAlias = "Mapping[str, Any]"
Run: TypeAlias = "Callable[[See, Meter], Any]"
MATH: Final = {
    "+": values.add,
    "-": values.subtract,
    "*": values.multiply,
    "/": values.divide,
    "%": values.remainder,
    "in": values.within,
    "==": values.same,
    "!=": lambda left, right, meter: not values.same(left, right, meter),
    "<": lambda left, right, meter: values.less(left, right, meter) < 0,
    "<=": lambda left, right, meter: values.less(left, right, meter) <= 0,
    ">": lambda left, right, meter: values.less(left, right, meter) > 0,
    ">=": lambda left, right, meter: values.less(left, right, meter) >= 0,
}


class Compiled:
    """An expression that can run. `names`: what it sees of the outside, each with the column where it stands first."""

    __slots__ = ("_run", "names", "text")

    def __init__(self, text: str, run: Run, names: Mapping[str, int]) -> None:
        self.text = text
        self.names = names
        self._run = run

    def __call__(self, see: See, meter: Meter) -> Any:
        """The value. Raises: Unmet, Spent."""
        return self._run(see, meter)


@lru_cache(maxsize=4_096)
def compiled(text: str) -> Compiled:
    """The expression, read once for each text. Raises: Misread."""
    names: dict[str, int] = {}
    return Compiled(text, _Compiler(names).run(read(text), frozenset(), 0), names)


class _Compiler:
    """One walk over the tree. `bound`: the names that loops around a node have given."""

    def __init__(self, names: dict[str, int]) -> None:
        self._names = names

    def run(self, node: Node, bound: frozenset[str], depth: int) -> Run:
        if depth > MAX_TREE:
            raise Misread(f"has more than {MAX_TREE} operations inside one another; take it apart", 1)

        def under(child: Node) -> Run:
            return self.run(child, bound, depth + 1)

        match node:
            case Name(name, at):
                if name not in bound:
                    self._names.setdefault(name, at)
                return _name(name)
            case Call():
                return self._call(node, [under(each) for each in node.args])
            case Loop():
                return self._loop(node, under(node.of), bound, depth)
            case Unary() | Binary() | Choice():
                return _operation(node, under)
            case _:
                return _value(node, under)

    def _call(self, node: Call, args: list[Run]) -> Run:
        table = METHODS if node.method else FUNCTIONS
        found = table.get(node.name)
        if found is None:
            raise Misread(_unknown(node), node.at)
        least, most, act = found
        given = len(args) - node.method
        if not least <= given <= most:
            many = str(least) if least == most else f"{least} or {most}"
            raise Misread(f"{node.name} takes {many} argument{'' if many == '1' else 's'}, not {given}", node.at)

        def call(see: See, meter: Meter) -> Any:
            meter.spend(1)
            return act(*[arg(see, meter) for arg in args], meter)

        return call

    def _loop(self, node: Loop, of: Run, bound: frozenset[str], depth: int) -> Run:
        if node.name in RESERVED:
            raise Misread(f"{node.name!r} is a word of the language and no name", 1)
        inside = bound | {node.name}
        body = self.run(node.body, inside, depth + 1)
        test = None if node.test is None else self.run(node.test, inside, depth + 1)
        return LOOPS[node.macro](of, node.name, body, test)


def _operation(node: Unary | Binary | Choice, under: Callable[[Node], Run]) -> Run:
    match node:
        case Unary(op, of):
            return _not(under(of)) if op == "!" else _minus(under(of))
        case Binary("&&" | "||" as op, left, right):
            return _logic(under(left), under(right), op == "||")
        case Binary(op, left, right):
            return _math(MATH[op], under(left), under(right))
        case Choice(test, then, other):
            return _choice(under(test), under(then), under(other))


def _value(node: Literal | Field | Index | Items | Pairs, under: Callable[[Node], Run]) -> Run:
    match node:
        case Literal(value):
            return _literal(value)
        case Field(of, name, asks):
            return _asks(under(of), name) if asks else _field(under(of), name)
        case Index(of, key):
            return _index(under(of), under(key))
        case Items(items):
            return _items([under(each) for each in items])
        case Pairs(pairs):
            return _pairs([(under(key), under(value)) for key, value in pairs])


def _unknown(node: Call) -> str:
    what = "method" if node.method else "function"
    if node.name == "matches":
        return "patterns are not known here, since one can run for ever; use contains, startsWith or endsWith"
    if node.name in (FUNCTIONS if node.method else METHODS):
        right = f"{node.name}(…)" if node.method else f"x.{node.name}(…)"
        return f"there is no {what} {node.name!r}; write {right}"
    near = nearest(node.name, {**METHODS, **MACROS} if node.method else FUNCTIONS)
    return f"there is no {what} {node.name!r}" + (f"; did you mean {near!r}?" if near else "")


# --- one function for each kind of node -----------------------------------------------------------------


def _literal(value: Any) -> Run:
    return lambda see, meter: value


def _name(name: str) -> Run:
    def run(see: See, meter: Meter) -> Any:
        meter.spend(1)
        if name not in see:
            raise Unmet(f"there is no {name!r} here; there is {_listed(see)}")
        return see[name]

    return run


def _listed(names: Iterable[str]) -> str:
    told = sorted(names)
    return ", ".join(told[:SHOWN]) + (" and more" if len(told) > SHOWN else "") if told else "nothing"


def _field(of: Run, name: str) -> Run:
    def run(see: See, meter: Meter) -> Any:
        meter.spend(1)
        value = of(see, meter)
        if type(value) is not dict:
            raise Unmet(f"{name!r} is asked of {kind(value)}, which has no fields")
        if name not in value:
            raise Unmet(lacking(name, value))
        return value[name]

    return run


def lacking(name: str, value: Mapping[str, Any]) -> str:
    """What an object without this field is told by."""
    near = nearest(name, list(value)[:1_000])
    return f"there is no {name!r} in it" + (f"; did you mean {near!r}?" if near else f"; there is {_listed(value)}")


def _asks(of: Run, name: str) -> Run:
    def run(see: See, meter: Meter) -> Any:
        meter.spend(1)
        value = of(see, meter)
        if type(value) is not dict:
            raise Unmet(f"has({name}) is asked of {kind(value)}, which has no fields")
        return name in value

    return run


def _index(of: Run, key: Run) -> Run:
    def run(see: See, meter: Meter) -> Any:
        meter.spend(1)
        value, at = of(see, meter), key(see, meter)
        if type(value) is dict:
            if type(at) is not str:
                raise Unmet(f"an object is asked for {kind(at)}; its keys are text")
            if at not in value:
                raise Unmet(lacking(at, value))
            return value[at]
        if type(value) is not list:
            raise Unmet(f"[…] is asked of {kind(value)}, which has no items")
        if type(at) is float and at.is_integer():
            at = int(at)
        if type(at) is not int:
            raise Unmet(f"a list is asked for {kind(at)}; its places are whole numbers from 0")
        if not 0 <= at < len(value):
            raise Unmet(f"there is no item {at} in a list of {len(value)}")
        return value[at]

    return run


def _items(items: list[Run]) -> Run:
    def run(see: See, meter: Meter) -> Any:
        meter.spend(1 + len(items))
        return [item(see, meter) for item in items]

    return run


def _pairs(pairs: list[tuple[Run, Run]]) -> Run:
    def run(see: See, meter: Meter) -> Any:
        meter.spend(1 + len(pairs))
        found: dict[str, Any] = {}
        for key, value in pairs:
            name = key(see, meter)
            if type(name) is not str:
                raise Unmet(f"a key is {kind(name)}; in JSON it is text")
            if name in found:
                raise Unmet(f"the key {name!r} stands twice in one object")
            found[name] = value(see, meter)
        return found

    return run


def _not(of: Run) -> Run:
    return lambda see, meter: not _truth(of(see, meter), "!")


def _minus(of: Run) -> Run:
    def run(see: See, meter: Meter) -> Any:
        value = of(see, meter)
        return -value if type(value) is float else values.subtract(0, value, meter)

    return run


def _math(act: Callable[[Any, Any, Meter], Any], left: Run, right: Run) -> Run:
    def run(see: See, meter: Meter) -> Any:
        meter.spend(1)
        return act(left(see, meter), right(see, meter), meter)

    return run


def _truth(value: Any, op: str) -> bool:
    if type(value) is not bool:
        raise Unmet(f"{op} takes true or false, not {kind(value)}")
    return value


def _logic(left: Run, right: Run, settles: bool) -> Run:
    """`&&` and `||`: what settles it on either side makes up for a side that cannot be computed."""
    op = "||" if settles else "&&"

    def run(see: See, meter: Meter) -> Any:
        meter.spend(1)
        try:
            if _truth(left(see, meter), op) is settles:
                return settles
        except Unmet:
            if _truth(right(see, meter), op) is settles:
                return settles
            raise
        return _truth(right(see, meter), op)

    return run


def _choice(test: Run, then: Run, other: Run) -> Run:
    def run(see: See, meter: Meter) -> Any:
        meter.spend(1)
        return then(see, meter) if _truth(test(see, meter), "?") else other(see, meter)

    return run


# --- loops ----------------------------------------------------------------------------------------------


def _each(value: Any, macro: str, meter: Meter) -> list[Any]:
    """The items of a list; of an object its keys, in order."""
    if type(value) is list:
        meter.spend(len(value))
        return value
    if type(value) is dict:
        meter.spend(len(value) * 2)
        return sorted(value)
    raise Unmet(f"{macro} is of a list or an object, not of {kind(value)}")


def _map(of: Run, name: str, body: Run, test: Run | None) -> Run:
    def run(see: See, meter: Meter) -> Any:
        found, inner = [], dict(see)
        for item in _each(of(see, meter), "map", meter):
            inner[name] = item
            if test is None or _truth(test(inner, meter), "map"):
                found.append(body(inner, meter))
        return found

    return run


def _filter(of: Run, name: str, body: Run, test: Run | None) -> Run:
    def run(see: See, meter: Meter) -> Any:
        found, inner = [], dict(see)
        for item in _each(of(see, meter), "filter", meter):
            inner[name] = item
            if _truth(body(inner, meter), "filter"):
                found.append(item)
        return found

    return run


def _until(macro: str, settles: bool) -> Callable[..., Run]:
    """`exists` and `all`: as many `||` or `&&`, so an item that cannot be computed may be made up for."""

    def loop(of: Run, name: str, body: Run, test: Run | None) -> Run:
        def run(see: See, meter: Meter) -> Any:
            failed, inner = None, dict(see)
            for item in _each(of(see, meter), macro, meter):
                inner[name] = item
                try:
                    if _truth(body(inner, meter), macro) is settles:
                        return settles
                except Unmet as unmet:
                    failed = failed or unmet
            if failed is not None:
                raise failed
            return not settles

        return run

    return loop


def _one(of: Run, name: str, body: Run, test: Run | None) -> Run:
    def run(see: See, meter: Meter) -> Any:
        inner, count = dict(see), 0
        for item in _each(of(see, meter), "exists_one", meter):
            inner[name] = item
            count += _truth(body(inner, meter), "exists_one")
        return count == 1

    return run


LOOPS: Final[Mapping[str, Callable[[Run, str, Run, Run | None], Run]]] = {
    "map": _map,
    "filter": _filter,
    "all": _until("all", False),
    "exists": _until("exists", True),
    "exists_one": _one,
}
