"""reflex.backfill - past occurrences that a person asks for: made deliberately, once each, and never two at once unseen.

For: the keys between two instants, the body that makes runs of them, the queue in which those of a reflex that must
not overlap wait for each other.
Never: moves a watermark; makes a run of a key that has one or had one before a sweep; drops a key because another
runs. Pure.
Was wrong once: twelve months asked for at once under `overlap: skip`, treated as repeats of one another. One ran,
eleven were skipped under the only cause they can ever have, and the year could not be asked for again.

A run that waits is `pending` with no `due_at`, and `open` says "~" and its reflex: found by the index that overlap
asks, and by nothing that is due. It is let go when no run of its reflex is open.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Final

from onefold.almanac import Occurrence, occurrences, tz_version
from onefold.reflex import birth
from onefold.reflex.materialize import CAP, running
from onefold.reflex.tables import REFLEX_RUN, STATE
from onefold.reflex.watch import Loaded, held, is_newest
from onefold.reflex.words import OnClock, Reflex
from onefold.store.contract import Answer, Append, Body, Cas, Condition, Last, Query, Row, Verb
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.instant import Instant, text

MOST: Final = 10_000
"""Keys of one call: as many tasks as one fan-out may have. More is asked for in parts."""

WAITS: Final = f"{birth.BACKFILL}: waits until no run of this reflex is open"
QUEUED: Final = "~"
"""Before the reflex's id in `open`. No id begins with it."""
BEHIND_QUEUED: Final = "\x7f"
_OPEN, _N, _REFLEX = REFLEX_RUN.at["open"], REFLEX_RUN.at["n"], REFLEX_RUN.at["reflex"]


@dataclass(frozen=True, slots=True)
class Filled:
    """`behind`: this engine's set is no longer the newest, and nothing was written."""

    behind: bool = False


def asked(reflex: Reflex, since: Instant, until: Instant, now: Instant) -> list[Occurrence]:
    """The occurrences from `since` to `until`, both included. Raises: BadArguments."""
    if not isinstance(reflex.on, OnClock):
        raise _refused("reflex", f"{reflex.id} has no clock, so that it has no past occurrences; fire it instead")
    if until > now:
        raise _refused(
            "until", "lies in the future, which comes by itself; give an instant that has passed", text(until)
        )
    if since > until:
        raise _refused("since", "lies after `until`", text(since))
    found = occurrences(reflex.on.rule, Instant(since - 1), until, MOST + 1)
    if len(found) > MOST:
        told = f"leaves more than {MOST} occurrences; the last of the first {MOST} is {text(found[MOST - 1].at)}"
        raise _refused("until", told, text(until))
    return found


def chunks(found: Sequence[Occurrence]) -> list[Sequence[Occurrence]]:
    """As many at a time as one call of the clock makes."""
    return [found[first : first + CAP] for first in range(0, len(found), CAP)]


def backfilling(
    loaded: Loaded, reflex: Reflex, found: Sequence[Occurrence], now: Instant, mint: Callable[[], int]
) -> Body[Filled]:
    """Runs for these occurrences. A key that has a run keeps it: the answer of the last write has a None for each
    that is new (`made`). Disarmed ones too: arming stops triggers, and a person asks here.
    """

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Filled]]:
        newest, state = yield held([reflex.id])
        if not is_newest(loaded, newest):
            return Last((), Filled(behind=True))
        swept = state[0][STATE.at["swept_at"]] if state else None
        wanted = [each for each in found if swept is None or each.at > int(swept)]
        rows = [_row(reflex, occurrence, now, mint()) for occurrence in wanted]
        return Last((Append(REFLEX_RUN, rows, met="keep"),) if rows else (), Filled())

    return body


def made(answers: tuple[Answer, ...]) -> int:
    """How many runs are new, by the answers of the last writes."""
    return sum(met is None for met in answers[0]) if answers else 0


def queued(limit: int) -> Query:
    """Runs that wait for their turn; none of what is settled is looked at."""
    within: tuple[Condition, ...] = (("open", ">=", QUEUED), ("open", "<", BEHIND_QUEUED))
    return Query(REFLEX_RUN, where=within, order=("open", "n"), limit=limit)


def letting(waiting: Sequence[Row], now: Instant) -> Body[int]:
    """Let the first of each reflex go, if nothing of it is open. Value: how many went."""
    first: dict[str, Row] = {}
    for row in waiting:
        first.setdefault(str(row[_REFLEX]), row)

    def body() -> Generator[tuple[Verb, ...], tuple[Answer, ...], Last[int]]:
        _, _, open_runs = yield (*held(list(first)), running(list(first)))
        busy = {run[_REFLEX] for run in open_runs}
        free = [row for reflex, row in sorted(first.items()) if reflex not in busy]
        gone = {"open": None, "due_at": now, "note": birth.BACKFILL}
        changes = [((row[_N],), {"open": row[_OPEN]}, {**gone, "open": row[_REFLEX]}) for row in free]
        return Last((Cas(REFLEX_RUN, changes),) if changes else (), len(changes))

    return body


def _row(reflex: Reflex, occurrence: Occurrence, now: Instant, n: int) -> Row:
    cause = birth.of_occurrence(occurrence.key, occurrence.at, tz_version())
    cells = list(birth.born(n, reflex, cause, now))
    cells[REFLEX_RUN.at["note"]] = birth.BACKFILL
    if reflex.policy.overlap == "skip":
        waiting = {"note": WAITS, "due_at": None, "open": QUEUED + reflex.id}
        for name, value in waiting.items():
            cells[REFLEX_RUN.at[name]] = value
    return tuple(cells)


def _refused(field: str, problem: str, got: object = None) -> BadArguments:
    return BadArguments([Fault(field, problem, got)], nothing_was="backfilled")
