"""host.fates - what becomes of a letter that did not go. Pure.

For: one answer for each fault: told to a sender who waits, tried again later, or parked for a person.
Never: writes it; lets a letter go that nobody has answered for.
Was wrong once: a method that this node's code had not as a letter that never could be read. In the middle of a restart
with newer code it was parked, while the next process would have run it. And a refusal tried again, while the caller
who waited for it was told that nobody knew. And a full queue counted as a try: two crowded minutes parked a letter.
"""

from __future__ import annotations

from dataclasses import dataclass

from onefold.fleet.mailbox import BUSY_MS, OTHER_CODE_MS, Waiting, failed, put_off, refused
from onefold.fleet.wire import is_routed
from onefold.store.contract import Write
from onefold.terms.errors import Busy, CallerError, Failed, NotFound, OnefoldError
from onefold.terms.faults import says


@dataclass(frozen=True, slots=True)
class Fate:
    """The change of its row; whether those behind it of its sender may go now; why, in words."""

    write: Write
    goes_on: bool
    why: str


def fate(mail: Waiting, fault: Exception, now: int, *, read: bool, others: bool) -> Fate:
    """read: this code could read it. others: a node of other code lives, which may."""
    why = says(fault) if isinstance(fault, OnefoldError) else f"{type(fault).__name__}: {says(fault)}"
    if not read and others and isinstance(fault, CallerError | Failed):
        return Fate(put_off(mail, now, OTHER_CODE_MS, why), False, why)
    if isinstance(fault, Busy):
        return Fate(put_off(mail, now, BUSY_MS, why), False, why)
    if isinstance(fault, CallerError | Failed) and is_routed(mail.body):
        return Fate(refused(mail, fault), True, why)
    hopeless = isinstance(fault, CallerError) and not isinstance(fault, NotFound)
    if not read and isinstance(fault, CallerError | Failed):
        hopeless = True
    return Fate(failed(mail, now, why, hopeless=hopeless), hopeless, why)
