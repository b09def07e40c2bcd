"""store.postgres.together - the bodies of one physical commit, in as few round trips as what they ask allows.

For: bodies one after another, each between savepoints; what is sent in which trip; which body an error belongs to;
COMMIT and what became of it.
Never: tells a party anything (lane does); tries a batch again (engine does).
Was wrong once: a trip for each body. What a body only writes waits for nobody: it leaves with the next question, or
with COMMIT, and an error behind which nothing ran says by its place whose it was.

    begin · savepoint b · question 1        ->   answers 1
    writes 1 · release b · savepoint b · question 2   ->   answers 2
    writes 2 · release b · number, flushed · commit   ->   done

The transaction's number comes back while COMMIT waits for the disk: where the answer of COMMIT is lost, a new
connection asks by it what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onefold.store.batch import AGAIN_AT_MOST, Lost, Met, Unusable, told
from onefold.store.contract import Answer, Append, Body, Done, Last, Outcome, Refused, Unknown, Verb
from onefold.store.postgres.failing import AGAIN, MET, OTHER, faulty, is_row, is_world, unavailable
from onefold.store.postgres.plan import Call, instant
from onefold.store.postgres.wire import Gone, Statement, Stopped, Wire
from onefold.terms.errors import Contended, OnefoldError

if TYPE_CHECKING:
    from onefold.store.postgres.engine import Engine, Place

_BEGIN, _ROLLBACK = Statement(b"begin"), Statement(b"rollback")
_MARK, _KEEP, _BACK = Statement(b"savepoint b"), Statement(b"release b"), Statement(b"rollback to b")
_NUMBER = Statement(b"select pg_current_xact_id_if_assigned()::text::int8", flush=True)
_COMMIT = Statement(b"commit")


@dataclass(slots=True)
class _Sending:
    """Statements on their way. `of`: whose they are; None: the transaction's own. `call`: None for a bare statement."""

    of: _One | None
    call: Call | None
    statements: Sequence[Statement]
    results: Sequence[Any] = ()


class _One:
    """One body: its run, and what became of it."""

    __slots__ = ("asked", "body", "calls", "clocked", "last", "outcome", "place", "runs", "sent", "turn")

    def __init__(self, place: Place, body: Body[Any]) -> None:
        self.place = place
        self.body = body
        self.runs = 0
        self.sent = False  # whether something of it is in the transaction, its savepoint at least
        self.outcome: Outcome[Any] | None = None
        self.anew()

    def anew(self) -> None:
        self.turn: Generator[tuple[Verb, ...], tuple[Answer, ...], Last[Any]] | None = None
        self.asked = False
        self.clocked = False
        self.last: Last[Any] | None = None
        self.calls: list[_Sending] = []


class _Fell(Exception):
    """A statement of this body failed on the server; nothing behind it ran."""

    def __init__(self, one: _One, stopped: Stopped, table: str) -> None:
        self.one = one
        self.stopped = stopped
        self.table = table


