"""actuators.ending - who is told that a run has ended, and what.

For: the receipt that is owed to each address, in the commit that ends the run. Pure.
Never: sends; tells of a run that is parked, which has not ended.
Was wrong once: one key for every end of a run. It failed, was tried again and was done, and the second end had been
told already.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from onefold.actuators.carried import Callback
from onefold.actuators.folding import evolve
from onefold.actuators.receipt import picture, receipt_of
from onefold.actuators.state import State
from onefold.actuators.words import Fact, Follow, Followed, Following, Reply
from onefold.kernel.blob import raw_pointed
from onefold.kernel.words import Decision, Owed
from onefold.terms.codec import canonical

PORT = "run.ended"
MOST = 8
"""Addresses of one run. Calls that meet one run may each bring theirs; a loop of them must not fill a row."""
ENDED = frozenset({"done", "failed", "cancelled"})


def told(state: State, facts: Sequence[Fact]) -> list[Owed]:
    """What these facts owe to those who want to hear of the run's end; nothing unless they end it."""
    after = state
    for fact in facts:
        after = evolve(after, fact)
    if not after.callbacks or after.status not in ENDED:
        return []
    receipt = Raw(canonical(receipt_of(picture(after)).to_json()))
    return [_owed(after, n, url, receipt) for n, url in enumerate(after.callbacks)]


def followed(state: State, event: Follow, at: int) -> Decision[Fact, Reply]:
    """One more address for the receipt; where the run has ended it is owed at once."""
    if event.url in state.callbacks:
        return Decision(reply=Following("yes"))
    if len(state.callbacks) >= MOST:
        return Decision(reply=Following("full"))
    fact = Followed(at, event.url)
    if state.status not in ENDED:
        return Decision(facts=[fact], reply=Following("yes"))
    receipt = event.receipt
    if bytes(receipt) == b"null":
        if raw_pointed(state.result) is not None:
            return Decision(reply=Following("look"))
        receipt = Raw(canonical(receipt_of(picture(state)).to_json()))
    return Decision(facts=[fact], owed=[_owed(state, len(state.callbacks), event.url, receipt)], reply=Following("yes"))


def _owed(state: State, n: int, url: str, receipt: Raw) -> Owed:
    return Owed(PORT, f"ended/{state.round}/{n}", Callback(url, f"{state.run}/{state.round}", receipt))
