"""host.publishing - a fact that a module publishes, as the row by which automations hear of it.

For: the append to `intake` that goes into the fold's own commit, in fold order, under the actor's principal.
Never: refuses; asks whether anybody listens: who listens is decided when the fact is due, not when it happens.
Was wrong once: published by whoever saw the commit. A kill in between, and the reflex never heard of the sale.
"""

from __future__ import annotations

from typing import Any

from onefold.kernel.fold import Base, Publisher
from onefold.reflex.tables import INTAKE
from onefold.store.contract import Row, Space, Table
from onefold.terms.codec import canonical
from onefold.terms.ids import principal_text


def publisher(space: Space) -> Publisher:
    """Rows of `intake` in this space for published facts."""

    def published(base: Base, seq: int, entity: str, fact: Any, now: int) -> tuple[Table, Row]:
        row = {"key": base.key, "seq": seq, **fact}
        body = canonical({"kind": "write", "entity": entity, "op": "insert", "row": row, "at": now}, parsed=True)
        whose = principal_text(base.principal)
        kept: Row = (
            space.mint(INTAKE),
            whose,
            None,
            now,
            "waiting",
            "write",
            entity,
            "insert",
            body,
            now,
            0,
            0,
            None,
            None,
        )
        return INTAKE, kept

    return published
