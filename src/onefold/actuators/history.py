"""actuators.history - a run as it is taken along, to be replayed elsewhere.

For: what a replay needs of a run and its journal's rows do not show, as JSON, and the state read back from both.
Never: a value twice: what a row of the journal shows stands there alone.
Was wrong once: replaying from the rows alone. They have no arguments, and a step that was given others passed for the
same one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from onefold.actuators.parts import NULL
from onefold.actuators.state import Journal, Kept, Open, State
from onefold.actuators.words import Entry
from onefold.terms.codec import canonical
from onefold.terms.errors import BadArguments, Fault

_SHOWN = {"StepDone": "result", "EventTaken": "body"}


class Told(msgspec.Struct, omit_defaults=True):
    """What stands beside the rows."""

    run_id: str
    program: str
    status: str
    input: Raw = NULL
    key: str | None = None
    principal: str | None = None
    seed: str | None = None
    begins: int = 0
    round: int = 0
    entries: list[Entry] = []
    open: list[Open] = []
    kept: list[Kept] = []
    returned: list[str] = []


def history_of(state: State) -> dict[str, Any]:
    """A run whose values are all there, beside the rows of its journal (see `journal.rows`)."""
    told = Told(
        state.run,
        state.program,
        state.status,
        state.input,
        state.key,
        state.principal,
        state.seed,
        state.begins,
        state.round,
        list(state.journal),
        list(state.open.values()),
        list(state.kept),
        sorted(state.returned),
    )
    written: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(told))
    for entry in written.get("entries", ()):
        entry.pop(_SHOWN.get(entry["type"], ""), None)
    return written


def state_of(history: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> State:
    """The run as it stood, going on. Raises: BadArguments for what `history_of` did not write."""
    entries = history.get("entries", [])
    if not isinstance(entries, list):
        raise BadArguments([Fault("history", "is none: its acts are a list")])
    if len(entries) != len(rows):
        raise BadArguments([Fault("history", f"is of {len(entries)} acts, and the journal has {len(rows)}")])
    if not all(isinstance(each, Mapping) for each in (*entries, *rows)):
        raise BadArguments([Fault("history", "is none: each of its acts is an object, and so is each row")])
    whole = []
    for entry, row in zip(entries, rows, strict=True):
        shown = _SHOWN.get(str(entry.get("type")))
        whole.append(entry if shown is None else {**entry, shown: row.get("result")})
    try:
        told = msgspec.json.decode(canonical({**history, "entries": whole}), type=Told)
    except msgspec.ValidationError as fault:
        raise BadArguments([Fault("history", f"is none of this version: {fault}")]) from None
    return State(
        status="running",
        run=told.run_id,
        program=told.program,
        key=told.key,
        principal=told.principal,
        seed=told.seed,
        input=told.input,
        begins=told.begins,
        round=told.round,
        journal=Journal(told.entries, len(told.entries)),
        open={wait.call: wait for wait in told.open},
        kept=tuple(told.kept),
        returned=frozenset(told.returned),
    )
