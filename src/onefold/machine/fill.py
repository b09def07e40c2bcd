"""machine.fill - JSON with places to fill: {"tick": {"$": "context.tick_id"}, "kind": "daily"}.

For: a child's input and first context, an output, the data of an event that a chart sends.
Never: an expression. A path says where a value stands; what must be computed is a named action's work.
Was wrong once: a function of the context written into the definition. It could not be stored, drawn
or checked, and the first one read the clock.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from onefold.machine.findings import Findings, Path
from onefold.machine.table import Fill
from onefold.machine.words import Plain
from onefold.terms.codec import Json
from onefold.terms.typed import codec_of

MARK: Final = "$"
NAME: Final = re.compile(r"[A-Za-z0-9][\w-]*")  # nothing that begins with _ is anybody's business
SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def filled(raw: Json, path: Path, roots: tuple[str, str], fields: Collection[str] | None, found: Findings) -> Fill:
    """A function of (first root, second root) that gives the JSON. `fields`: what the first one has, if known."""
    if isinstance(raw, dict):
        if MARK in raw:
            return _place(raw, path, roots, fields, found)
        parts = {key: filled(item, (*path, key), roots, fields, found) for key, item in raw.items()}
        if any(_moves(item) for item in raw.values()):
            return lambda one, two: {key: part(one, two) for key, part in parts.items()}
    elif isinstance(raw, list):
        items = [filled(item, (*path, at), roots, fields, found) for at, item in enumerate(raw)]
        if any(_moves(item) for item in raw):
            return lambda one, two: [item(one, two) for item in items]
    return lambda one, two: raw


def _moves(raw: Json) -> bool:
    """Whether anything within is to be filled."""
    if isinstance(raw, dict):
        return MARK in raw or any(_moves(item) for item in raw.values())
    return isinstance(raw, list) and any(_moves(item) for item in raw)


def _place(
    raw: dict[str, Json], path: Path, roots: tuple[str, str], fields: Collection[str] | None, found: Findings
) -> Fill:
    said = raw[MARK]
    root, *names = said.split(".") if isinstance(said, str) else [""]
    if len(raw) != 1 or not isinstance(said, str) or not all(NAME.fullmatch(name) for name in names):
        found.refuse(path, 'a place to fill is {"$": "context.name"} and nothing else, a path without code')
        return lambda one, two: None
    if root not in roots or not root:
        found.unknown((*path, MARK), "root of a path", root, [r for r in roots if r])
        return lambda one, two: None
    if root == roots[0]:
        if fields is not None and names and names[0] not in fields:
            found.unknown((*path, MARK), f"field of the {root}", names[0], fields)
        return lambda one, two: plain(_reach(one, names, said))
    return lambda one, two: plain(_reach(two, names, said))


def _reach(value: Any, names: list[str], said: str) -> Any:
    for name in names:
        try:
            if type(value) is dict:
                value = value[name]
            elif isinstance(value, Plain):
                value = value.type if name == "type" else value.data[name]
            elif isinstance(value, Mapping):
                value = value[name]
            elif isinstance(value, list | tuple) and name.isdecimal():
                value = value[int(name)]
            else:
                value = getattr(value, name)
        except (LookupError, AttributeError):
            raise LookupError(f"nothing stands at {said!r}: there is no {name!r}") from None
    return value


def plain(value: Any) -> Json:
    """The JSON form of a value out of a context or an event. Raises: LoadRefused for a type without one."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return [plain(item) for item in value]
    return codec_of(kind).to_json(value)
