"""actuators.module - what an event, an answer or the alarm changes about a run.

For: the pure decisions of one run, and the folding of their facts.
Never: reads a clock, chance or the world; runs the function (executing does); knows a person's code.
Was wrong once: the next pass owed by whoever committed an entry. Two entries in one commit owed two
passes of one run at once. Now a pass is owed when an entry lands and none is outstanding.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from onefold.actuators.folding import WAKING, evolve
from onefold.actuators.receipt import Picture, picture
from onefold.actuators.state import INITIAL, State
from onefold.actuators.words import (
    Approval,
    Ask,
    Begun,
    Cancel,
    CancelledFor,
    Decided,
    Diverged,
    Event,
    EventKept,
    EventTaken,
    Fact,
    FailedFor,
    Finished,
    Noted,
    Over,
    Parked,
    PassEnded,
    PassOver,
    Raised,
    Rejection,
    Reopen,
    Reopened,
    Reply,
    Rested,
    Returned,
    RunPass,
    Sent,
    Start,
    Started,
    StepAgain,
    StepDone,
    StepFell,
    Stepped,
    Stuck,
    Verdict,
    Wait,
    WaitDue,
    Waiting,
    WaitOpened,
    WaitReleased,
)
from onefold.kernel.module import Module
from onefold.kernel.words import NOTHING, Answer, Decision, Dropped, Owed
from onefold.terms.instant import down, moment

GOING = frozenset({"running", "waiting"})
OPEN = GOING | {"parked"}  # what a parked run is told is kept for when it goes on
ENDED = frozenset({"done", "failed", "cancelled"})


def decide(state: State, event: Event, now: datetime) -> Decision[Fact, Reply]:
    at = down(now)
    kind = type(event)
    if kind is Stepped:
        return _stepped(state, event, at)  # type: ignore[arg-type]
    match event:
        case Start():
            return _start(state, event, at)
        case Waiting(waits=waits, released=released):
            if state.status not in GOING:
                return NOTHING
            facts, owed = _waits(state, waits, released, at)
            return _woken(state, facts, owed)
        case Sent():
            return _sent(state, event, at)
        case Decided():
            return _decided(state, event, at)
        case Cancel(reason=reason):
            if state.status in ENDED or not state.status:
                return Decision(reply=Over(state.status, changed=False))
            return Decision(facts=[CancelledFor(at, reason)], reply=Over("cancelled", changed=True))
        case Reopen():
            if state.status not in ("failed", "parked"):
                return Decision(reply=Over(state.status, changed=False))
            return Decision(
                facts=[Reopened(at)], owed=[_pass(state, state.passes + 1)], reply=Over("running", changed=True)
            )
    return NOTHING


def on_answer(state: State, answer: Answer[PassEnded | Dropped | None], now: datetime) -> Decision[Fact, Reply]:
    """A pass ended. Answers of other ports (a notice was sent) change nothing; a dropped row parks the run."""
    if answer.port != "pass" or state.status not in GOING or answer.key != f"pass/{state.passes}":
        return NOTHING
    at = down(now)
    match answer.body:
        case Returned(result=result):
            return Decision(facts=[Finished(at, result)])
        case Raised(trouble=trouble):
            return Decision(facts=[FailedFor(at, trouble)])
        case Diverged(expected=expected, found=found):
            cause = f"The journal has {expected}, but the function now does {found}."
            return Decision(facts=[Parked("diverged", cause, at, expected, found)])
        case Stuck(tasks=tasks):
            cause = f"Its tasks wait for each other and nothing outside can wake them: {', '.join(tasks)}."
            return Decision(facts=[Parked("stuck", cause, at)])
        case Dropped(reason=reason):
            return Decision(facts=[Parked("dropped", f"A person dropped its pass: {reason}.", at)])
        case Rested(seen=seen, waits=waits, released=released):
            facts, owed = _waits(state, waits, released, at)
            over = PassOver(state.passes, seen, at)
            return _woken(state, [over, *facts], owed, unseen=len(state.journal) > seen, passing=False)
        case None:
            return NOTHING


def on_alarm(state: State, now: datetime) -> Decision[Fact, Reply]:
    """Everything that is due becomes an entry, soonest first."""
    if state.status not in GOING:
        return NOTHING
    at = down(now)
    facts = []
    for until, call in state.agenda:
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
    facts: list[Any],
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
    if not outstanding and state.status in GOING and (unseen or any(type(fact) in WAKING for fact in facts)):
        owed = [*owed, _pass(state, state.passes + 1)]
    return Decision(facts=facts, owed=owed, reply=reply)


def _start(state: State, event: Start, at: int) -> Decision[Fact, Reply]:
    if state.status:
        return Decision(reply=Begun(state.run))
    fact = Started(event.run, event.program, at, event.input, event.key, event.principal, event.dedupe)
    owed = Owed("pass", "pass/1", RunPass(event.run, 1))
    return Decision(facts=[fact], owed=[owed], reply=Begun(event.run, event.nonce))


def _stepped(state: State, event: Stepped, at: int) -> Decision[Fact, Reply]:
    if state.status not in OPEN:
        return NOTHING
    trouble = event.trouble
    if trouble is None:
        done = StepDone(event.call, event.name, event.digest, event.attempt, at, event.result)
        return _woken(state, [done], [])
    until = None if event.again_after is None else at + event.again_after
    fell = StepFell(event.call, event.name, event.digest, event.attempt, at, trouble, until)
    return _woken(state, [fell], [])


def _waits(state: State, waits: tuple[Wait, ...], released: tuple[str, ...], at: int) -> tuple[list[Any], list[Owed]]:
    """Facts and notices for new waits. What is due already, or was sent before, ends its wait at once."""
    facts: list[Any] = [WaitReleased(call, at) for call in released if call in state.open]
    owed: list[Owed] = []
    kept = list(state.kept)
    for wait in waits:
        if wait.call in state.open:
            continue
        until = wait.until if wait.after is None else at + wait.after
        facts.append(WaitOpened(wait.call, wait.kind, wait.name, wait.digest, at, until, wait.message, wait.notify))
        early = next((event for event in kept if event.name == wait.name), None) if wait.kind == "event" else None
        if early is not None:
            kept.remove(early)
            facts.append(EventTaken(wait.call, wait.name, wait.digest, at, early.body, kept=True))
        elif until is not None and until <= at:
            facts.append(WaitDue(wait.call, wait.name, wait.digest, at, until))
        elif wait.kind == "approval":
            owed.append(_ask(state, wait, at, until))
    return facts, owed


def _ask(state: State, wait: Wait, at: int, until: int | None) -> Owed:
    body = Ask(
        run=state.run,
        program=state.program,
        call=wait.call,
        name=wait.name,
        message=wait.message,
        notify=wait.notify,
        since=at,
        until=until,
        shown=state.input,
        principal=state.principal,
    )
    return Owed("notify", f"notify/{state.round}/{wait.call}", body)


def _sent(state: State, event: Sent, at: int) -> Decision[Fact, Reply]:
    if state.status not in OPEN:
        return Decision(reply=Noted("over", state.status))
    for wait in state.open.values():
        if wait.kind == "event" and wait.name == event.name:
            taken = EventTaken(wait.call, wait.name, wait.digest, at, event.body)
            return _woken(state, [taken], [], reply=Noted("taken", state.status))
    return Decision(facts=[EventKept(event.name, at, event.body)], reply=Noted("kept", state.status))


def _decided(state: State, event: Decided, at: int) -> Decision[Fact, Reply]:
    """One decision counts. A later one, or one after the timeout, changes nothing and says so."""
    wait = None
    if state.status in OPEN:
        wait = next((w for w in state.open.values() if w.kind == "approval" and _meant(w.call, w.name, event)), None)
    if wait is None:
        return Decision(reply=_late(state, event))
    if wait.until is not None and wait.until <= at:
        due = WaitDue(wait.call, wait.name, wait.digest, at, wait.until)
        return _woken(state, [due], [], reply=Verdict("expired", None, wait.until))
    fact: Fact
    if event.approve:
        fact = Approval(wait.call, wait.name, wait.digest, at, event.by, event.comment, event.value)
    else:
        fact = Rejection(wait.call, wait.name, wait.digest, at, event.by, event.reason or "")
    return _woken(state, [fact], [], reply=Verdict("decided", event.by, at))


def _late(state: State, event: Decided) -> Verdict:
    for call, closed in reversed(state.closed.items()):
        if _meant(call, closed.name, event):
            outcome = "already_decided" if closed.outcome in ("approved", "rejected") else closed.outcome
            return Verdict(outcome, closed.by, closed.at)  # type: ignore[arg-type]
    return Verdict("unknown")


def _meant(call: str, name: str, event: Decided) -> bool:
    return name == event.name and (event.wait is None or event.wait == call)


RunModule = Module[State, Event, Fact, Reply, Picture]


def module_of(name: str) -> RunModule:
    """The module of one actuator's runs: its kind is the actuator's name, its key the run's id."""
    return Module(
        name,
        initial=INITIAL,
        key=lambda event: event.run,
        decide=decide,
        evolve=evolve,
        view=view,
        on_answer=on_answer,
        on_alarm=on_alarm,
        wake=wake,
    )
