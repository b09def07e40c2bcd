"""kernel.module - how one kind of actor decides, as a plain value.

For: a module's functions and the codecs read from their annotations.
Never: a registry; discovery; I/O. Two modules of one name are refused where an app is made.
Was wrong once: codecs handed in beside the functions. The two drifted; the signature is the schema.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from onefold.kernel.port import Port, Posting
from onefold.kernel.words import Answer, Decision, Dropped
from onefold.terms.duration import duration_ms
from onefold.terms.errors import Finding, LoadRefused
from onefold.terms.ids import check_name, nearest
from onefold.terms.instant import up
from onefold.terms.places import place_of_function, placed
from onefold.terms.typed import Codec, codec_of

S = TypeVar("S")
E = TypeVar("E")
F = TypeVar("F")
R = TypeVar("R")
V = TypeVar("V", covariant=True)


@dataclass(frozen=True, slots=True)
class Codecs:
    """How a module's words are written. `answers` is by port body: one codec for all that `on_answer` takes."""

    event: Codec[Any]
    fact: Codec[Any]
    reply: Codec[Any]
    view: Codec[Any]


class Module(Generic[S, E, F, R, V]):
    """How one kind of actor decides. All functions are pure: the same arguments, the same result.

    name: also the kind of its actors. initial: the state of an actor without history. key: event to
    actor. decide: (state, event, now) to Decision. evolve: (state, fact) to state. view: what a read
    shows. on_answer, on_alarm: the same fold for what a port gave back and for the alarm.
    wake: when it must next be woken, or None. event_id: event to id; default `event.id`.
    ids_for: how long an id counts; from then on a repeat is a new event. None: for ever.
    snapshot: state to one fact whose evolve restores it; written every `snapshot_every` facts.
    upgrade: by the class a fact had when it was written, its JSON object to a fact of today. A fact
    that still fits its class is read as it is.
    publishes: fact classes that automations hear of, each as a write of "<name>.<Class>", in the fold's own commit.
    """

    # Set by rooms of the product. A module that a person writes leaves them as they are.
    room = "modules"
    """The room that made it."""
    own_words = False
    """Its facts are tagged structs: they are written as they are, unchecked. A long JSON value directly in one
    is kept as a blob, and its rows and state then only point at it."""
    keys_once = False
    """It never owes one key twice, by construction: its keys leave no tombstones."""
    mostly_sleeps = False
    """Its actors come to rest after each send: their alarm is then written exactly, so that none rings early."""
    may_void = False
    """It may give up by itself what it owes: its `voids` is asked."""
    hears_only_ends = False
    """It hears that what it owed was sent or given up, and nothing of what came back."""
    owes: Mapping[str, type] = {}
    """The ports it owes to and what it sends them, where that is known before the first fold."""
    brings: Sequence[Port[Any, Any] | Posting] = ()
    """Ports it was given as values; the app has them too."""
    reckoned_by: str | None = None
    """The release of outside data that `wake` goes by. Under another one every actor that sleeps is asked anew."""

    def __init__(
        self,
        name: str,
        *,
        initial: S,
        key: Callable[[E], str],
        decide: Callable[[S, E, datetime], Decision[F, R]],
        evolve: Callable[[S, F], S],
        view: Callable[[S], V],
        on_answer: Callable[[S, Any, datetime], Decision[F, Any]] | None = None,
        on_alarm: Callable[[S, datetime], Decision[F, Any]] | None = None,
        wake: Callable[[S], datetime | None] | None = None,
        event_id: Callable[[E], str] | None = None,
        ids_for: str | timedelta | None = None,
        snapshot: Callable[[S], F] | None = None,
        snapshot_every: int = 500,
        upgrade: Mapping[str, Callable[[dict[str, Any]], F]] | None = None,
        publishes: Sequence[type] = (),
    ) -> None:
        self.name = check_name(name, "module")
        self.initial = initial
        self.key = key
        self.decide = decide
        self.evolve = evolve
        self.view = view
        self.on_answer = on_answer
        self.on_alarm = on_alarm
        self.wake = wake
        self.event_id: Callable[[E], str] = event_id if event_id is not None else _own_id
        self.ids_for = None if ids_for is None else duration_ms(ids_for)
        self.snapshot = snapshot
        self.snapshot_every = snapshot_every
        self.upgrade: Mapping[str, Callable[[dict[str, Any]], F]] = dict(upgrade or {})
        self.publishes = tuple(publishes)
        if wake is not None and on_alarm is None:
            raise LoadRefused([Finding(f"module {name}", "has `wake` but no `on_alarm`; add what the alarm decides")])
        if self.ids_for == 0:
            raise LoadRefused(
                [Finding(f"module {name}", "ids_for must be longer than nothing; leave it out to keep ids for ever")]
            )
        if snapshot_every < 1:
            raise LoadRefused([Finding(f"module {name}", "snapshot_every must be at least 1")])

    def __repr__(self) -> str:
        return f"<module {self.name}>"

    def stops(self, facts: Sequence[F]) -> str | None:
        """Why these facts leave the actor waiting for a person; None when they do not. A room of the product says so."""
        return None

    def voids(self, state: S, key: str) -> bool:
        """Whether what is owed under `key` must not be sent any more. Asked of the newest state before each try."""
        return False

    def hears(self, kind: type) -> bool:
        """Whether `kind` is one of its events."""
        event = self._parameter("decide", self.decide, 1)
        return kind is event or kind in get_args(event)

    def check(self) -> None:
        """Read every annotation now, before the first event. Raises: LoadRefused naming what is missing."""
        self.codecs.event.schema()
        _ = self.snapshot_kind, self.answer_body, self.published

    @cached_property
    def codecs(self) -> Codecs:
        """Read from the annotations of decide, evolve and view. Raises: LoadRefused naming what is missing."""
        event = self._parameter("decide", self.decide, 1)
        fact = self._parameter("evolve", self.evolve, 1)
        decision = self._result("decide", self.decide)
        if get_origin(decision) is not Decision or len(get_args(decision)) != 2:
            self._refuse("decide", "must be annotated to return Decision[Fact, Reply]")
        return Codecs(
            event=codec_of(event, tagged=True),
            fact=codec_of(fact, tagged=True),
            reply=codec_of(get_args(decision)[1]),
            view=codec_of(self._result("view", self.view)),
        )

    @cached_property
    def snapshot_kind(self) -> str | None:
        """The "type" of the snapshot fact, from the annotation of `snapshot`."""
        if self.snapshot is None:
            return None
        kind = self._result("snapshot", self.snapshot)
        if not isinstance(kind, type):
            self._refuse("snapshot", "must be annotated to return one fact class")
        if kind not in self.codecs.fact.node.gives:
            self._refuse("snapshot", f"gives {kind.__name__}, which is none of the facts that evolve takes")
        return str(kind.__name__)

    @cached_property
    def published(self) -> frozenset[type]:
        """The fact classes it publishes. Raises: LoadRefused for what is none of its facts, or hides who decided it."""
        kinds = {kind.__name__: kind for kind in self.codecs.fact.node.gives}
        for kind in self.publishes:
            name = getattr(kind, "__name__", repr(kind))
            if kind not in kinds.values():
                near = nearest(name, kinds)
                self._unpublished(f"{name} is none of the facts that evolve takes", near and f"; did you mean {near}?")
            for field in ("key", "seq"):
                if field in get_type_hints(kind):
                    told = f"{name} has a field {field!r}, which is what the actor's own is published under; rename it"
                    self._unpublished(told)
        return frozenset(self.publishes)

    def _unpublished(self, problem: str, hint: str | None = None) -> None:
        where = placed(f"module {self.name}, publishes", place_of_function(self.evolve))
        raise LoadRefused([Finding(where, f"{problem}{hint or ''}")])

    @cached_property
    def answer_body(self) -> Codec[Any] | None:
        """The codec of what `on_answer` takes: the argument of its Answer[...], or None without one."""
        if self.on_answer is None:
            return None
        answer = self._parameter("on_answer", self.on_answer, 1)
        if get_origin(answer) is not Answer:
            self._refuse("on_answer", "must take `answer: Answer[Type]`")
        return codec_of(get_args(answer)[0])

    @cached_property
    def hears_drops(self) -> bool:
        """Whether `on_answer` takes Dropped: then a person's drop comes back as an answer."""
        if self.on_answer is None:
            return False
        body = get_args(self._parameter("on_answer", self.on_answer, 1))[0]
        return body is Dropped or Dropped in get_args(body)

    def wakes_at(self, state: S) -> int | None:
        """When an actor in this state must next be woken (ms). Raises: whatever `wake` raises."""
        at = None if self.wake is None else self.wake(state)
        return None if at is None else up(at)

    def _parameter(self, name: str, function: Callable[..., Any], index: int) -> Any:
        parameters = list(inspect.signature(function).parameters)
        if len(parameters) <= index:
            self._refuse(name, f"takes too few parameters ({len(parameters)})")
        hint = get_type_hints(function, include_extras=True).get(parameters[index])
        if hint is None:
            self._refuse(name, f"has no annotation for {parameters[index]!r}")
        return hint

    def _result(self, name: str, function: Callable[..., Any]) -> Any:
        hints: Mapping[str, Any] = get_type_hints(function, include_extras=True)
        if "return" not in hints:
            self._refuse(name, "has no return annotation")
        return hints["return"]

    def _refuse(self, name: str, problem: str) -> None:
        where = placed(f"module {self.name}, {name}", place_of_function(getattr(self, name)))
        raise LoadRefused([Finding(where, f"{problem}; the signature is the schema")])


def _own_id(event: Any) -> str:
    return str(event.id)
