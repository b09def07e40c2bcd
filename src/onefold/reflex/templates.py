"""reflex.templates - JSON with expressions at its leaves becomes JSON.

For: `CelTransform`, what shapes queries, `when` and inputs unless a host brings its own; `free_names`, what is wrong
with a template before it ever runs.
Never: sees more than its environment; gives what JSON cannot hold; gives another answer to the same question.
Was wrong once: a template checked when it first ran. A slip in a name was found at four in the morning, on task 1 of 500.

    {"$": "row.amount * 2"}                                 the value of the expression
    {"$each": "rows", "as": "r", "do": {"id": {"$": "r.id"}}}   a list: `do` once for each item; `as` may be left out: item
    {"$$": 1, "$$ref": 2}                                   a key that begins with $ is written with one $ more
    anything else                                           itself
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from onefold.reflex.cel import FUEL, Compiled, Meter, Misread, Spent, Unmet, as_json, compiled
from onefold.reflex.cel.reading import RESERVED
from onefold.reflex.seams import ROOTS, Env
from onefold.reflex.words import Json
from onefold.terms.codec import below, canonical, parse
from onefold.terms.errors import BadArguments, Fault, Finding
from onefold.terms.ids import nearest
from onefold.terms.limits import MAX_DEPTH, MAX_ROW_BYTES

LEAF: Final = "$"
EACH: Final = "$each"
ITEM: Final = "item"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PARTS: Final = {"as", "do", EACH}


class CelTransform:
    """The template for an environment. The same pair always gives the same JSON, in any process."""

    def __init__(self, *, fuel: int = FUEL, most_bytes: int = MAX_ROW_BYTES) -> None:
        """fuel: steps of one call. most_bytes: of what it gives, as JSON."""
        self._fuel = fuel
        self._most = most_bytes

    def __call__(self, template: Json, env: Env, /) -> Json:
        """Raises: BadArguments, whose fault names the place in the template."""
        shaping = _Shaping(self._fuel, self._most)
        given = shaping.shape(template, env, "", 0)
        return parse(canonical(given), "what the template gave")

    def findings(self, template: Json, path: str, known: Sequence[str] = ROOTS) -> list[Finding]:
        """What is wrong with it, before it runs. `path` stands before each place."""
        return free_names(template, path, known)


def free_names(template: Json, path: str = "", known: Sequence[str] = ROOTS) -> list[Finding]:
    """Names that no environment has, expressions that cannot be read, and forms that are not known, each with its place."""
    return list(_wrong(template, path, tuple(known), 0))


# --- before it runs ---------------------------------------------------------------------------------


def _wrong(template: Json, path: str, known: tuple[str, ...], depth: int) -> Iterator[Finding]:
    if depth > MAX_DEPTH:
        yield Finding(path, f"is nested deeper than {MAX_DEPTH} levels")
    elif isinstance(template, list):
        for at, item in enumerate(template):
            yield from _wrong(item, below(path, at), known, depth + 1)
    elif isinstance(template, dict):
        problem = _form(template)
        if problem:
            yield Finding(path, problem)
        elif LEAF in template:
            yield from _unread(template[LEAF], path, known)
        elif EACH in template:
            yield from _unread(template[EACH], below(path, EACH), known)
            inside = (*known, template.get("as", ITEM))
            yield from _wrong(template["do"], below(path, "do"), inside, depth + 1)
        else:
            for key, item in template.items():
                yield from _wrong(item, below(path, key), known, depth + 1)


def _form(template: Mapping[str, Json]) -> str | None:
    """What is wrong with the keys of an object, or None."""
    if LEAF in template:
        if len(template) > 1:
            others = ", ".join(repr(key) for key in template if key != LEAF)
            return f'{{"$": …}} stands alone, and has {others} beside it; a key that is $ itself is written "$$"'
        return (
            None if isinstance(template[LEAF], str) else 'an expression is text; a key that is $ itself is written "$$"'
        )
    if EACH in template:
        return _each_form(template)
    for key in template:
        if key.startswith("$") and not key.startswith("$$"):
            near = nearest(key, (LEAF, EACH))
            meant = f"did you mean {near!r}, or " if near else "a key that begins with $ has a meaning; "
            return f"{key!r} is not known: {meant}to have it as it is, write {'$' + key!r}"
    return None


def _each_form(template: Mapping[str, Json]) -> str | None:
    for key in template:
        if key not in _PARTS:
            near = nearest(key, _PARTS)
            return f"{EACH} does not know {key!r}" + (f"; did you mean {near!r}?" if near else "; it takes as and do")
    if "do" not in template:
        return f'{EACH} needs "do": what each item becomes'
    name = template.get("as", ITEM)
    if not (isinstance(name, str) and _NAME.fullmatch(name)) or name in RESERVED or name in ROOTS:
        return f'"as" is a new name such as "r", not {name!r}'
    return None if isinstance(template[EACH], str) else f"{EACH} is an expression that gives a list, as text"


def _unread(text: str, path: str, known: tuple[str, ...]) -> Iterator[Finding]:
    try:
        expression = compiled(text)
    except Misread as misread:
        yield Finding(path, f"{misread.problem} (character {misread.at} of {_cut(text)})")
        return
    for name, at in expression.names.items():
        if name not in known:
            yield Finding(path, f"{_strange(name, known)} (character {at} of {_cut(text)})")


def _strange(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known)
    return f"there is no {name!r} here; " + (f"did you mean {near!r}?" if near else f"there is {', '.join(known)}")


def _cut(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:79]}…")


# --- when it runs -----------------------------------------------------------------------------------


class _Shaping:
    """One template being shaped: what is left of its steps and of its size."""

    def __init__(self, fuel: int, room: int) -> None:
        self._meter = Meter(fuel)
        self._fuel = fuel
        self._most = room
        self._room = room

    def shape(self, template: Json, see: Env, path: str, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise _bad(path, f"is nested deeper than {MAX_DEPTH} levels")
        if isinstance(template, dict):
            return self._object(template, see, path, depth)
        if isinstance(template, list):
            self._takes(len(template), path)
            return [self.shape(item, see, below(path, at), depth + 1) for at, item in enumerate(template)]
        return self.whole(template, path, depth)

    def _object(self, template: Mapping[str, Json], see: Env, path: str, depth: int) -> Json:
        problem = _form(template)
        if problem:
            raise _bad(path, problem)
        if LEAF in template:
            return self.whole(self._value(template[LEAF], see, path), path, depth)
        if EACH in template:
            return self._each(template, see, path, depth)
        found = {}
        for key, item in template.items():
            self._takes(len(key), path)
            name = key[1:] if key.startswith("$$") else key
            found[name] = self.shape(item, see, below(path, key), depth + 1)
        return found

    def _each(self, template: Mapping[str, Json], see: Env, path: str, depth: int) -> list[Json]:
        items = self._value(template[EACH], see, below(path, EACH))
        if not isinstance(items, list):
            raise _bad(below(path, EACH), f"must give a list; it gave {type(as_json(items)).__name__}")
        name, found = template.get("as", ITEM), []
        for at, item in enumerate(items):
            self._spends(path)
            inner = {**see, name: item}
            found.append(self.shape(template["do"], inner, below(below(path, "do"), at), depth + 1))
        return found

    def _value(self, text: str, see: Env, path: str) -> Any:
        try:
            expression: Compiled = compiled(text)
            return expression(see, self._meter)
        except Misread as misread:
            problem = f"{misread.problem} (character {misread.at})"
        except Unmet as unmet:
            problem = unmet.problem
        except Spent:
            raise self._spent(path) from None
        raise _bad(path, f"{problem}, in {_cut(text)}")

    def whole(self, value: Any, path: str, depth: int) -> Json:
        """A copy of a value as JSON, charged for its size. It may hold one list very often."""
        value = as_json(value)
        if isinstance(value, dict | list):
            if depth > MAX_DEPTH:
                raise _bad(path, f"is nested deeper than {MAX_DEPTH} levels")
            self._takes(len(value), path)
            if isinstance(value, list):
                return [self.whole(item, path, depth + 1) for item in value]
            return {key: self._keyed(key, item, path, depth) for key, item in value.items()}
        self._takes(len(value) if isinstance(value, str) else 1, path)
        if isinstance(value, float) and not float("-inf") < value < float("inf"):
            raise _bad(path, "gave a number that is not finite")
        return value

    def _keyed(self, key: str, item: Any, path: str, depth: int) -> Json:
        self._takes(len(key), path)
        return self.whole(item, path, depth + 1)

    def _takes(self, size: int, path: str) -> None:
        self._room -= size + 1
        if self._room < 0:
            raise _bad(path, f"would give more than {self._most} bytes; select what is needed, or take fewer rows")

    def _spends(self, path: str) -> None:
        try:
            self._meter.spend(1)
        except Spent:
            raise self._spent(path) from None

    def _spent(self, path: str) -> BadArguments:
        return _bad(path, f"takes more than {self._fuel} steps; let the selection do the work, or take fewer rows")


def _bad(path: str, problem: str) -> BadArguments:
    return BadArguments([Fault(path, problem)], nothing_was="shaped")
