"""actuators.module - what an event, an answer or the alarm changes about a run.

For: the pure decisions of one run.
Never: reads a clock, chance or the world; runs the function (executing does); knows a person's code.
Was wrong once: the next pass owed by whoever committed an entry. Two entries in one commit owed two
passes of one run at once. Now a pass is owed when an entry lands and none is outstanding.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from onefold.actuators.approving import decided
from onefold.actuators.carried import (
    Ask,
    Change,
    Diverged,
    PassEnded,
    Progress,
    Raised,
    Rested,
    Returned,
    RunPass,
    Stuck,
    Uncertain,
)
from onefold.actuators.ending import MARK, children, followed, orphans, place, told
from onefold.actuators.folding import WAKING, evolve
from onefold.actuators.parts import Asking, Wait
from onefold.actuators.receipt import Picture, picture
from onefold.actuators.state import GOING, INITIAL, OPEN, Kept, State
from onefold.actuators.words import (
    Admit,
    Admitted,
    Begins,
    Begun,
    Cancel,
    CancelledFor,
    Changed,
    Decided,
    Event,
    EventBack,
    EventKept,
    EventTaken,
    Fact,
    FailedFor,
    Finished,
    Follow,
    Fork,
    Noted,
    Over,
    Parked,
    PassOver,
    Progressed,
    Reopen,
    Reopened,
    Reply,
    Sent,
    Start,
    Started,
    StepAgain,
    StepDone,
    StepFell,
    Stepped,
    StepTrying,
    Trying,
    WaitDue,
    Waiting,
    WaitOpened,
    WaitReleased,
)
from onefold.kernel.module import Module
from onefold.kernel.words import NOTHING, Answer, Decision, Dropped, Owed
from onefold.terms.instant import down, moment

TOLD = ("event", "child")
"""The kinds of wait that something sent ends."""
RING = 1_000
"""Waits one ring of the alarm ends: about 150 KB of facts, of the megabyte that a row may have."""


def decide(state: State, event: Event, now: datetime) -> Decision[Fact, Reply]:
    at = down(now)
    match event:
        case Stepped():
            return _stepped(state, event, at)
        case Waiting(waits=waits, released=released, unread=unread):
            facts, owed = _waits(state, waits, released, unread, at) if state.status in GOING else ([], [])
            return _woken(state, facts, owed)
        case Trying(call=call, attempt=attempt):
            return _woken(state, [StepTrying(call, attempt, at)] if state.status in GOING else [], [])
        case Start():
            return _start(state, event, at)
        case Fork():
            return _fork(state, event)
        case Sent():
            return _sent(state, event, at)
        case Decided():
            facts, verdict = decided(state, event, at)
            return _woken(state, facts, [], reply=verdict)
        case Cancel(reason=reason):
            return _cancel(state, reason, at)
        case Reopen():
            return _reopen(state, at)
        case _:
            return _besides(state, event, at)


def _besides(state: State, event: Follow | Admit | Change | Progress, at: int) -> Decision[Fact, Reply]:
    """What is no act of the function, and no wait of it."""
    match event:
        case Admit():
            return _admit(state, at)
        case Change(places=places):
            return _woken(state, [Changed(at, places)] if state.status in GOING else [], [])
        case Progress(n=n, message=message, done=done, of=of):
            return _woken(state, [Progressed(at, n, message, done, of)] if state.status in GOING else [], [])
        case Follow():
            return followed(state, event, at)


def on_answer(state: State, answer: Answer[PassEnded | Dropped | None], now: datetime) -> Decision[Fact, Reply]:
    """A pass ended. Answers of other ports (a notice was sent) change nothing; a dropped pass parks the run."""
    if answer.port != "pass" or state.status not in GOING or answer.key != f"pass/{state.passes}":
        return NOTHING
    at = down(now)
    body = answer.body
    if isinstance(body, Rested):
        facts, owed = _waits(state, body.waits, body.released, body.unread, at)
        over = PassOver(state.passes, body.seen, at)
        return _woken(state, [over, *facts], owed, unseen=len(state.journal) > body.seen, passing=False)
    fact = _end(body, at)
    if fact is None:
        return NOTHING
    left = [] if type(fact) is Parked else [*children(state), *getattr(body, "children", ())]
    return Decision(facts=[fact], owed=[*told(state, [fact]), *orphans(state, left)], reply=None)


def _end(body: PassEnded | Dropped | None, at: int) -> Fact | None:
    match body:
        case Returned(result=result):
            return Finished(at, result)
        case Raised(trouble=trouble):
            return FailedFor(at, trouble)
        case Diverged(expected=expected, found=found):
            cause = f"Its code no longer does what its journal holds: expected {expected}, found {found}."
            return Parked("diverged", cause, at, expected, found)
        case Stuck(tasks=tasks):
            cause = f"Its tasks wait for each other and nothing outside can wake them: {', '.join(tasks)}."
            return Parked("stuck", cause, at)
        case Uncertain(step=step, why=why):
            cause = f"Step {step!r} may or may not have acted ({why}), and its port cannot be asked. Look, then retry or cancel."
            return Parked("uncertain", cause, at)
        case Dropped(reason=reason):
            return Parked("dropped", f"A person dropped its pass: {reason}.", at)
        case Rested() | None:
            return None


def on_alarm(state: State, now: datetime) -> Decision[Fact, Reply]:
    """What is due becomes an entry, soonest first. More than RING of them ring again."""
    if state.status not in GOING:
        return NOTHING
    at = down(now)
    facts: list[Fact] = []
    for until, call in state.agenda[:RING]:
        if until > at:
            break
        wait = state.open[call]
        if wait.kind == "retry":
            facts.append(StepAgain(call, wait.name, wait.digest, at))
        else:
            facts.append(WaitDue(call, wait.name, wait.digest, at, until))
    return _woken(state, facts, [])


def wake(state: State) -> datetime | None:
    return moment(state.agenda[0][0]) if state.agenda and state.status in GOING else None


def view(state: State) -> Picture:
    return picture(state)


# --- the parts of decide --------------------------------------------------------------------------


def _pass(state: State, n: int) -> Owed:
    return Owed("pass", f"pass/{n}", RunPass(state.run, n))


def _woken(
    state: State,
    facts: list[Fact],
    owed: list[Owed],
    *,
    unseen: bool = False,
    passing: bool | None = None,
    reply: Reply = None,
) -> Decision[Fact, Reply]:
    """The decision, with the next pass owed if an entry landed and no pass is outstanding."""
    if not facts:
        return NOTHING if reply is None else Decision(reply=reply)
    outstanding = state.passing if passing is None else passing
    if (
        not outstanding
        and not state.held
        and state.status in GOING
        and (unseen or any(type(fact) in WAKING for fact in facts))
    ):
        owed = [*owed, _pass(state, state.passes + 1)]
    return Decision(facts=facts, owed=owed, reply=reply)


def _start(state: State, event: Start, at: int) -> Decision[Fact, Reply]:
    if state.status:
        return Decision(reply=Begun(state.run))
    begins = at + event.after if event.after else None
    fact = Started(
        event.run,
        event.program,
        at,
        event.input,
        event.key,
        event.principal,
        event.dedupe,
        begins=begins,
        callback=event.callback,
        limit=event.limit,
        priority=event.priority,
    )
    begun = Begun(event.run, event.nonce)
    if event.over:
        both: list[Fact] = [fact, Finished(at, event.result)]
        return Decision(facts=both, owed=told(state, both) if event.callback else [], reply=begun)
    first = None if begins is None else moment(begins)
    if event.limit is not None:
        return Decision(facts=[fact], owed=[place(evolve(state, fact), at=first)], reply=begun)
    return Decision(facts=[fact], owed=[Owed("pass", "pass/1", RunPass(event.run, 1), at=first)], reply=begun)


def _admit(state: State, at: int) -> Decision[Fact, Reply]:
    if not state.held or state.status not in GOING:
        return Decision(reply=Begins(yes=False))
    return Decision(facts=[Admitted(at)], owed=[_pass(state, state.passes + 1)], reply=Begins(yes=True))


def _fork(state: State, event: Fork) -> Decision[Fact, Reply]:
    """A run that begins with what another did; its first pass goes over that, and on from there."""
    if state.status:
        return Decision(reply=Begun(state.run))
    run = event.started.run
    facts: list[Fact] = [event.started, *event.facts]
    return Decision(facts=facts, owed=[Owed("pass", "pass/1", RunPass(run, 1))], reply=Begun(run, event.nonce))


def _cancel(state: State, reason: str | None, at: int) -> Decision[Fact, Reply]:
    if state.status not in OPEN:
        return Decision(reply=Over(state.status, changed=False))
    over = CancelledFor(at, reason)
    owed = [*told(state, [over]), *orphans(state, children(state))]
    return Decision(facts=[over], owed=owed, reply=Over("cancelled", changed=True))


def _reopen(state: State, at: int) -> Decision[Fact, Reply]:
    if state.status not in ("failed", "parked"):
        return Decision(reply=Over(state.status, changed=False))
    fact = Reopened(at)
    again = _pass(state, state.passes + 1) if state.limit is None else place(evolve(state, fact))
    return Decision(facts=[fact], owed=[again], reply=Over("running", changed=True))


def _stepped(state: State, event: Stepped, at: int) -> Decision[Fact, Reply]:
    if state.status not in OPEN:
        return NOTHING
    fact: Fact
    if event.trouble is None:
        fact = StepDone(event.call, event.name, event.digest, at, event.attempt, event.result)
    else:
        until = None if event.again_after is None else at + event.again_after
        fact = StepFell(event.call, event.name, event.digest, at, event.attempt, event.trouble, until)
    if state.passing:
        return Decision(facts=(fact,), reply=None)
    return _woken(state, [fact], [])


def _waits(
    state: State, waits: tuple[Wait, ...], released: tuple[str, ...], unread: tuple[str, ...], at: int
) -> tuple[list[Fact], list[Owed]]:
    """Facts and notices for new waits. What is due already, or was sent before, ends its wait at once."""
    facts: list[Fact] = [WaitReleased(call, at) for call in released if call in state.open]
    gone = (state.open.get(call) for call in released)
    owed = orphans(state, [wait.name for wait in gone if wait is not None and wait.kind == "child"])
    back = _given_back(state, unread, at)
    facts.extend(back)
    kept = [*(Kept(fact.name, fact.body) for fact in reversed(back)), *state.kept]
    for wait in waits:
        if wait.call in state.open:
            continue
        until = wait.until if wait.after is None else at + wait.after
        facts.append(WaitOpened(wait.call, wait.kind, wait.name, wait.digest, at, until, wait.asking))
        early = next((event for event in kept if event.name == wait.name), None) if wait.kind in TOLD else None
        if early is not None:
            kept.remove(early)
            facts.append(EventTaken(wait.call, wait.name, wait.digest, at, early.body, kept=True))
        elif until is not None and until <= at:
            facts.append(WaitDue(wait.call, wait.name, wait.digest, at, until))
        elif wait.asking is not None:
            owed.append(_ask(state, wait, wait.asking, at, until))
    facts.extend(_taken_back(state, released, back, kept, at))
    return facts, owed


def _given_back(state: State, unread: tuple[str, ...], at: int) -> list[EventBack]:
    """Events that reached a cancelled call, once each, the latest first: each goes before those it is before."""
    calls = set(unread) - state.returned
    taken = [entry for entry in state.journal if isinstance(entry, EventTaken) and entry.call in calls] if calls else []
    return [EventBack(entry.call, entry.name, at, entry.body) for entry in reversed(taken)]


def _taken_back(
    state: State, released: tuple[str, ...], back: list[EventBack], kept: list[Kept], at: int
) -> list[Fact]:
    """An event given back goes to a wait that is open already, if there is one."""
    facts: list[Fact] = []
    waiting = [w for w in state.open.values() if w.kind in TOLD and w.call not in released] if back else []
    for wait in waiting:
        event = next((event for event in kept if event.name == wait.name), None)
        if event is not None:
            kept.remove(event)
            facts.append(EventTaken(wait.call, wait.name, wait.digest, at, event.body, kept=True))
    return facts


def _ask(state: State, wait: Wait, asking: Asking, at: int, until: int | None) -> Owed:
    body = Ask(
        run=state.run,
        program=state.program,
        call=wait.call,
        name=wait.name,
        message=asking.message,
        notify=asking.notify,
        since=at,
        until=until,
        shown=state.input,
        principal=state.principal,
        offer=asking.offer,
        need=asking.need,
    )
    return Owed("notify", f"notify/{state.round}/{wait.call}", body)


def _sent(state: State, event: Sent, at: int) -> Decision[Fact, Reply]:
    if state.status not in OPEN and not (state.status == "failed" and MARK in event.name):  # it may be tried again
        return Decision(reply=Noted("over", state.status))
    for wait in state.open.values():
        if wait.kind in TOLD and wait.name == event.name:
            taken = EventTaken(wait.call, wait.name, wait.digest, at, event.body)
            return _woken(state, [taken], [], reply=Noted("taken", state.status))
    return Decision(facts=[EventKept(event.name, at, event.body)], reply=Noted("kept", state.status))


RunModule = Module[State, Event, Fact, Reply, Picture]


class _Runs(RunModule):
    """A module whose actors are runs: they stop by name."""

    def stops(self, facts: Sequence[Fact]) -> str | None:
        last = facts[-1] if facts else None
        return last.cause if type(last) is Parked else None


def _key(event: Event) -> str:
    """The run an outside event is for. What a pass tells its own run needs no address."""
    return event.run if isinstance(event, Start | Sent | Decided | Cancel | Reopen | Follow | Admit) else ""


def module_of(name: str) -> RunModule:
    """The module of one actuator's runs: its kind is the actuator's name, its key the run's id."""
    module = _Runs(
        name,
        initial=INITIAL,
        key=_key,
        decide=decide,
        evolve=evolve,
        view=view,
        on_answer=on_answer,
        on_alarm=on_alarm,
        wake=wake,
    )
    module.own_words = True
    return module
