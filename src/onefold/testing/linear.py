"""testing.linear - could these calls have happened one after another? Pure.

For: histories of concurrent calls of one object, as their callers saw them, held against a model that knows no
concurrency: `Recorder` keeps them, `once` makes one call of all tries under one id, `judged` says whether there
is an order, and if not, how far one goes.
Never: reads a clock: an instant is a number that grows with each call made and each answer given; knows a store.
Was wrong once: a check of the last state alone. A reply that a crash took back was in no state, and nobody missed it.

After Wing and Gong, with the states that were met remembered (Lowe): at each step one of the calls that no
finished call came before is taken next. A call whose outcome is unknown may have happened at any instant after
it was made, or never. A call that was refused did not happen; it is no part of a history.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

S = TypeVar("S", bound=Hashable)
Model = Callable[[S, Any], tuple[S, Any]]
"""(state, what) to the next state and the answer. The same arguments give the same; a state is hashable."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call. what: asked for. made: instant. ended: instant of its answer, None when it is not known.

    id: calls of one id are one act, tried more than once; None is an id of its own.
    """

    what: Any
    made: int
    ended: int | None = None
    answer: Any = None
    id: Hashable = None

    def __str__(self) -> str:
        return f"{self.what!r} [{self.made}..{'?' if self.ended is None else self.ended}] = {self.answer!r}"


@dataclass(frozen=True, slots=True)
class Verdict(Generic[S]):
    """order: the calls, one after another, where there is such an order; the longest that goes well, where not.

    stuck: the calls that could have come next and did not fit, with what the model would have answered.
    """

    linear: bool
    order: tuple[Call, ...]
    stuck: tuple[tuple[Call, Any], ...] = ()

    def __bool__(self) -> bool:
        return self.linear

    def __str__(self) -> str:
        if self.linear:
            return f"{len(self.order)} calls happened one after another"
        lines = [f"    {call}" for call in self.order[-8:]]
        lines += [f"  ! {call}; one after another it would be {answer!r}" for call, answer in self.stuck]
        return "\n".join(("no order of these calls goes further than this:", *lines))


# --- histories ------------------------------------------------------------------------------------


class Open:
    """A call that was made. Say what became of it once; nothing said, its outcome is unknown."""

    def __init__(self, recorder: Recorder, place: int) -> None:
        self._recorder = recorder
        self._place = place

    def ok(self, answer: Any) -> None:
        """It was answered."""
        calls = self._recorder.calls
        calls[self._place] = replace(self._made, ended=self._recorder.instant(), answer=answer)

    def refused(self) -> None:
        """It certainly did not happen."""
        self._recorder.calls[self._place] = None

    @property
    def _made(self) -> Call:
        made = self._recorder.calls[self._place]
        assert made is not None
        assert made.ended is None
        return made


class Recorder:
    """Calls of one object in the order they were made, on a logical clock."""

    def __init__(self) -> None:
        self.calls: list[Call | None] = []
        self._now = 0

    def instant(self) -> int:
        self._now += 1
        return self._now

    def made(self, what: Any, *, id: Hashable = None) -> Open:
        """A call begins now."""
        self.calls.append(Call(what, self.instant(), id=id))
        return Open(self, len(self.calls) - 1)

    @property
    def history(self) -> tuple[Call, ...]:
        """What happened or may have: every call but those that were refused."""
        return tuple(call for call in self.calls if call is not None)


class Contradiction(AssertionError):
    """Two tries of one id were answered differently, or asked for different things."""


def once(calls: Iterable[Call]) -> tuple[Call, ...]:
    """One call for all tries under one id: it happened after the first was made and before the first was answered.

    Raises: Contradiction when two of them were answered differently.
    """
    acts: dict[Hashable, Call] = {}
    for place, call in enumerate(calls):
        id = ("", place) if call.id is None else ("id", call.id)
        first = acts.get(id)
        if first is None:
            acts[id] = call
            continue
        if first.what != call.what:
            raise Contradiction(f"{call.id!r} stands for two things: {first} and {call}")
        if first.ended is not None and call.ended is not None and first.answer != call.answer:
            raise Contradiction(f"{call.id!r} was answered twice: {first} and {call}")
        known = [one for one in (first, call) if one.ended is not None]
        answer = known[0].answer if known else None
        ended = min((one.ended for one in known if one.ended is not None), default=None)
        acts[id] = Call(call.what, min(first.made, call.made), ended, answer, call.id)
    return tuple(acts.values())


# --- the check --------------------------------------------------------------------------------------


def judged(calls: Sequence[Call], initial: S, model: Model[S]) -> Verdict[S]:
    """Whether `calls` of one object could have happened one after another.

    Time grows with the calls that overlap, and doubles with each whose outcome is unknown and that fits anywhere.
    """
    return _Search(calls, initial, model).run()


class _Search(Generic[S]):
    """A walk over the orders, depth first; a set of calls done with the state they lead to is looked at once."""

    def __init__(self, calls: Sequence[Call], initial: S, model: Model[S]) -> None:
        known = sorted((call for call in calls if call.ended is not None), key=lambda call: call.made)
        self._calls = [*known, *(call for call in calls if call.ended is None)]
        self._known = len(known)
        self._needed = (1 << len(known)) - 1
        self._model = model
        self._initial = initial
        self._best: tuple[int, ...] = ()
        self._best_at: tuple[int, S] = (0, initial)

    def run(self) -> Verdict[S]:
        order: list[int] = []
        seen: set[tuple[int, S]] = {(0, self._initial)}
        walk = [(0, self._initial, self._next(0))]
        while walk:
            done, state, nexts = walk[-1]
            if done & self._needed == self._needed:
                return Verdict(True, tuple(self._calls[i] for i in order))
            for i in nexts:
                step = self._step(state, i)
                if step is not None and (after := (done | 1 << i, step[0])) not in seen:
                    seen.add(after)
                    order.append(i)
                    walk.append((*after, self._next(after[0])))
                    self._remember(order, after)
                    break
            else:
                walk.pop()
                if order:
                    order.pop()
        return self._stuck()

    def _next(self, done: int) -> Iterator[int]:
        """The calls that may come next: made before any call that is not done was answered. Known ones first."""
        calls = self._calls
        found: list[int] = []
        earliest: int | None = None
        first = (~done & (done + 1)).bit_length() - 1  # the lowest that is not done
        for i in range(first, self._known):
            if done >> i & 1:
                continue
            if earliest is not None and calls[i].made > earliest:
                break
            ended = calls[i].ended
            assert ended is not None
            earliest = ended if earliest is None else min(earliest, ended)
            found.append(i)
        for i in range(self._known, len(calls)):
            if not done >> i & 1 and (earliest is None or calls[i].made <= earliest):
                found.append(i)
        return iter(found)

    def _step(self, state: S, i: int) -> tuple[S, Any] | None:
        """The state after call `i`, and its answer; None where it does not fit."""
        call = self._calls[i]
        after, answer = self._model(state, call.what)
        return (after, answer) if call.ended is None or answer == call.answer else None

    def _remember(self, order: list[int], after: tuple[int, S]) -> None:
        if len(order) > len(self._best):
            self._best, self._best_at = tuple(order), after

    def _stuck(self) -> Verdict[S]:
        done, state = self._best_at
        stuck = [
            (self._calls[i], self._model(state, self._calls[i].what)[1]) for i in self._next(done) if i < self._known
        ]
        return Verdict(False, tuple(self._calls[i] for i in self._best), tuple(stuck))
