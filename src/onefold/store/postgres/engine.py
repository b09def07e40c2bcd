"""store.postgres.engine - the one connection of a lane: who takes part, what is asked first, what a lost COMMIT did.

For: `Engine.commit`, the asynchronous twin of `store.batch.commit`: the same outcomes in the same order.
Never: waits for a party; goes on with a connection of which it does not know in what state it is.
Was wrong once: `store.batch` itself, driven from here. It asks verb by verb, which costs nothing in a file; over a
network each is a round trip, and sixty-four bodies were two hundred.

What is shared with `store.batch` is what does not wait: the words for what went wrong, how often a body runs again,
and what a party is told about an exception.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

from onefold.store.batch import Landing, Lost, Unusable, told
from onefold.store.contract import Answer, Append, Body, Done, Outcome, Party, Query, Refused, Row, Table, Verb
from onefold.store.postgres.failing import faulty, unavailable
from onefold.store.postgres.plan import Call
from onefold.store.postgres.together import Together
from onefold.store.postgres.wire import Gone, Statement, Stopped, Wire
from onefold.terms.errors import OnefoldError

SETTLE_TRIES = 8
SETTLE_S = 2.0  # why: it outlasts a server that restarts, and a caller waits no longer for a truth

BEGIN_READ = Statement(b"begin isolation level repeatable read read only")
COMMIT = Statement(b"commit")
_STATUS = b"select pg_xact_status($1::text::xid8)"

Connect: TypeAlias = "Callable[[], Awaitable[Wire]]"
Joined: TypeAlias = "tuple[Place, Party]"


class Place(Protocol):
    """A space as its lane sees it: it knows its tables."""

    def call(self, verb: Verb, *, last: bool, locks: bool = True) -> Call:
        """The verb as statements. Raises: what a row that does not fit its table raises."""

    def holders(self, verb: Append) -> list[tuple[tuple[int, ...], Call]]:
        """For each key of its table, the primary one first: where its cells are, and a look at who holds them."""

    async def seen(self, table: Table, answer: Answer) -> None:
        """Somebody is about to be told of these rows."""


class Engine:
    """Commits one batch after another over a connection that it opens when needed."""

    def __init__(
        self,
        connect: Connect,
        failpoint: Callable[[str], None] | None,
        reached: Callable[[int | None], None],
        settle_s: float = SETTLE_S,
    ) -> None:
        """`reached` is told the number of each transaction that committed. `settle_s`: how long a lost one is looked up."""
        self._settle_s = settle_s
        self._connect = connect
        self._fail = failpoint
        self.reached = reached
        self._wire: Wire | None = None

    async def wire(self) -> Wire:
        """The connection, outside of any transaction. Raises: Unusable."""
        if self._wire is not None and not self._wire.at_rest:
            self.drop()
        if self._wire is None:
            try:
                self._wire = await self._connect()
            except OnefoldError as error:
                raise Unusable(error) from error
        return self._wire

    def drop(self) -> None:
        """Close the connection as a kill would; what was open on it is rolled back by the server."""
        if self._wire is not None:
            self._wire.drop()
            self._wire = None

    def lend(self, wire: Wire) -> None:
        """Go on over another connection, on which a transaction may be open. What was there is closed."""
        self.drop()
        self._wire = wire

    def part(self, wire: Wire) -> None:
        """Let go of the one that was lent; what was opened in its place is closed."""
        if self._wire is not wire:
            self.drop()
        self._wire = None

    def lent(self) -> Wire:
        """The connection as it is. Raises: Unusable when there is none."""
        if self._wire is None or not self._wire.open:
            raise Unusable(unavailable("08"))
        return self._wire

    async def commit(self, joined: Sequence[Joined]) -> list[Landing]:
        """Ask everybody, and run the bodies they decide on in one physical commit. Never raises on their account."""
        landings: list[Landing] = []
        try:
            asked = await self._ask(joined, landings)
        except Exception as fault:  # noqa: BLE001 - the door: nothing is written yet, and everybody is told
            told_all = {id(party) for party, _ in landings}
            refused = Refused(_told(fault))
            return [*landings, *((party, refused) for _, party in joined if id(party) not in told_all)]
        bodies: list[tuple[Place, Party, Body[Any]]] = []
        for place, party, answers in asked:
            try:
                body = party.body(answers)
            except Exception as fault:  # noqa: BLE001 - the door: one party's decision must not take the others with it
                landings.append((party, Refused(told(fault))))
                continue
            if body is None:
                landings.append((party, Done(None)))
            else:
                bodies.append((place, party, body))
        if bodies:
            outcomes = await self._all([(place, body) for place, _, body in bodies])
            landings += [(party, outcome) for (_, party, _), outcome in zip(bodies, outcomes, strict=True)]
        return landings

    # --- asking ---------------------------------------------------------------------------------

    async def _ask(
        self, joined: Sequence[Joined], landings: list[Landing]
    ) -> list[tuple[Place, Party, tuple[Answer, ...]]]:
        """Everybody's questions in one round trip, all of one moment. Who asked badly lands. Raises: Unusable, OSError."""
        asking: list[tuple[Place, Party, tuple[Query, ...], list[Call]]] = []
        for place, party in joined:
            try:
                queries = party.ask()
                asking.append((place, party, queries, [place.call(q, last=False, locks=False) for q in queries]))
            except Exception as fault:  # noqa: BLE001 - the door: one party's question must not take the others with it
                landings.append((party, Refused(told(fault))))
        found: list[Answer] | None = None
        while found is None:
            try:
                found = await self._look([call for _, _, _, calls in asking for call in calls])
            except Stopped as stopped:
                owner = _owner(stopped.at, [calls for _, _, _, calls in asking])
                if owner is None:
                    raise Unusable(_told(stopped)) from stopped
                landings.append((asking.pop(owner)[1], Refused(_told(stopped))))
        out = []
        for place, party, queries, calls in asking:
            answers = tuple([found.pop(0) for _ in calls])
            for query, answer in zip(queries, answers, strict=True):
                await place.seen(query.table, answer)
            out.append((place, party, answers))
        return out

    async def _look(self, calls: list[Call]) -> list[Answer]:
        """Raises: Stopped, by the place among the calls' statements; Unusable; OSError."""
        if not any(call.statements for call in calls):
            return [call.answer([]) for call in calls]
        for last in (False, True):
            wire = await self.wire()
            try:
                return await look(wire, calls)
            except Gone as gone:  # asking twice asks nothing more; what was idle for long is often gone
                self.drop()
                if last:
                    raise Unusable(unavailable(gone.state)) from gone
        raise AssertionError

    # --- committing -----------------------------------------------------------------------------

    async def _all(self, bodies: Sequence[tuple[Place, Body[Any]]]) -> list[Outcome[Any]]:
        """Run the bodies and COMMIT; singly when the batch fell."""
        together = Together(self, bodies, self._fail)
        try:
            return await together.run()
        except Unusable as fell:
            await self.leave()
            if len(bodies) == 1:
                return [Refused(fell.error)]
            return await self._singly(bodies)
        except Lost as lost:
            self.drop()
            return together.lost(lost.error)
        except Exception as fault:  # noqa: BLE001 - the door: a fault of the engine itself must not leave its parties waiting
            self.drop()
            return together.lost(_told(fault)) if together.sent else [Refused(_told(fault)) for _ in bodies]
        except BaseException:
            self.drop()
            raise

    async def _singly(self, bodies: Sequence[tuple[Place, Body[Any]]]) -> list[Outcome[Any]]:
        outcomes: list[Outcome[Any]] = []
        for one in bodies:
            try:
                await self.wire()
            except Unusable as fault:  # nobody after it can fare better, and each try takes its time
                outcomes += [Refused(fault.error)] * (len(bodies) - len(outcomes))
                break
            outcomes += await self._all([one])
        return outcomes

    async def leave(self) -> None:
        """Leave the transaction, whatever state it is in. Never raises."""
        wire = self._wire
        if wire is None or wire.at_rest:
            return
        try:
            await wire.send([Statement(b"rollback")])
        except (Gone, Stopped, OSError):
            self.drop()

    async def holders(self, place: Place, verb: Append) -> list[Row | None]:
        """Who holds the keys that these rows met, of holders that were too new to be seen, after the commit.

        A row whose holder is gone again is answered with itself: somebody had its key.
        """
        out: list[Row | None] = [tuple(row) for row in verb.rows]
        looks = place.holders(verb)
        try:
            found = await look(await self.wire(), [call for _, call in looks])
        except (Unusable, Gone, Stopped, OSError):
            return out
        for (at, _), rows in zip(reversed(looks), reversed(found), strict=True):
            held = {tuple([row[i] for i in at]): row for row in rows}
            for place_of, row in enumerate(verb.rows):
                holder = held.get(tuple([row[i] for i in at]))
                if holder is not None:
                    out[place_of] = None if holder == tuple(row) else holder
        return out

    async def committed(self, number: int) -> bool | None:
        """Whether the transaction with this number committed; None when that cannot be found out."""
        self.drop()
        for wait in range(SETTLE_TRIES):
            if wait:
                await asyncio.sleep(self._settle_s / SETTLE_TRIES)
            try:
                wire = await self.wire()
                results = await wire.send([Statement(_STATUS, [str(number).encode()])])
            except (Unusable, Gone, OSError):
                self.drop()
                continue
            except Stopped:
                return None
            status = wire.rows(results[0])[0][0]
            if status != "in progress":
                return None if status is None else bool(status == "committed")
        return None


async def look(wire: Wire, calls: Sequence[Call]) -> list[Answer]:
    """Their answers, all of one moment. Raises: Stopped, by the place among the calls' statements; Gone; OSError."""
    statements = [statement for call in calls for statement in call.statements]
    if len(statements) > 1:
        try:
            results = (await wire.send([BEGIN_READ, *statements, COMMIT]))[1:-1]
        except Stopped as stopped:
            await wire.send([Statement(b"rollback")])
            stopped.at -= 1
            raise
    else:
        results = await wire.send(statements)
    rest = iter([wire.rows(result) for result in results])
    return [call.answer([next(rest) for _ in call.statements]) for call in calls]


def _owner(at: int, asked: Sequence[Sequence[Call]]) -> int | None:
    """Whose the statement at this place is."""
    for owner, calls in enumerate(asked):
        at -= sum(len(call.statements) for call in calls)
        if at < 0:
            return owner
    return None


def _told(fault: Exception) -> OnefoldError:
    """What a caller is told about one of the store's own."""
    if isinstance(fault, Stopped):
        return faulty(fault)
    return unavailable("58") if isinstance(fault, OSError) else told(fault)
