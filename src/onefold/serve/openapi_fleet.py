"""serve.openapi_fleet - the path of the document that speaks of the fleet.

For: what a look at the nodes gives.
Never: the doors between nodes: those are no part of the public API.
"""

from __future__ import annotations

from typing import Any, Final

from onefold.serve.openapi_parts import TEXT, of
from onefold.serve.openapi_paths import operation

_COUNT: Final = {"type": "integer", "minimum": 0}
_NODE: Final = of(
    ["name", "state", "incarnation", "until", "slots", "names"],
    name=TEXT,
    state={"enum": ["live", "leaving", "lapsed", "closed"]},
    incarnation=_COUNT,
    until=TEXT,
    url=TEXT,
    reached={"type": "boolean"},
    slots=_COUNT,
    epochs={"type": "array", "items": _COUNT, "minItems": 2, "maxItems": 2},
    names={"type": "object", "additionalProperties": _COUNT},
)
_MAIL: Final = of(["waiting", "parked"], waiting=_COUNT, parked=_COUNT, oldest=TEXT)


def paths() -> dict[str, Any]:
    """The path of the fleet."""
    late = {"type": "number", "minimum": 0}
    names = ["nodes", "mail", "oldest_overdue_seconds"]
    told = of(names, nodes={"type": "array", "items": _NODE}, mail=_MAIL, oldest_overdue_seconds=late)
    what = "The nodes of the fleet with what they own, and the mail that waits; 404 where this process is no node."
    return {"/fleet": {"get": operation("show_fleet", "fleet", what, told)}}
