"""What a look at the rows shows to have happened, for the run's count of states that must be reached sometimes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tests.simulation.invariants import Rows
from tests.simulation.model import Model, Who, agree
from tests.sometimes import saw

Alarms = Mapping[Who, dict[str, Any]]


def of_rows(rows: Rows) -> None:
    """States that stand in the rows for as long as they last."""
    for owed in rows.owed.values():
        for row in owed.values():
            if row["state"] == "uncertain":
                saw("uncertain send")
            elif row["state"] == "parked":
                saw("parked send")
            elif row["tries"] and row["error"]:
                saw("retry")
    if any(row["at"] is None for row in rows.alarms.values()):
        saw("parked alarm")


def of_rings(before: Alarms, rows: Rows, model: Model, moved: Collection[Who], sent: bool, now: int) -> None:
    """An alarm of `before` was due by `now`; its actor has not `moved`, and nothing was `sent`: it rang early.

    Raises: Wrong unless it is set exactly then, so that it will not ring early again.
    """
    for who, row in () if sent else before.items():
        after = rows.alarms.get(who)
        if row["at"] is None or row["at"] > now or who in moved or row["tries"] or (after or row)["tries"]:
            continue
        saw("spurious wake")
        if who[0] == "jars" and not rows.owed.get(who):  # no send was looked after by it
            agree(f"the alarm of {who} after an early ring", after and after["at"], model.actor(who)["state"]["wake"])
