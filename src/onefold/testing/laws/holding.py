"""testing.laws.holding - the five laws of a module, each over one history.

For: purity, totality, replay, dedupe and round trips, each found by the law that is named for it.
Never: what another law finds: a module with one fault breaks one law, so that its name says what to mend.
Was wrong once: one comparison for all. A fact that its codec changed was reported as an impure evolve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from onefold.kernel.twice import Impure, differing, picture, twice
from onefold.terms.errors import OnefoldError
from onefold.terms.ids import check_text
from onefold.terms.typed import Codec, codec_of
from onefold.testing.laws.play import AnyModule, Fault, History, Move, Turn, play
from onefold.testing.laws.samples import samples
from onefold.testing.laws.trying import Tried, tried

__tracebackhide__ = True  # a failing test shows the test's own lines

LATER = timedelta(milliseconds=7)  # not a round one: a key cut to a second would still be made from the clock
SHOWN = 200


class LawBroken(AssertionError):
    """A law that a module or a cell breaks. law: its name."""

    def __init__(self, law: str, module: str, why: str, what: str = "module") -> None:
        self.law = law
        super().__init__(f"{what} {module!r} breaks {law}: {why}")


@dataclass(frozen=True, slots=True)
class Law:
    """One law. `broken(module, plan, history)` gives a sentence for each way in which a plan's history breaks it."""

    name: str
    says: str
    broken: Callable[[AnyModule, Sequence[Move], History], Iterator[str]]

    def hold(self, module: AnyModule, plan: Sequence[Move], history: History) -> None:
        """Raises: LawBroken."""
        why = next(self.broken(module, plan, history), None)
        if why is not None:
            what = "cell" if module.room == "cells" else "module"
            raise LawBroken(self.name, module.name, f"{why}. The law: {self.says}", what)


def _pure(module: AnyModule, plan: Sequence[Move], history: History) -> Iterator[str]:
    doubled = twice(module)
    again = play(doubled, plan)
    found = [fault.raised for fault in again.faults]
    found += [raised for turn in again.turns if (raised := tried(doubled.view, turn.after).raised) is not None]
    yield from (f"{raised.function} {raised.difference}" for raised in found if isinstance(raised, Impure))


def _total(module: AnyModule, plan: Sequence[Move], history: History) -> Iterator[str]:
    for fault in history.faults:
        if not fault.codec:
            yield f"{fault.function} raised {_told(fault.raised)} on {shown(fault.told)}"
    for turn in history.turns:
        raised = tried(module.view, turn.after).raised
        if raised is not None:
            yield f"view raised {_told(raised)} on {shown(turn.after)}"
    yield from _snapshots_made(module, history)
    met = {type(fact) for turn in history.turns for fact in turn.facts}
    for fact in samples(module, met):
        evolved = tried(module.evolve, module.initial, fact)  # what else it raises may be of a state that never is
        if isinstance(evolved.raised, AssertionError):
            yield f"evolve raised {_told(evolved.raised)} on {shown(fact)}"
        elif evolved == Tried(None, None) and module.initial is not None:
            yield f"evolve gave None for {shown(fact)}: a case is missing"


def _snapshots_made(module: AnyModule, history: History) -> Iterator[str]:
    """A snapshot is asked of every state that a fact has led to."""
    for actor in history.actors.values():
        begun = False
        for turn in actor.turns:
            begun = begun or bool(turn.facts)
            if begun and module.snapshot is not None:
                raised = tried(module.snapshot, turn.after).raised
                if raised is not None:
                    yield f"snapshot raised {_told(raised)} on {shown(turn.after)}"


def _replayed(module: AnyModule, plan: Sequence[Move], history: History) -> Iterator[str]:
    for actor in history.actors.values():
        state = module.initial
        for turn in actor.turns:
            for fact in turn.facts:
                state = module.evolve(state, fact)
            changed = differing(picture(turn.after), picture(state))
            if changed is not None:
                yield f"the same facts, read again, gave another state: {changed}"
                return
        if actor.turns and actor.fault is None:
            yield from _from_snapshots(module, actor.turns)


def _from_snapshots(module: AnyModule, turns: Sequence[Turn]) -> Iterator[str]:
    """From a snapshot at any point the later facts must lead to the same state, and the same decision."""
    if module.snapshot is None:
        return
    begun = False
    for at, turn in enumerate(turns):
        begun = begun or bool(turn.facts)
        if not begun:
            continue  # the kernel asks for none of an actor that has only declined: there is nothing to keep
        kept = _kept(module, turn)
        if kept is None:
            return  # totality's or the round trip's to tell
        read = tried(module.evolve, module.initial, kept)
        if read.raised is not None:
            yield f"evolve raised {_told(read.raised)} on the snapshot {shown(kept)}"
            return
        state = read.value
        changed = differing(picture(turn.after), picture(state))
        if changed is not None:
            yield f"the state of the snapshot {shown(kept)} is another: {changed}"
            return
        if at + 1 < len(turns):
            again = turns[at + 1]
            anew = tried(again.decide, state, again.now)
            if anew.raised is not None:
                yield f"on {shown(again.what)} the state of a snapshot raised {_told(anew.raised)}"
                return
            decided, first = picture(anew.value), picture(again.decide(turn.after, again.now))
            if picture(again.decision) != first:
                return  # purity's to tell
            changed = differing(first, decided)
            if changed is not None:
                yield f"on {shown(again.what)} the state of a snapshot decides otherwise: {changed}"
                return


