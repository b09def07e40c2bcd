"""store.batch - many parties, one physical commit, each answered truthfully.

For: the order ask, read, body, BEGIN, run, COMMIT; savepoints around bodies; what is tried again;
which of done, refused and unknown each party is told.
Never: awaits; knows a database (an `Engine` does); tells a party anything itself (the lane does).
Was wrong once: going on after an error because `rollback to` had not raised. A full disk had
rolled back everything before it, and the bodies after it committed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from onefold.store.contract import Answer, Append, Body, Done, Last, Outcome, Party, Refusal, Refused, Unknown, Verb
from onefold.terms.errors import Broken, Contended, OnefoldError
from onefold.terms.faults import says

AGAIN_AT_MOST = 4
# why: with one writer the second run sees what the first one met; more only helps a body that
# asks in several steps. Four keeps a body that can never pass from holding up its company.

Landing: TypeAlias = "tuple[Party, Outcome[Any]]"
Bodies: TypeAlias = "Sequence[tuple[Party, Body[Any]]]"


class Unusable(Exception):
    """The database could not do it, and certainly did not. `error` is what callers are told."""

    def __init__(self, error: OnefoldError) -> None:
        super().__init__(str(error))
        self.error = error


class Lost(Exception):
    """COMMIT was sent, and whether it happened could not be found out."""

    def __init__(self, error: OnefoldError) -> None:
        super().__init__(str(error))
        self.error = error


class Met(Exception):
    """A row met a key that another row holds, where the body does not go on from that."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table


class Fell(Exception):
    """The transaction no longer stands: nothing more is sent, the batch has failed."""

    def __init__(self, error: OnefoldError) -> None:
        super().__init__(str(error))
        self.error = error


class Engine(Protocol):
    """One writer of one database. `ready`, `begin` .. `commit` or `rollback`; `mark` .. `keep` or `back` inside."""

    def ready(self) -> None:
        """From here to `begin` or `rollback` questions are run, all of one moment; the writer is not taken yet.

        Raises: Unusable.
        """

    def begin(self) -> None:
        """Take the writer, after `ready` or without it. Raises: Unusable."""

    def run(self, verb: Verb) -> Answer:
        """Raises: Unusable, Met."""

    def mark(self) -> None:
        """Open a savepoint. This, `keep` and `back`: raises Unusable."""

    def keep(self) -> None: ...
    def back(self) -> None: ...

    def stands(self) -> bool:
        """Whether the transaction that `begin` opened is still open."""

    def commit(self) -> None:
        """Raises: Unusable (certainly not committed), Lost."""

    def rollback(self) -> None:
        """Leave the transaction, whatever state it is in. Never raises."""


def commit(engine: Engine, parties: Sequence[Party]) -> list[Landing]:
    """Ask all `parties`, and run the bodies they decide on in one physical commit. Never raises on their account.

    Returns: the outcome of each. The transaction begins when everybody has decided, and only if somebody writes.
    """
    landings, bodies = decide(engine, parties)
    return landings + write(engine, bodies) if bodies else landings


def decide(engine: Engine, parties: Sequence[Party]) -> tuple[list[Landing], Bodies]:
    """The first half of `commit`: those who are through, and the bodies of the others. The writer is not taken yet."""
    try:
        engine.ready()
        landings, bodies = _decide(engine, parties)
        if not bodies:
            engine.rollback()
        return landings, bodies
    except Exception as fault:  # noqa: BLE001 - the door: nothing is written yet, and everybody is told
        engine.rollback()
        return [(party, Refused(told(fault))) for party in parties], []
    except BaseException:
        engine.rollback()
        raise


def write(engine: Engine, bodies: Bodies) -> list[Landing]:
    """The second half: take the writer, run the bodies, COMMIT."""
    try:
        engine.begin()
    except Exception as fault:  # noqa: BLE001 - the door: as above
        engine.rollback()
        return [(party, Refused(told(fault))) for party, _ in bodies]
    except BaseException:
        engine.rollback()
        raise
    return _all(engine, bodies)


