"""testing.stuck - what a test is told when its app cannot go on, or was left in the middle.

For: `Stuck`, which names the wait and what would end it, and `Unsettled`, which names what was left.
Never: ends a wait itself: only the test knows whether time or a person should.
Was wrong once: moving the clock until the call came back. Every approval of every test expired, and passed.
"""

from __future__ import annotations

from collections.abc import Sequence

from onefold.actuators.ending import child_of
from onefold.actuators.receipt import Receipt, WaitShown
from onefold.host.caller import ALL, Caller
from onefold.host.host import Host
from onefold.terms.errors import NotFound
from onefold.terms.instant import text

WAYS = {
    "approval": "app.approve(receipt, {name!r}, by=…) or app.reject(…)",
    "event": "receipt.send({name}(…))",
    "sleep": "app.clock.advance(…)",
    "retry": "app.clock.advance(…)",
    "child": "the end of that run",
}


class Stuck(AssertionError):
    """A call that only time or a person could finish. The run goes on as before."""


class Unsettled(AssertionError):
    """What a test left behind. left: one sentence each."""

    def __init__(self, left: Sequence[str]) -> None:
        self.left = tuple(left)
        super().__init__(f"the test ended and left {'; '.join(left)}")


async def stuck(host: Host, run_id: str) -> str:
    """What the run waits for, and what would end it."""
    shown = await host.receipt(run_id, caller=Caller(None, ALL, "test"))
    told = [f"{shown.program} ({run_id}) {_waits(host, shown)}"]
    told += [await stuck(host, child_of(wait.name)[1]) for wait in shown.waits if wait.kind == "child"]
    return ". ".join(told)


def _waits(host: Host, shown: Receipt) -> str:
    told = [_wait(wait) for wait in shown.waits] or [_nothing(host, shown)]
    return f"waits for {'; and for '.join(told)}"


async def unasked(host: Host, run_id: str, name: str, missing: NotFound) -> AssertionError | NotFound:
    """What a test is told that decides an approval which its run does not ask for: Stuck while the run goes on."""
    try:
        shown = await host.receipt(run_id, caller=Caller(None, ALL, "test"))
    except NotFound:
        return missing
    if shown.status not in ("running", "waiting"):
        missing.add_note(f"{shown.program} ({run_id}) is {shown.status}, and asked for no approval {name!r}.")
        return missing
    return Stuck(f"{shown.program} ({run_id}) asks for no approval {name!r} now. It {_waits(host, shown)}")


def _wait(wait: WaitShown) -> str:
    until = "" if wait.until is None else f" until {text(wait.until)}"
    what = f"{wait.kind} {wait.name!r}" if wait.kind != "sleep" else wait.kind
    why = f" ({wait.message})" if wait.message else ""
    way = WAYS.get(wait.kind, "app.clock.advance(…)").format(name=wait.name)
    return f"{what}{until}{why}. What ends it: {way}"


def _nothing(host: Host, shown: Receipt) -> str:
    due = host.next_due
    return (
        f"its next alarm{'' if due is None else f' at {text(due)}'}, {shown.status}. What ends it: app.clock.advance(…)"
    )