def _kept(module: AnyModule, turn: Turn) -> Any:
    """The snapshot of the state after a turn, as it comes back; None where none could be made or written."""
    made = tried(module.snapshot, turn.after) if module.snapshot is not None else Tried(None, None)
    if made.raised is not None or made.value is None:
        return None
    sealed = tried(module.codecs.fact.seal_many, [made.value])
    return None if sealed.raised is not None else sealed.value[1][0]


def _deduped(module: AnyModule, plan: Sequence[Move], history: History) -> Iterator[str]:
    for event in history.events:
        yield from _known_again(module, event)
    for actor in history.actors.values():
        owed: dict[str, bytes] = {}
        for turn in actor.turns:
            yield from _keys_stay(turn)
            for item in turn.decision.owed:
                body = item.port.encode() + b"\0" + codec_of(type(item.body)).encode(item.body)
                if owed.setdefault(item.key, body) != body:
                    yield f"the key {item.key!r} was owed twice, with other bytes the second time"


def _known_again(module: AnyModule, event: Any) -> Iterator[str]:
    """The same event from the wire must have the same id and actor."""
    try:
        come = module.codecs.event.decode(module.codecs.event.encode(event))
    except (OnefoldError, TypeError, ValueError):
        return  # the round trip's to tell
    for name, function in (("event_id", module.event_id), ("key", module.key)):
        first, then = tried(function, event), tried(function, come)
        if first.raised is not None or then.raised is not None:
            continue  # totality tells of it
        refused = tried(check_text, first.value, name).raised
        if refused is not None:
            yield f"{name} of {shown(event)} is no key: {refused}"
        elif first.value != then.value:
            yield f"{name} of {shown(event)} was {first.value!r}, and {then.value!r} when it came again"


def _keys_stay(turn: Turn) -> Iterator[str]:
    """What is owed a moment later must be owed under the same keys: they are how a repeat is known."""
    if not turn.decision.owed:
        return
    later = tried(turn.decide, turn.before, turn.now + LATER)
    if later.raised is not None:
        return
    first, then = turn.decision.owed, later.value.owed
    if [item.port for item in first] == [item.port for item in then]:
        for item, other in zip(first, then, strict=True):
            if item.key != other.key:
                yield f"on {shown(turn.what)} the key owed to {item.port!r} is {item.key!r}, and {other.key!r} 7 ms later"


def _written(module: AnyModule, plan: Sequence[Move], history: History) -> Iterator[str]:
    codecs = module.codecs
    yield from (f"a fact could not be written: {_told(fault.raised)}" for fault in history.faults if fault.codec)
    for event in history.events:
        yield from _round("event", codecs.event, event)
    for turn in history.turns:
        for fact in turn.decision.facts:
            yield from _round("fact", codecs.fact, fact)
        if module.snapshot is not None and turn.facts:
            made = tried(module.snapshot, turn.after)
            if made.raised is None:
                yield from _round("snapshot", codecs.fact, made.value)
        if turn.told == "event":
            yield from _round("reply", codecs.reply, turn.decision.reply)
        elif turn.told == "answer" and module.answer_body is not None:
            yield from _round("answer", module.answer_body, turn.what.body)
        for item in turn.decision.owed:
            yield from _round(f"body owed to {item.port}", codec_of(type(item.body)), item.body)
        yield from _round("view", codecs.view, module.view(turn.after))


def _round(what: str, codec: Codec[Any], value: Any) -> Iterator[str]:
    back = tried(lambda: codec.decode(codec.encode(value)))
    if back.raised is not None:
        yield f"the {what} {shown(value)} could not be written and read: {_told(back.raised)}"
    else:
        changed = differing(picture(value), picture(back.value))
        if changed is not None:
            yield f"the {what} {shown(value)} came back otherwise: {changed}"


def _told(raised: BaseException) -> str:
    return f"{type(raised).__name__}: {raised}"


def shown(value: Any) -> str:
    """A value in a sentence."""
    told = repr(value)
    return told if len(told) <= SHOWN else f"{told[: SHOWN - 1]}…"


LAWS = (
    Law("purity", "the same arguments give the same answer, and stay as they were", _pure),
    Law("totality", "every event is answered, and evolve takes every fact of its type", _total),
    Law("replay", "the facts alone, also from a snapshot on, give the state and its decisions", _replayed),
    Law("dedupe", "what comes again is known by its id, and what is owed again by its key", _deduped),
    Law("round trips", "events, facts, replies, views and bodies come back as they were written", _written),
)

__all__ = ["LAWS", "Fault", "History", "Law", "LawBroken"]
