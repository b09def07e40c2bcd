"""kernel.drain - what becomes of an owed row: sent when, tried how often, parked why. Pure.

For: the decisions around a send; the sending itself is effect execution, in `host`.
Never: sends; reads a clock; drops a row.
Was wrong once: a retry limit that deleted the row. What was owed was gone, and nobody knew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from onefold.kernel.fold import Outstanding
from onefold.kernel.port import Promise

FIRST_MS = 1_000  # providers that fail fast recover within seconds
AT_MOST_MS = 15 * 60_000  # four times an hour is polite to a provider that is down for long
LIMIT = 20  # with the two above: about three and a half hours of tries
FRESH_MS = 1_000  # a row whose owner died before it was sent is found after this long
IN_FLIGHT_MS = 5_000  # the longest that a send whose process died stays unnoticed

UNCERTAIN = "the process ended while it was being sent, and this port can neither dedupe nor be asked"

FATAL = "the process ended each time it was sent"

Before = Literal["send", "commit attempt", "park", "give up"]


def before_send(promise: Promise, row: Outstanding) -> Before:
    """What must happen before the next byte leaves.

    A row that was found in the store may have been on its way in an earlier life. Ports that dedupe
    send it again; the attempt is then committed first, so that a send which kills the process is
    counted, and given up on after the limit. For the others the attempt is always committed first, also
    that of a look-up.
    """
    if row.found and row.tries >= LIMIT:
        return "give up"
    if promise == "dedupes":
        return "commit attempt" if row.found else "send"
    doubtful = row.state == "sending" or _began(row)
    return "park" if promise == "neither" and doubtful else "commit attempt"


def _began(row: Outstanding) -> bool:
    """Whether a try had begun of a row that now waits for its port: a version without the port settles no doubt."""
    return row.state == "waits" and row.tries > 0


def asks_first(promise: Promise, row: Outstanding) -> bool:
    """Whether the port is asked before it is sent to: an earlier try of this row may have acted, however it ended."""
    return promise == "lookup" and (row.state == "sending" or row.error is not None)


def looked_at(row: Outstanding, now: int) -> int:
    """When an outstanding row must be looked at again, should nobody come back to it before.

    One on its way is given as long again as it has been on its way already: what dies with its process
    is put off by no more than it had run, and a long send does not ring each second. One that is due
    leaves as soon as the commit that looks at it is done.
    """
    assert row.next_at is not None
    if row.in_flight:
        return now + min(IN_FLIGHT_MS, max(FRESH_MS, now - row.since))
    return row.next_at if row.next_at > now else now + FRESH_MS


def given_up(row: Outstanding) -> Outstanding:
    """The row parked because sending it never came back."""
    return replace(row, next_at=None, state="parked", error=row.error or FATAL, in_flight=False)


def attempt(row: Outstanding) -> Outstanding:
    """The row with one more attempt begun, to be committed before the first byte leaves."""
    return replace(row, tries=row.tries + 1, state="sending", found=True)


def uncertain(row: Outstanding, why: str = UNCERTAIN) -> Outstanding:
    """The row parked for a person: whether it was sent cannot be known."""
    return replace(row, next_at=None, state="uncertain", error=why, in_flight=False)


def again(row: Outstanding, now: int) -> Outstanding:
    """A parked row that a person wants tried once more, with a fresh count."""
    if _began(row):
        return replace(row, next_at=now, state="sending", in_flight=False)
    return replace(row, tries=0, next_at=now, state="ready", in_flight=False)


def without_port(row: Outstanding, now: int) -> Outstanding:
    """A row whose port no part provides: it waits for one, looked at now and then, and is not counted."""
    error = f"no part of this app provides the port {row.port!r}"
    return replace(row, next_at=now + AT_MOST_MS, state="waits", error=error, found=False, in_flight=False)


def moved(row: Outstanding) -> Outstanding:
    """A row found in the store whose send has got somewhere: what it gets to counts anew, or a long
    one that is cut off often would be given up on."""
    return replace(row, tries=0, state="ready", error=None, found=False)


def fell(promise: Promise, row: Outstanding, now: int, error: str, *, acted: bool) -> Outstanding:
    """The row after a try that failed at `now` (ms). acted: the port had been called, so that it may have acted.

    What a port raises does not say whether it acted: an answer that was lost looks like a refusal.
    """
    if acted and promise == "neither":
        return uncertain(row, error)
    return after_failure(row, now, error)


def after_failure(row: Outstanding, now: int, error: str, limit: int = LIMIT) -> Outstanding:
    """The row after a failed send at `now` (ms): backed off, or parked with its last error."""
    tries = row.tries if row.state == "sending" else row.tries + 1
    if tries >= limit:
        return replace(row, tries=tries, next_at=None, state="parked", error=error, in_flight=False)
    wait = min(FIRST_MS << min(tries - 1, 20), AT_MOST_MS)
    return replace(row, tries=tries, next_at=now + wait, state="ready", error=error, found=False, in_flight=False)
