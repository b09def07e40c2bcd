"""actuators.ending - who is told that a run has ended, and what.

For: the receipt that is owed to each address, and the place that it leaves, in the commit that ends the run. Pure.
Never: sends; tells of a run that is parked, which has not ended.
Was wrong once: one key for every end of a run. It failed, was tried again and was done, and the second end had been
told already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Raw

from onefold.actuators.carried import Callback, Orphan, Place
from onefold.actuators.folding import evolve
from onefold.actuators.receipt import picture, receipt_of
from onefold.actuators.state import State
from onefold.actuators.words import Fact, Follow, Followed, Following, Reply
from onefold.kernel.blob import raw_pointed
from onefold.kernel.words import Decision, Owed
from onefold.terms.codec import canonical

PORT = "run.ended"
LIMIT = "run.limit"
CHILD = "run.orphan"
MARK = "/run_"
"""In the name of what tells a parent of its child's end; no event that anybody sends has it."""
MOST = 8
"""Addresses of one run. Calls that meet one run may each bring theirs; a loop of them must not fill a row."""
ENDED = frozenset({"done", "failed", "cancelled"})


def told_as(program: str, run: str) -> str:
    """The name under which a parent hears of its child's end."""
    return f"{program}/{run}"


def child_of(name: str) -> tuple[str, str]:
    """The program and the run that such a name is of."""
    program, _, run = name.partition("/")
    return program, run


def told(state: State, facts: Sequence[Fact]) -> list[Owed]:
    """What these facts owe to those who want to hear of the run's end, its limit too; nothing unless they end it."""
    if not state.callbacks and state.limit is None and state.status:
        return []
    after = state
    for fact in facts:
        after = evolve(after, fact)
    leaving = [place(after, leaves=True)] if state.limit is not None and state.status != "parked" else []
    if not after.callbacks or after.status not in ENDED:
        return leaving
    receipt = Raw(canonical(receipt_of(picture(after)).to_json()))
    return [*leaving, *(_owed(after, n, url, receipt) for n, url in enumerate(after.callbacks))]


def place(state: State, *, leaves: bool = False, at: datetime | None = None) -> Owed:
    """What a run owes to its limit: that it wants to begin, not before `at`, or that it leaves its place."""
    id = f"{state.run}/{state.round}"
    since = state.updated_at if state.round else state.begins
    body = Place(id, state.program, state.limit or "", state.run, state.principal, state.priority, since, leaves)
    return Owed(LIMIT, f"{'leave' if leaves else 'place'}/{state.round}", body, at=at)


def orphans(state: State, names: Iterable[str]) -> list[Owed]:
    """The end of children, by the names under which they would tell of theirs."""
    owed = []
    for name in dict.fromkeys(names):
        program, run = child_of(name)
        owed.append(Owed(CHILD, f"orphan/{run}", Orphan(program, run, f"{state.run}, which began it, has ended")))
    return owed


def children(state: State) -> list[str]:
    """Those that this run waits for."""
    return [wait.name for wait in state.open.values() if wait.kind == "child"]


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
