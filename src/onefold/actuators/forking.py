"""actuators.forking - which facts of a run begin another that goes on from one of its steps. Pure.

For: the prefix of a journal before a step, and what of a run's facts goes with it.
Never: an act of a step that goes along; a wait that had not ended there (the new run opens it anew, and asks anew).
Was wrong once: every fact before the step. A call cut in the middle went along with its failed tries, and an
approval whose notice named the other run waited for a decision that could only reach that one.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from onefold.actuators.state import State
from onefold.actuators.words import (
    ENTRIES,
    Approval,
    Changed,
    Entry,
    EventBack,
    EventKept,
    EventTaken,
    Fact,
    Rejection,
    Seconded,
    Started,
    StepDone,
    StepFell,
    WaitDue,
    WaitOpened,
)
from onefold.terms.errors import BadArguments, Fault


def call_of(entries: Sequence[Entry], step: str) -> str:
    """The call that `step` names: `path#k`, or a step's name where one call has it. Raises: BadArguments."""
    calls = dict.fromkeys(entry.call for entry in entries if step in (entry.call, entry.name))
    if len(calls) == 1:
        return next(iter(calls))
    if calls:
        told = f"was called {len(calls)} times; name one of {', '.join(calls)}"
    else:
        names = ", ".join(dict.fromkeys(entry.name for entry in entries)) or "none yet"
        told = f"is no step of this run; it has {names}"
    raise BadArguments([Fault("from", told, step)], nothing_was="forked")


def prefix(facts: Sequence[Fact], state: State, step: str) -> tuple[Fact, ...]:
    """The facts of a run that another begins with when it goes on from `step`; `state` is after all of them. Raises:
    BadArguments.

    Entries that a retry of the run took back are no part of its journal, and not of the prefix.
    """
    journal = list(state.journal)
    call = call_of(journal, step)
    cut = next(place for place, entry in enumerate(journal) if entry.call == call)
    before, ended = journal[:cut], {entry.call for entry in journal[:cut] if _ends(entry)}
    kept: list[Fact] = []
    place = 0
    for fact in facts:
        if isinstance(fact, ENTRIES):
            if fact == journal[place]:
                if place == cut:
                    break
                place += 1
                if fact.call in ended:
                    kept.append(fact)
        elif isinstance(fact, EventKept | EventBack | Changed) or (
            isinstance(fact, WaitOpened | Seconded) and fact.call in ended
        ):
            kept.append(fact)
    assert place == len(before)
    return tuple(kept)


def begun(source: Started, run: str, key: str | None) -> Started:
    """How the new run starts: as the other one did, under an id of its own. Its clock and its chances are those
    that the steps before went by. It is told to nobody, and counts for no limit.

    Was wrong once: a limit taken along. The new run waited to be let in, and its first pass went by unheard.
    """
    free = replace(source, callback=None, limit=None, priority=0)
    return replace(free, run=run, key=key, seed=source.seed or source.run)


def _ends(entry: Entry) -> bool:
    if isinstance(entry, StepFell):
        return entry.until is None
    return isinstance(entry, StepDone | WaitDue | EventTaken | Approval | Rejection)