def attempt(engine: Engine, body: Body[Any], alone: bool) -> Outcome[Any]:
    """Run one body inside the open transaction. `alone` says that nobody else's writes are in it yet.

    Returns: Done (to be told after COMMIT) or Refused, with nothing of it left in the
    transaction. Raises: Fell when the transaction no longer stands.
    """
    error: OnefoldError = Contended("a key")
    for _ in range(AGAIN_AT_MOST):
        if not alone:
            engine.mark()
        again = True
        try:
            done, again = _once(engine, body)
        except Met as met:
            done, error = None, Contended(met.table)
        except Exception as fault:  # noqa: BLE001 - the door: a room's body must not take its company with it
            done, again, error = None, False, told(fault)
        if done is not None:
            if not alone:
                engine.keep()
            return done
        _take_back(engine, alone, error)
        if not again:
            break
    return Refused(error)


def _take_back(engine: Engine, alone: bool, error: OnefoldError) -> None:
    """Undo what one body wrote. Raises: Fell when there is no transaction left to undo it in."""
    if not engine.stands():
        raise Fell(error)
    if alone:
        engine.rollback()
        engine.begin()
    else:
        engine.back()


def told(fault: Exception) -> OnefoldError:
    """What a party is told about an exception: an OnefoldError as it is, anything else as Broken with its cause."""
    if isinstance(fault, Refusal | Unusable):
        return fault.error
    if isinstance(fault, OnefoldError):
        return fault
    broken = Broken(f"a transaction met {type(fault).__name__}: {says(fault)}")
    broken.__cause__ = fault
    return broken


def _decide(engine: Engine, parties: Sequence[Party]) -> tuple[list[Landing], list[tuple[Party, Body[Any]]]]:
    """Every party's questions are read before any body is made, and outside the transaction that runs them."""
    landings: list[Landing] = []
    bodies: list[tuple[Party, Body[Any]]] = []
    asked: list[tuple[Party, tuple[Answer, ...]]] = []
    for party in parties:
        try:
            asked.append((party, tuple([engine.run(q) for q in party.ask()])))
        except Exception as fault:  # noqa: BLE001 - the door: one party's question must not take the others with it
            landings.append((party, Refused(told(fault))))
    for party, answers in asked:
        try:
            body = party.body(answers)
        except Exception as fault:  # noqa: BLE001 - the door: one party's decision must not take the others with it
            landings.append((party, Refused(told(fault))))
            continue
        if body is None:
            landings.append((party, Done(None)))
        else:
            bodies.append((party, body))
    return landings, bodies


def _all(engine: Engine, bodies: Sequence[tuple[Party, Body[Any]]]) -> list[Landing]:
    """Run the bodies and COMMIT; singly when the batch fell."""
    landings: list[Landing] = []
    alone = len(bodies) == 1
    try:
        for party, body in bodies:
            landings.append((party, attempt(engine, body, alone)))
        if any(isinstance(outcome, Done) for _, outcome in landings):
            engine.commit()
        else:
            engine.rollback()
    except (Fell, Unusable) as fell:
        engine.rollback()
        if alone:
            return [(bodies[0][0], Refused(fell.error))]
        return [_singly(engine, party, body) for party, body in bodies]
    except Lost as lost:
        return [(p, Unknown(lost.error) if isinstance(o, Done) else o) for p, o in landings]
    except Exception as fault:  # noqa: BLE001 - the door: a fault of the engine itself must not leave its parties waiting
        engine.rollback()
        return [(p, Unknown(told(fault))) for p, _ in bodies]
    except BaseException:
        engine.rollback()
        raise
    return landings


def _singly(engine: Engine, party: Party, body: Body[Any]) -> Landing:
    try:
        engine.begin()
    except Exception as fault:  # noqa: BLE001 - the door: as for all together
        engine.rollback()
        return (party, Refused(told(fault)))
    return _all(engine, [(party, body)])[0]


def _once(engine: Engine, body: Body[Any]) -> tuple[Done[Any] | None, bool]:
    """One run of a body: Done, or None when its last writes met a key; and whether it asked anything.

    A body that asks nothing writes the same again, so running it again cannot help.
    """
    turn = body()
    asked = False
    last: Last[Any]
    try:
        question = next(turn)
        asked = True
        while True:
            question = turn.send(tuple([engine.run(v) for v in question]))
    except StopIteration as stop:
        last = stop.value
    answers = []
    for write in last.writes:
        answer = engine.run(write)
        if type(write) is Append and write.met == "again" and any(answer):
            return None, asked
        answers.append(answer)
    return Done(last.value, tuple(answers)), asked
