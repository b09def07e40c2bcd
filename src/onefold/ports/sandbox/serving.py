"""ports.sandbox.serving - one pass that a worker makes, from the host's side.

For: handing the run over, and answering each act of the pass: folds, database steps, children.
Never: takes an id, a key or a principal from the worker; acts on a word that was not judged.
Was wrong once: a fold under the id that the worker gave. A file named the event of another attempt, and its own result
was dropped as a repeat.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from onefold.actuators.attempting import DATABASE_BUDGET_MS, WORLD
from onefold.actuators.carried import PassEnded, Raised, Rested
from onefold.actuators.database import read_cells, write_cells
from onefold.actuators.declare import Actuator
from onefold.actuators.event_ids import attempt_id, event_id
from onefold.actuators.executing import TWICE, Actor, kept_aside
from onefold.actuators.parts import Trouble
from onefold.actuators.state import GOING
from onefold.actuators.troubles import told
from onefold.actuators.words import ENDINGS, ENTRIES, Fact, Stepped, Waiting
from onefold.kernel.blob import filled, note
from onefold.ports.sandbox.judging import ATTEMPTS, CALL, Judge, Nonsense
from onefold.ports.sandbox.words import (
    Author,
    Broke,
    Came,
    Child,
    Ended,
    Fold,
    Go,
    No,
    Stop,
    ToHost,
    ToWorker,
    Undo,
    Verb,
    Wrote,
    Yes,
)
from onefold.store.contract import Tx
from onefold.terms.codec import canonical, parse
from onefold.terms.errors import BadArguments, CallerError, Fault, NotFound, PortFailed

MOST_OPEN: Final = 20_000
"""Acts of one pass that the host has not answered. A pass may begin a thousand steps at once, and more than a few."""
LATE: Final = 1_000
"""Statements of a pass that came when their step was over: one a step may."""
STATEMENT: Final = 1 << 20  # characters


class _Undone(Exception):
    """The database step raised, in the worker: nothing of it is kept, and the worker knows why."""


class Serving:
    """One pass. say: puts a message into the worker's pipe. own: the actuators of the file, by name."""

    def __init__(
        self,
        run: int,
        actor: Actor,
        own: Mapping[str, Actuator[Any, Any]],
        judge: Judge,
        say: Callable[[ToWorker], None],
    ) -> None:
        self.run = run
        self.heard_at = 0.0
        self._actor = actor
        self._own = own
        self._judge = judge
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[PassEnded] = self._loop.create_future()
        self._acts: dict[int, asyncio.Task[None]] = {}
        self._talks: dict[int, queue.SimpleQueue[Verb | Wrote | Undo]] = {}
        self._known: dict[bytes, bytes] = {}
        self._first = self._last = 0  # entries handed over: as it began, by now
        self._round = self._late = 0

    @property
    def idle(self) -> bool:
        """Whether nothing is under way here, so that the worker should be."""
        return not self._acts

    async def whole(self, actuator: str) -> PassEnded:
        """Raises: PortFailed when the worker failed; HostError, OwnedElsewhere when a fold did."""
        self._known = await kept_aside(self._actor)
        state = filled(self._actor.state, self._known)
        if state.status not in GOING:  # cancelled after this pass was owed
            return Rested(0)
        entries = tuple(filled(entry, self._known) for entry in state.journal)
        self._first = self._last = len(entries)
        self._round = state.round
        kept = tuple(filled(event, self._known) for event in state.kept)
        stop = self._actor.watch(self._committed)
        try:
            self._say(Go(self.run, actuator, replace(state, kept=kept, callbacks=(), dedupe=None), entries))
            return await self._over
        finally:
            stop()
            self._say(Stop(self.run))
            for act in self._acts.values():
                act.cancel()
            for talk in self._talks.values():
                talk.put(Undo(self.run, 0))

    def failed(self, fault: BaseException) -> None:
        """The pass is answered by no outcome, and run again."""
        if not self._over.done():
            self._over.set_exception(fault)

    def _committed(self, facts: Sequence[Fact]) -> None:
        shown: list[Fact] = []
        for fact in facts:
            kind = type(fact)
            if kind in TWICE:
                note(fact, self._known)
                fact = filled(fact, self._known)
            if kind in ENTRIES:
                self._last += 1
            if kind in ENTRIES or kind in TWICE or kind in ENDINGS:
                shown.append(fact)
        if shown:
            self._say(Came(self.run, tuple(shown)))

    # --- what the worker asks -------------------------------------------------------------------------

    def heard(self, word: ToHost) -> asyncio.Task[None] | None:
        """The act that it asks for, if it does. Raises: Nonsense."""
        self.heard_at = self._loop.time()
        match word:
            case Fold():
                return self._act(word.n, self._fold(word.n, self._judge.event(word.event)))
            case Author():
                if not CALL.fullmatch(word.call[:400]) or not 1 <= word.attempt <= ATTEMPTS:
                    raise Nonsense("a database step of no call")
                self._talks[word.n] = queue.SimpleQueue()
                return self._act(word.n, self._author(word))
            case Verb() | Wrote() | Undo():
                if isinstance(word, Wrote):
                    self._judge.stepped(word.event)
                talk = self._talks.get(word.n)
                if talk is not None:  # else its time is over, and it was told so
                    if not talk.empty():
                        raise Nonsense("a statement before the last one was answered")
                    talk.put(word)
                else:
                    self._late += 1
                    if self._late > LATE:
                        raise Nonsense("statements of no database step")
            case Child():
                return self._act(word.n, self._child(word))
            case Ended():
                self._end(self._judge.outcome(word.outcome, self._first, self._last))
            case Broke():
                self.failed(PortFailed("sandbox", str(self.run), f"the pass broke: {word.why[:500]}"))
            case _:
                raise Nonsense("a word that belongs to no pass")
        return None

    def _end(self, outcome: PassEnded) -> None:
        refusal = self._judge.refusal(outcome.waits) if isinstance(outcome, Rested) else None
        if refusal is not None:
            outcome = Raised(outcome.seen, Trouble("BadArguments", refusal, step="the waits", attempts=1))
        if not self._over.done():
            self._over.set_result(outcome)

    def _act(self, n: int, act: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        if n in self._acts or len(self._acts) >= MOST_OPEN or self._over.done():
            act.close()
            if not self._over.done():
                raise Nonsense("an act twice, or too many at once")
            return None
        self._acts[n] = task = self._loop.create_task(act)
        task.add_done_callback(partial(self._acted, n))
        return task

    def _acted(self, n: int, task: asyncio.Task[None]) -> None:
        """What an act raised is not the program's: a fold failed, or the worker lied."""
        self._acts.pop(n, None)
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            lied = isinstance(fault, Nonsense)
            self.failed(PortFailed("sandbox", str(self.run), f"it said {fault}") if lied else fault)

    async def _fold(self, n: int, event: Any) -> None:
        refusal = self._judge.refusal(event.waits) if isinstance(event, Waiting) else None
        try:
            if refusal is not None:
                raise BadArguments([Fault("notify", refusal)])
            await self._actor.fold(event, event_id(event, self._round))
        except CallerError as refused:  # what the store will never take: the program is told
            self._say(No(self.run, n, told(refused)))
        else:
            self._say(Yes(self.run, n))

    # --- database steps ---------------------------------------------------------------------------------

    async def _author(self, word: Author) -> None:
        n, talk = word.n, self._talks[word.n]

        def step(tx: Tx) -> Stepped:
            return self._statements(n, talk, tx, (word.call, word.attempt))

        id = attempt_id(word.call, word.attempt, self._round)
        try:
            await self._actor.author(step, lambda event: event, id=id, budget_ms=DATABASE_BUDGET_MS)
        except _Undone:
            self._say(Yes(self.run, n))
        except (Nonsense, *WORLD):
            raise
        except Exception as fault:  # noqa: BLE001 - the door: what became of the step is told where it was made
            self._say(No(self.run, n, told(fault)))
        else:
            self._say(Yes(self.run, n))
        finally:
            self._talks.pop(n, None)

    def _statements(self, n: int, talk: queue.SimpleQueue[Verb | Wrote | Undo], tx: Tx, of: tuple[str, int]) -> Stepped:
        """On the author's thread: the worker's statements, until it says that they are all. Raises: _Undone."""
        self._post(Yes(self.run, n))
        while True:
            try:
                word = talk.get(timeout=2 * DATABASE_BUDGET_MS / 1000)
            except queue.Empty:
                raise _Undone from None
            match word:
                case Wrote(event=event) if (event.call, event.attempt) == of:
                    return event
                case Verb():
                    self._post(self._stated(n, word, tx))
                case Undo():
                    raise _Undone
                case _:
                    raise Nonsense("an outcome of another step")

    def _stated(self, n: int, word: Verb, tx: Tx) -> Yes | No:
        try:
            values = read_cells(bytes(word.values))
            if not isinstance(values, dict) or len(word.sql) > STATEMENT:
                raise TypeError("a statement takes its values by name, and has at most a million characters")
            verb = getattr(tx, word.verb)
            return Yes(self.run, n, Raw(write_cells(verb(word.sql, **values))))
        except Exception as fault:  # noqa: BLE001 - the door: the function in the worker is told, and may go on
            return No(self.run, n, told(fault))

    def _post(self, word: ToWorker) -> None:
        self._loop.call_soon_threadsafe(self._say, word)

    # --- children ---------------------------------------------------------------------------------------

    async def _child(self, word: Child) -> None:
        try:
            given = await self._kin(word.verb, parse(bytes(word.arguments)))
        except Exception as fault:  # noqa: BLE001 - the door: it becomes the outcome of the step that asked
            self._say(No(self.run, word.n, told(fault)))
        else:
            self._say(Yes(self.run, word.n, Raw(canonical(given))))

    async def _kin(self, verb: str, arguments: Any) -> Any:
        """Runs of the file's own actuators, of this run's principal, and no other. Raises: as the host's verbs."""
        kin = self._actor.children
        if verb == "begin":
            program, input, key, detached = msgspec.convert(arguments, tuple[str, str, str, bool])
            if program not in self._own:
                raise NotFound("actuator", program, "A deployed file begins runs of its own actuators.")
            return await kin.begin(self._own[program], input, key, detached)
        run = msgspec.convert(arguments[0], str) if isinstance(arguments, list) and arguments else ""
        shown = await kin.show(run)
        if shown.program not in self._own:
            raise NotFound("run", run, "A deployed file sees runs of its own actuators.")
        if verb == "send":
            _, event, body, key = msgspec.convert(arguments, tuple[str, str, Any, str])
            await kin.send(run, event, body, key)
            return None
        if verb == "cancel":
            _, reason = msgspec.convert(arguments, tuple[str, str | None])
            shown = await kin.cancel(run, reason)
        return shown.to_json()
