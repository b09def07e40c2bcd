"""actuators.carried - what a run owes, what a pass tells it, and how a pass ended.

For: the bodies of the ports `pass`, `notify`, `run.ended`, `run.limit` and `run.orphan`, what a pass
tells its run besides its steps, and the answers of a pass.
Never: a fact; behaviour.
Was wrong once: a receipt made when it was sent. The run had been tried again meanwhile, and the receiver was told of
an end that was none.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Raw

from onefold.actuators.parts import NULL, Trouble, Wait, Word


class RunPass(Word, frozen=True):
    """Body of the port `pass`: replay the run this row belongs to."""

    run: str
    n: int


class Ask(Word, frozen=True):
    """Body of the port `notify`: people are asked. `call` binds the answer to this wait.

    shown: the run's input. offer: what they may edit, or null. need: how many must agree.
    """

    run: str
    program: str
    call: str
    name: str
    message: str
    notify: tuple[str, ...]
    since: int
    until: int | None = None
    shown: Raw = NULL
    principal: str | None = None
    offer: Raw = NULL
    need: int = 1


class Place(Word, frozen=True):
    """Body of the port `run.limit`: this run wants to begin, or leaves its place. group: of those that agree on `per`.
    since: when it came (ms).
    """

    id: str
    program: str
    group: str
    run: str
    principal: str | None = None
    priority: int = 0
    since: int = 0
    leaves: bool = False


class Callback(Word, frozen=True):
    """Body of the port `run.ended`: the receipt, as JSON, for one address. told: which end of which run this is."""

    url: str
    told: str
    receipt: Raw = NULL


class Orphan(Word, frozen=True):
    """Body of the port `run.orphan`: this run goes no longer than the one that began it."""

    program: str
    run: str
    reason: str | None = None


class Change(Word, frozen=True):
    """The function passed places where it asks which code it is, `path#call:change`, and goes by the new one from there."""

    places: tuple[str, ...]


class Progress(Word, frozen=True):
    """The `n`-th thing that the function tells of how far it is."""

    n: int
    message: str
    done: int | float | None = None
    of: int | float | None = None


class Returned(Word, frozen=True):
    """children: names of those that were begun and not waited for."""

    seen: int
    result: Raw = NULL
    children: tuple[str, ...] = ()


class Raised(Word, frozen=True):
    seen: int
    trouble: Trouble
    children: tuple[str, ...] = ()


class Rested(Word, frozen=True):
    """Every task waits. `seen` entries were handed out; the rest as in Waiting."""

    seen: int
    waits: tuple[Wait, ...] = ()
    released: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


class Diverged(Word, frozen=True):
    """Replay met something else than the journal holds."""

    seen: int
    expected: str
    found: str


class Stuck(Word, frozen=True):
    """Every task waits for another task of the same pass, and nothing outside can wake any."""

    seen: int
    tasks: tuple[str, ...] = ()


class Uncertain(Word, frozen=True):
    """A port that can neither dedupe nor be asked may or may not have acted."""

    seen: int
    step: str
    why: str


PassEnded: TypeAlias = Returned | Raised | Rested | Diverged | Stuck | Uncertain
