"""kernel.fold - one event, answer or alarm through decide, as rows to commit.

For: turning a decision into the one turn row and what goes with it. Pure.
Never: opens a transaction; reads a clock; sends; changes the state it was given.
Was wrong once: decide inside the transaction. One slow decision held every actor of the space.

    event ─→ decide(state, event, now) ─→ facts ─→ evolve ─→ next state
                                       ├→ owed  ─→ rows, bytes sealed here
                                       └→ reply ─→ stored, answered after commit
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from onefold.kernel.blob import NAME, Spill, Spiller, address_of, lightened, named, pointer
from onefold.kernel.chain import START, link
from onefold.kernel.module import Module
from onefold.kernel.port import Inner, Local, Port
from onefold.kernel.unfit import giver, unfit
from onefold.kernel.words import Decision, Forked, Owed
from onefold.store.contract import Row, Table
from onefold.terms.errors import BadArguments, Broken, Fault, KeyConflict, LoadRefused, TooLarge
from onefold.terms.ids import ActorId, LeavingKey, Principal, leaving_key, principal_text
from onefold.terms.instant import up
from onefold.terms.limits import INLINE_BYTES, MAX_ROW_BYTES
from onefold.terms.typed import codec_of

if TYPE_CHECKING:
    from onefold.kernel.alert import Alerts

_names = msgspec.json.Encoder()
_write = msgspec.json.Encoder(order="sorted").encode
NONE = b"[]"
_TEXT = codec_of(str)


Publisher: TypeAlias = "Callable[[Base, int, str, Any, int], tuple[Table, Row]]"
"""Where a published fact is appended: its actor, its number, "<module>.<Class>", the fact as JSON, the instant."""


@dataclass(slots=True)
class Outstanding:
    """One owed row as the actor's owner holds it. `next_at`: not sent before; None: parked."""

    n: int
    key: str  # e/<event id> or k/<key>
    port: str
    body: bytes
    tries: int
    next_at: int | None
    state: str
    at: int  # when it was owed (ms); the same on every attempt
    error: str | None = None
    found: bool = False  # read from the store: a send may have begun in an earlier life
    in_flight: bool = False
    since: int = 0  # when it was last put in flight (ms)
    confirmed: bool = False  # its removal is on its way to the store

    @property
    def name(self) -> str:
        """The key as the module wrote it."""
        return self.key[2:]


@dataclass(slots=True)
class Base:
    """What a fold stands on: the head of one actor."""

    actor: int
    slot: int
    kind: str
    principal: Principal
    key: str
    state: Any
    seq: int
    snapshot_seq: int  # the fact that is the latest snapshot, or behind which one was found too large
    last: int | None
    at: int
    turns: int = 0  # since the snapshot's, declines too: each is read when the actor wakes
    link: bytes = START


@dataclass(slots=True)
class Folded:
    """What a fold came to: the next state, and the rows of its commit."""

    state: Any
    facts: Sequence[Any]  # as they come back from their bytes; long values whole, where the rows point at them
    seq: int
    snapshot_seq: int
    n: int
    turn: Row
    link: bytes
    reply: Any
    owed: list[Outstanding]
    named: list[tuple[int, str, bytes]]  # keys the module named: owed row number, key, digest of its bytes
    local: list[tuple[Table, Row]]
    wake: int | None = None  # when the next state must be woken (ms), set by who arms the alarm
    spills: Sequence[Spill] = ()
    refs: Sequence[Row] = ()  # rows of BLOB_REF: blobs that the turn and what it owes refer to
    unsaved: bool = False  # a snapshot was due, and is too large for a row


def leaving(base: Base, key: str) -> LeavingKey:
    """The key that leaves through a port: the same for every attempt, and no other actor's."""
    return leaving_key(ActorId(base.kind, base.principal, base.key), key)


