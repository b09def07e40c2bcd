"""host.publishing - a fact that a module publishes, as the row by which automations hear of it.

For: the append to `intake` that goes into the fold's own commit, in fold order, under the actor's principal.
Never: refuses; asks whether anybody listens: who listens is decided when the fact is due, not when it happens.
Was wrong once: published by whoever saw the commit. A kill in between, and the reflex never heard of the sale.
"""

from __future__ import annotations

from typing import Any

from onefold.kernel.fold import Base, Publisher
from onefold.reflex.intake import PARKED, Incoming, body_of, row_of
from onefold.reflex.tables import INTAKE
from onefold.store.contract import Row, Space, Table
from onefold.terms.codec import canonical
from onefold.terms.errors import BadArguments
from onefold.terms.instant import Instant

TOO_DEEP = "what it holds is nested too deep to be told; the actor's history has it whole"


def publisher(space: Space) -> Publisher:
    """Rows of `intake` in this space for published facts."""

    def published(base: Base, seq: int, entity: str, fact: Any, now: int) -> tuple[Table, Row]:
        names = {"key": base.key, "seq": seq}
        try:
            return INTAKE, _row(space.mint(INTAKE), base, entity, {**names, **fact}, Instant(now))
        except BadArguments:
            row = list(_row(space.mint(INTAKE), base, entity, names, Instant(now)))
            row[INTAKE.at["state"]], row[INTAKE.at["due_at"]], row[INTAKE.at["note"]] = PARKED, None, TOO_DEEP
            return INTAKE, tuple(row)

    return published


def _row(n: int, base: Base, entity: str, row: dict[str, Any], now: Instant) -> Row:
    """Raises: BadArguments for what no reader would take."""
    raw = canonical(body_of("write", {"entity": entity, "op": "insert", "row": row}, now))
    return row_of(n, Incoming(base.principal, "write", entity, "insert", {}, now, now, raw=raw))