class Together:
    """One physical commit. `sent`: whether COMMIT was."""

    def __init__(
        self, engine: Engine, bodies: Sequence[tuple[Place, Body[Any]]], failpoint: Callable[[str], None] | None
    ) -> None:
        self._engine = engine
        self._fail = failpoint
        self._ones = [_One(place, body) for place, body in bodies]
        self._alone = len(bodies) == 1
        self._out: list[_Sending] = []
        self._begun = False  # whether the transaction is open on the server
        self._spoilt = False  # whether something of a refused body is in it that no savepoint takes back
        self.sent = False

    async def run(self, *, begun: bool = False) -> list[Outcome[Any]]:
        """The outcome of each. `begun`: a transaction is open already, with another's writes in it.

        Raises: Unusable (certainly not committed), Lost.
        """
        wire = await self._engine.wire() if not begun else self._engine.lent()
        self._begun = begun
        self._alone = self._alone and not begun
        place = 0
        while True:
            try:
                while place < len(self._ones):
                    await self._body(wire, self._ones[place])
                    place += 1
                await self._end(wire)
                return [one.outcome for one in self._ones if one.outcome is not None]
            except _Fell as fell:
                place = self._ones.index(fell.one)
                for later in self._ones[place + 1 :]:
                    later.anew()
                    later.sent, later.outcome, later.runs = False, None, 0  # what it sent was not run
                if self._met(fell):
                    place += 1
            except OSError as fault:
                raise Unusable(unavailable("58")) from fault

    def lost(self, error: OnefoldError) -> list[Outcome[Any]]:
        """What is told when nobody knows whether it was committed."""
        return [one.outcome if isinstance(one.outcome, Refused) else Unknown(error) for one in self._ones]

    # --- one body -------------------------------------------------------------------------------

    async def _body(self, wire: Wire, one: _One) -> None:
        """Run it up to its last writes, which stay to be sent with whatever is sent next."""
        one.anew()
        if not self._alone and not one.sent:
            self._out.append(_Sending(one, None, [_MARK]))
        answers: tuple[Answer, ...] | None = None
        while (question := self._advance(one, answers)) is not None:
            try:
                calls = self._calls(one, question, last=False)
            except Exception as fault:  # noqa: BLE001 - the door: what does not fit its table is its own body's fault
                self._refuse(one, told(fault))
                return
            self._out += calls
            if any(sending.statements for sending in calls):
                await self._trip(wire)
            try:
                answers = tuple([_answer(wire, sending) for sending in calls if sending.call and sending.call.table])
            except Met as met:
                raise _Fell(one, Stopped(0, MET, "", []), met.table) from met
            for verb, answer in zip(question, answers, strict=True):
                await one.place.seen(verb.table, answer)
        if one.last is None:
            return
        try:
            one.calls = self._calls(one, one.last.writes, last=True)
        except Exception as fault:  # noqa: BLE001 - the door: as for its questions
            self._refuse(one, told(fault))
            return
        self._out += one.calls
        if not self._alone:
            self._out.append(_Sending(one, None, [_KEEP]))
        one.outcome = Done(one.last.value)

    def _advance(self, one: _One, answers: tuple[Answer, ...] | None) -> tuple[Verb, ...] | None:
        """Its next question; None when it ended, with `last` set, or was refused."""
        try:
            if one.turn is None:
                one.runs += 1
                one.turn = one.body()
                question = next(one.turn)
            else:
                assert answers is not None
                question = one.turn.send(answers)
            one.asked = True
            return question
        except StopIteration as stop:
            one.last = stop.value
        except Exception as fault:  # noqa: BLE001 - the door: a room's body must not take its company with it
            self._refuse(one, told(fault))
        return None

    def _calls(self, one: _One, verbs: Sequence[Verb], *, last: bool) -> list[_Sending]:
        calls = [one.place.call(verb, last=last) for verb in verbs]
        out = [_Sending(one, call, call.statements) for call in calls]
        if not one.clocked and any(call.clock for call in calls):
            one.clocked = True
            clock = instant()
            out.insert(0, _Sending(one, clock, clock.statements))
        return out

    def _refuse(self, one: _One, error: OnefoldError) -> None:
        """Nothing of it stays in the transaction."""
        one.outcome = Refused(error)
        if one.turn is not None:
            one.turn.close()
        self._out = [sending for sending in self._out if sending.of is not one]
        if one.sent and self._alone:
            self._spoilt = True
        elif one.sent:
            self._out.append(_Sending(None, None, [_BACK, _KEEP]))

    def _met(self, fell: _Fell) -> bool:
        """A statement of this body failed. Returns: whether it is refused, rather than run again. Raises: Unusable."""
        one, state = fell.one, fell.stopped.state
        if one.turn is not None:
            one.turn.close()
        one.outcome = None
        self._out = []
        if state in AGAIN and not self._alone:
            raise Unusable(Contended(fell.table or "a row"))  # what the company locked may be what the others wait for
        if is_world(state) and not is_row(state):
            raise Unusable(unavailable(state))
        again = (state == MET and one.asked) or state == OTHER or state in AGAIN
        if again and one.runs < AGAIN_AT_MOST:
            if self._alone:
                self._out = [_Sending(None, None, [_ROLLBACK, _BEGIN])]
                one.sent = False
            else:
                self._out = [_Sending(None, None, [_BACK])]
            return False
        busy = state in (MET, OTHER) or state in AGAIN
        error = Contended(fell.table or "a row") if busy else faulty(fell.stopped)
        self._refuse(one, error)
        return True

    # --- trips ----------------------------------------------------------------------------------

    async def _trip(self, wire: Wire) -> list[Any]:
        """Send what is due. Raises: _Fell, Unusable; OSError of a failpoint."""
        out, self._out = self._out, []
        if not self._begun:
            out.insert(0, _Sending(None, None, [_BEGIN]))
        statements = [statement for sending in out for statement in sending.statements]
        self._begun = True
        for sending in out:
            if sending.of is not None:
                sending.of.sent = True
        try:
            results = await wire.send(statements)
        except Stopped as stopped:
            _share(out, stopped.results)
            at = stopped.at
            for sending in out:
                if at < len(sending.statements):
                    if sending.of is None or sending.call is None:
                        raise Unusable(faulty(stopped)) from stopped
                    raise _Fell(sending.of, stopped, sending.call.table) from stopped
                at -= len(sending.statements)
            raise
        except Gone as gone:
            _share(out, gone.results)
            if self.sent:
                raise
            raise Unusable(unavailable(gone.state)) from gone
        _share(out, results)
        return results

    async def _end(self, wire: Wire) -> None:
        """COMMIT, if anybody has something to keep. Raises: _Fell, Unusable, Lost; OSError of a failpoint."""
        if self._spoilt or not any(isinstance(one.outcome, Done) for one in self._ones):
            self._out = []
            if self._begun:
                await self._engine.leave()
        elif not self._begun and not any(sending.statements for sending in self._out):
            await self._answers(wire)  # nobody writes anything
        else:
            await self._commit(wire)
            await self._answers(wire)

    async def _commit(self, wire: Wire) -> None:
        """Returns when it committed. Raises: _Fell, Unusable, Lost; OSError of a failpoint."""
        if self._fail is not None:
            self._fail("before-commit")
        self._out.append(_Sending(None, None, [_NUMBER, _COMMIT]))
        before = sum(len(sending.statements) for sending in self._out) - 2 + (not self._begun)
        wire.warned = False
        self.sent = True
        results: list[Any] | None = None
        try:
            results = await self._trip(wire)
            if results[-1].command_status != b"COMMIT":
                raise Unusable(unavailable("25"))
            if self._fail is not None:
                self._fail("after-commit")
        except Gone as gone:
            await self._find_out(gone.results, before, gone)
        except OSError:
            if results is None:  # nothing was sent: it failed at a statement
                self.sent = False
                raise
            await self._find_out(results, before, Gone())
        except (_Fell, Unusable):
            self.sent = False
            raise
        if wire.warned:
            # Such as a wait for a replica that was cancelled: it is committed here, and may be nowhere else.
            raise Lost(unavailable("01"))
        if results is not None:
            self._engine.reached(_number(results, before))

    async def _find_out(self, results: Sequence[Any], before: int, gone: Gone) -> None:
        """COMMIT was sent and its answer lost. Returns when it committed. Raises: Unusable, Lost."""
        if gone.refused and len(results) <= before:
            raise Unusable(unavailable(gone.state))  # the server said that it ended before it came to COMMIT
        number = _number(results, before)
        committed = None if number is None else await self._engine.committed(number)
        if committed is None:
            raise Lost(unavailable(gone.state))
        if not committed:
            raise Unusable(unavailable(gone.state))

    async def _answers(self, wire: Wire) -> None:
        """Those of the last writes of every body that was kept."""
        for one in self._ones:
            if isinstance(one.outcome, Done) and one.last is not None:
                sendings = [sending for sending in one.calls if sending.call is not None and sending.call.table]
                answers = []
                for write, sending in zip(one.last.writes, sendings, strict=True):
                    try:
                        answers.append(_answer(wire, sending))
                    except Met:
                        assert isinstance(write, Append)
                        answers.append(await self._engine.holders(one.place, write))
                one.outcome = Done(one.last.value, tuple(answers))


def _share(out: Sequence[_Sending], results: Sequence[Any]) -> None:
    rest = iter(results)
    for sending in out:
        sending.results = [result for _, result in zip(sending.statements, rest, strict=False)]


def _answer(wire: Wire, sending: _Sending) -> Answer:
    assert sending.call is not None
    return sending.call.answer([wire.rows(result) for result in sending.results])


def _number(results: Sequence[Any], at: int) -> int | None:
    if len(results) <= at or results[at].ntuples != 1:
        return None
    raw = results[at].get_value(0, 0)
    return None if raw is None else int.from_bytes(raw, "big")
