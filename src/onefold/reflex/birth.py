"""reflex.birth - the one place where a reflex run is born, and what its templates see of its cause.

For: rows of `reflex_run`, pending or skipped; the environment that is pinned on them.
Never: decides whether one is to be born (materialize and match do).
Was wrong once: three places that made runs. The one for facts asked about overlap, and dropped payments.

`env` holds the occurrence ({"key", "at"}) or the fact's body, whichever `cause` says: as it was, whatever becomes of
its row. Instants in it are RFC 3339 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onefold.reflex.seams import Env
from onefold.reflex.tables import REFLEX_RUN
from onefold.reflex.words import Json, Reflex
from onefold.store.contract import Row
from onefold.terms import codec
from onefold.terms.ids import principal_text
from onefold.terms.instant import Instant, text

OCCURRENCE, FACT = "occurrence:", "fact:"
BACKFILL = "backfill"
"""How the note of a run begins that a person asked for, of an occurrence that had passed."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a run is. `occurred_at`: the occurrence's instant, or the fact's. `pinned`: bytes of what templates see."""

    cause: str
    occurred_at: Instant
    pinned: bytes
    fact: int | None = None
    depth: int = 0
    tz: str | None = None


def of_occurrence(key: str, at: Instant, tz: str) -> Cause:
    """`tz`: the version of the zone data that it was reckoned with."""
    return Cause(OCCURRENCE + key, at, codec.canonical({"key": key, "at": text(at)}), tz=tz)


def of_fact(n: int, at: Instant, body: bytes, depth: int) -> Cause:
    return Cause(f"{FACT}{n}", at, body, fact=n, depth=depth)


def born(n: int, reflex: Reflex, cause: Cause, now: Instant, skipped: str | None = None) -> Row:
    """The row of a run: pending from now, or skipped for the reason given."""
    lives = skipped is None
    return (
        n,
        reflex.id,
        cause.cause,
        principal_text(reflex.principal),
        reflex.version,
        "pending" if lives else "skipped",
        skipped,
        now if lives else None,
        0,
        reflex.id if lives else None,
        cause.occurred_at,
        cause.fact,
        cause.pinned,
        cause.depth,
        0,
        0,
        0,
        0,
        now,
        None if lives else now,
        cause.tz,
    )


def pinned(run: Row) -> Mapping[str, Json]:
    """What the templates of a run see of its cause: `occurrence`, or `fact` and `facts`."""
    cell = REFLEX_RUN.at
    raw = run[cell["env"]]
    assert isinstance(raw, bytes)
    seen = codec.parse(raw, "what a run is of")
    if str(run[cell["cause"]]).startswith(OCCURRENCE):
        return {"occurrence": seen}
    return of_a_fact(seen)


def of_a_fact(body: Mapping[str, Json]) -> Mapping[str, Json]:
    """What templates see of a fact."""
    return {"fact": body, "facts": [body]}


def environment(params: Json, seen: Mapping[str, Json], now: Instant, **rows: Json) -> Env:
    """All that a template sees: the reflex's params, its cause, `row` or `rows` where there are some, and `now`."""
    return {"params": params, **seen, **rows, "now": text(now)}
