"""serve.receipts - what a receipt's JSON says about waiting.

For: is it still going, how soon may it change, is it worth holding a request for.
Never: waits; asks host.
Was wrong once: every unfinished call held for 20 seconds. A call that waits for a person until tomorrow
kept its agent from saying so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onefold.serve.times import read
from onefold.terms.instant import down

POLL_SECONDS: Final = 20
GOING: Final = ("running", "waiting")


def soonest_end_ms(receipt: Mapping[str, Any], now_ms: int) -> int | None:
    """How long, in milliseconds, until the first of its waits ends; 0 while it runs; None where nothing says."""
    waits = receipt.get("waits", ())
    if not waits:
        return 0
    ends = [down(at) for wait in waits if (at := read(wait.get("until"))) is not None]
    return max(0, min(ends) - now_ms) if ends else None


def worth_waiting(receipt: Mapping[str, Any], wait_ms: int, now_ms: int) -> bool:
    """Whether something may happen to it within `wait_ms`, as far as it says itself."""
    if wait_ms <= 0 or receipt["status"] not in GOING:
        return False
    if any(wait["kind"] == "child" for wait in receipt.get("waits", ())):
        return True  # it may end any moment; host looks at it, and lets go at once where it waits for long itself
    soonest = soonest_end_ms(receipt, now_ms)
    return soonest is not None and soonest <= wait_ms
