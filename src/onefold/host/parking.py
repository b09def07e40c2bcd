"""host.parking - what waits for a person, as it is told: its kind, its cause, and what the ways out of it do.

For: the values that lists and pages of what is parked show.
Never: looks for any of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from onefold.host.core import MAIN
from onefold.terms.instant import Instant, moment

if TYPE_CHECKING:
    from onefold.fleet.mailbox import GivenUp
    from onefold.reflex.words import IntakeRow, TaskRow

LETTER = "letter."

WAYS: Mapping[str, tuple[str, str]] = {
    "owed": ("sends it again, with a fresh count", "gives it up; its actor is told, if it hears drops"),
    "uncertain": ("sends it, though it may have arrived", "takes it as settled by hand; its actor is told"),
    "port": ("looks for a part that provides the port", "gives it up; its actor is told, if it hears drops"),
    "notice": ("sends it now", "tells nobody"),
    "alarm": ("tries the wake again, with a fresh count", "lets it sleep until its next event"),
    "run": ("goes on from its journal", "cancels the run"),
    "code": ("reads it again", "is refused: only other code can read it"),
    "task": ("opens it again, with a fresh count", "leaves it failed"),
    "fact": ("lets it pass, however long its chain", "lets it wake nobody"),
    "letter": ("tries it again, with a fresh count", "takes it out of its box, unread"),
}
"""What a retry and a drop of each kind do."""


@dataclass(frozen=True, slots=True)
class ParkedItem:
    """One thing that waits for a person. `cause`: its last error."""

    id: str
    kind: str  # owed, uncertain, port, notice, alarm, run, code; of reflexes: task, fact; of cells: letter
    program: str
    cause: str
    since: datetime


@dataclass(frozen=True, slots=True)
class ParkedDetail:
    """An item, what retry and drop do to it, and what is known of it. owed: the key as the actor wrote it."""

    id: str
    kind: str
    program: str
    cause: str
    since: datetime
    retry: str
    drop: str
    key: str | None = None
    principal: str | None = None
    tries: int | None = None
    port: str | None = None
    owed: str | None = None
    next_at: datetime | None = None
    body: Any = None


def of_reflex(row: IntakeRow | TaskRow) -> ParkedItem:
    from onefold.reflex.words import IntakeRow

    if isinstance(row, IntakeRow):
        return ParkedItem(row.id, "fact", row.subject, row.note or "", row.at)
    since = moment(Instant(0)) if row.ended_at is None else row.ended_at
    return ParkedItem(row.id, "task", row.reflex, row.error or "", since)


def of_cell(row: GivenUp) -> ParkedItem:
    return ParkedItem(f"{LETTER}{MAIN}.{row.mail.n}", "letter", row.mail.to.kind, row.error, moment(row.at))