class Folder:
    """Folds for one space: knows its ports by name and hands out row numbers."""

    def __init__(
        self,
        ports: dict[str, Port[Any, Any] | Local],
        mint_turn: Any,
        mint_owed: Any,
        digest: Any,
        blobs: Spiller,
        windowed: Container[str] = (),
    ) -> None:
        """`windowed`: kinds whose ids count for a time only, so that a key equal to one is owed by name as any other."""
        self._windowed = windowed
        self._ports = ports
        self.blobs = blobs
        self.alerts: Alerts | None = None  # None: nobody is told of what parks
        self.publisher: Publisher | None = None  # None: published facts go nowhere from here
        self._mint_turn = mint_turn
        self._mint_owed = mint_owed
        self._digest = digest

    def fold(
        self,
        module: Module[Any, Any, Any, Any, Any],
        base: Base,
        event: str | None,
        digest: bytes,
        decision: Decision[Any, Any],
        now: int,
        replies: bool,
    ) -> Folded:
        """Rows for a decision on `event` (its row text; None for an alarm), taken at `now`.

        `replies`: whether somebody is answered. Raises: TooLarge before anything was written.
        """
        spills: list[Spill] = []
        gives = giver(event)
        state, facts, written, seq, snapshot_seq = self._decided(module, base, decision, gives, spills)
        reply, reply_bytes = None, None
        if replies:
            codec = _TEXT if type(decision) is Forked else module.codecs.reply
            try:
                reply_bytes, reply = codec.seal(decision.reply)
            except BadArguments as fault:
                raise unfit(base.kind, base.key, gives, "the reply", codec.annotation, fault) from fault
            if len(reply_bytes) > INLINE_BYTES:
                _within(f"the reply of {base.kind} {base.key}", reply_bytes)
                reply_bytes = pointer(self._spill(base, reply_bytes, spills).digest)
        n = self._mint_turn()
        if event is None:
            event = f"a/{n}"
        owed: list[Outstanding] = []
        keys: list[tuple[int, str, bytes]] = []
        local = self._published(module, base, decision, facts, now) if module.publishes else []
        owes: bytes | None = None
        if decision.owed:
            known = None if module.keys_once else keys
            for item in decision.owed:
                self._owe(base, event, item, now, owed, known, local, spills, gives)
            owes = _names.encode([(item.port, item.key) for item in decision.owed])
        if self.alerts is not None and (cause := module.stops(facts)) is not None:
            owed.append(self.alerts.run(base, cause, now))
        sealed = link(base.link, written)
        turn = (n, base.actor, seq, base.last, event, digest, reply_bytes, written, owes, now, 0, sealed)
        folded = Folded(state, facts, seq, snapshot_seq, n, turn, sealed, reply, owed, keys, local)
        if snapshot_seq != base.snapshot_seq and type(decision) is not Forked:
            folded.unsaved = len(facts) == len(decision.facts)
        if spills or NAME in written or (reply_bytes is not None and NAME in reply_bytes) or owed:
            folded.spills, folded.refs = spills, _references(base, folded)
            self.blobs.about_to_commit(folded.spills, folded.refs)
        return folded

    def _published(
        self,
        module: Module[Any, Any, Any, Any, Any],
        base: Base,
        decision: Decision[Any, Any],
        facts: Sequence[Any],
        now: int,
    ) -> list[tuple[Table, Row]]:
        """Rows of those facts that the module publishes: not the snapshot that the kernel adds, and not a fork's prefix."""
        if self.publisher is None or type(decision) is Forked:
            return []
        codec = module.codecs.fact
        return [
            self.publisher(base, seq, f"{module.name}.{type(fact).__name__}", codec.to_json(fact), now)
            for seq, fact in enumerate(facts[: len(decision.facts)], base.seq + 1)
            if type(fact) in module.published
        ]

    def _decided(
        self,
        module: Module[Any, Any, Any, Any, Any],
        base: Base,
        decision: Decision[Any, Any],
        gives: str,
        spills: list[Spill],
    ) -> tuple[Any, Sequence[Any], bytes, int, int]:
        """The state after a decision, its facts and their bytes with a snapshot where one is due, and the numbers.

        A state that outgrew a row has no snapshot. Was wrong once: it refused every event from then on.
        """
        if type(decision) is Forked:
            if base.last is not None:
                fault = Fault("to", "has a history already; name a new actor", base.key)
                raise BadArguments([fault], nothing_was="forked")
            return decision.state, decision.facts, decision.written, len(decision.facts), decision.snapshot
        state, facts, written = self._evolved(module, base, decision.facts, gives, spills)
        seq = base.seq + len(facts)
        if module.snapshot is None or not _snapshot_due(base, seq, module.snapshot_every):
            return state, facts, written, seq, base.snapshot_seq
        kept = spills[:]
        spills.clear()
        try:
            saved, more, longer = self._evolved(module, base, [*facts, module.snapshot(state)], "snapshot", spills)
        except TooLarge:
            spills[:] = kept
            return state, facts, written, seq, seq  # tried here: the next is due as if there were one
        return saved, more, longer, seq + 1, seq + 1

    def _evolved(
        self, module: Module[Any, Any, Any, Any, Any], base: Base, facts: Sequence[Any], gives: str, spills: list[Spill]
    ) -> tuple[Any, Sequence[Any], bytes]:
        """The state after these facts, the facts, and their bytes. Raises: TooLarge."""
        if not facts:
            return base.state, facts, NONE
        if module.own_words:
            written, light = _write(facts), facts
        else:
            try:
                written, facts = module.codecs.fact.seal_many(facts)
            except BadArguments as fault:
                raise unfit(base.kind, base.key, gives, "a fact", module.codecs.fact.annotation, fault) from fault
            light = facts
        if len(written) > INLINE_BYTES:
            if module.own_words:
                light = lightened(facts, lambda raw: self._spill(base, raw, spills).digest)
                written = _write(light)
            _within(f"the facts of {base.kind} {base.key}", written)
        state, evolve = base.state, module.evolve
        for fact in light:
            state = evolve(state, fact)
        return state, facts, written

    def _spill(self, base: Base, raw: bytes, spills: list[Spill]) -> Spill:
        _within(f"a value of {base.kind} {base.key}", raw)
        spill = self.blobs.spill(base.principal, raw)
        spills.append(spill)
        return spill

    def _owe(
        self,
        base: Base,
        event: str,
        item: Owed,
        now: int,
        owed: list[Outstanding],
        named: list[tuple[int, str, bytes]] | None,
        local: list[tuple[Table, Row]],
        spills: list[Spill],
        gives: str,
    ) -> None:
        port = self._ports.get(item.port)
        if isinstance(port, Local):
            leaves = leaving(base, self._row_key(base.kind, event, item.key))
            row = port.row(base.actor, principal_text(base.principal), leaves, item.body)
            for cell in row:
                if isinstance(cell, bytes):
                    _within(f"what {base.kind} {base.key} owes {item.port}", cell)
            local.append((port.table, row))
            return
        try:
            body = _sealed(port, item)
            due = now if item.at is None else max(now, up(item.at))
        except (BadArguments, LoadRefused) as fault:
            kind = type(item.body) if port is None else port.body.annotation
            raise unfit(base.kind, base.key, gives, f"what it owes to {item.port!r}", kind, fault) from fault
        key = self._row_key(base.kind, event, item.key)
        once = key[0] == "k" and named is not None and not isinstance(port, Inner)
        sealed = self._digest(item.port.encode() + b"\0" + body) if once else b""
        if len(body) > INLINE_BYTES:
            _within(f"what {base.kind} {base.key} owes {item.port}", body)
            body = pointer(self._spill(base, body, spills).digest)
        if key[0] == "e" and (twin := next((one for one in owed if one.key == key), None)) is not None:
            if (twin.port, twin.body) != (item.port, body):
                raise KeyConflict(item.key)
            return
        n = self._mint_owed()
        if named is not None and once:
            named.append((n, key, sealed))
        owed.append(Outstanding(n, key, item.port, body, 0, due, "ready", now))

    def _row_key(self, kind: str, event: str, key: str) -> str:
        """e/ for a key that equals the folded event's id, which counts once anyhow; k/ for any other.

        Where ids have a window the event may count again, and its key is owed by name: never for other bytes.
        """
        if not key:
            raise Broken("a module owed something under an empty key")
        return f"e/{key}" if event[2:] == key and kind not in self._windowed else f"k/{key}"


def _within(what: str, raw: bytes) -> None:
    if len(raw) > MAX_ROW_BYTES:
        raise TooLarge(what, len(raw), MAX_ROW_BYTES)


def _references(base: Base, folded: Folded) -> list[Row]:
    """Who will refer to which blobs of this actor's principal: the turn, and each row it owes."""
    told: list[Row] = []
    turn = folded.turn
    for digest in named(turn[6], turn[7]):  # type: ignore[arg-type]
        told.append((address_of(base.principal, digest), "turn", folded.n))
    for item in folded.owed:
        for digest in named(item.body):
            told.append((address_of(base.principal, digest), "owed", item.n))
    return told


def _snapshot_due(base: Base, seq: int, every: int) -> bool:
    """After so many facts, or twice so many turns: an actor that mostly declines must not wake slower with each."""
    return seq - base.snapshot_seq >= every or (seq > 0 and base.turns >= 2 * every)


def _sealed(port: Port[Any, Any] | None, item: Owed) -> bytes:
    """The only bytes ever sent for this key. A row whose port no part provides waits, so its body
    is written by its own class then."""
    codec = port.body if port is not None else codec_of(type(item.body))
    return codec.encode(item.body)
