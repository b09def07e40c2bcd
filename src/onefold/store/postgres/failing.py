"""store.postgres.failing - what the server's errors mean to a caller.

For: SQLSTATEs as ours: try again, your row, or our world failed, each with its sentence.
Never: passes the driver's own words on. They may name the host, the user and the address, and of an address that
cannot be read, all of it.
"""

from __future__ import annotations

from collections.abc import Mapping

from onefold.store.batch import told
from onefold.store.postgres.wire import Stopped
from onefold.terms.errors import OnefoldError, StoreUnavailable

STORE = "postgres"
MET = "23505"
OTHER = "OF003"  # a row that `Still` names is another's by now; no key of ours was met
AGAIN = frozenset(("40001", "40P01", "55P03"))  # a conflict, a deadlock, a lock that was not to be had in time
_ROW = ("22", "23", "54", "OF")  # classes that say: this row does not fit

_WHY: Mapping[str, str] = {
    "25006": "its server only reads now; is it a replica, or was it made read-only?",
    "25P03": "a transaction stood still for too long, and its server ended it",
    "28": "its server refused the login; check user, password and rights",
    "3D": "its server has no such database",
    "42501": "its user lacks a right there",
    "53100": "the disk of its server is full",
    "53300": "its server takes no more connections",
    "53": "its server has no room for it",
    "57014": "a statement took too long and was ended",
    "57P03": "its server is starting or stopping",
    "57P": "its server ended the connection",
    "08": "the connection to its server was lost",
    "": "its server cannot be reached, does not answer or refused the login",
}


def is_row(state: str) -> bool:
    """Whether it is the row's own fault."""
    return state[:2] in _ROW


def is_world(state: str) -> bool:
    """Whether our world failed, rather than what we sent."""
    return state == "" or any(state.startswith(prefix) for prefix in _WHY if prefix) or state[:2] in ("58", "XX")


def unavailable(state: str) -> StoreUnavailable:
    for length in (5, 3, 2, 0):
        why = _WHY.get(state[:length])
        if why is not None and (length or not state):
            return StoreUnavailable(STORE, why)
    return StoreUnavailable(STORE, f"its server reported an error ({state}); look at its log")


def faulty(stopped: Stopped) -> OnefoldError:
    """What a body is told whose statement the server did not take."""
    if is_row(stopped.state):
        return told(ValueError(f"a row that does not fit ({stopped})"))
    return unavailable(stopped.state) if is_world(stopped.state) else told(stopped)
