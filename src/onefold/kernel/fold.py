"""kernel.fold - one event, answer or alarm through decide, as rows to commit.

For: turning a decision into the one turn row and what goes with it. Pure.
Never: opens a transaction; reads a clock; sends; changes the state it was given.
Was wrong once: decide inside the transaction. One slow decision held every actor of the space.

    event ─→ decide(state, event, now) ─→ facts ─→ evolve ─→ next state
                                       ├→ owed  ─→ rows, bytes sealed here
                                       └→ reply ─→ stored, answered after commit
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from onefold.kernel.chain import START, link
from onefold.kernel.module import Module
from onefold.kernel.port import Inner, Local, Port
from onefold.kernel.words import Decision, Owed
from onefold.store.contract import Row, Table
from onefold.terms.errors import Broken, KeyConflict, TooLarge
from onefold.terms.ids import ActorId, LeavingKey, Principal, leaving_key, principal_text
from onefold.terms.instant import up
from onefold.terms.limits import MAX_ROW_BYTES
from onefold.terms.typed import codec_of

_names = msgspec.json.Encoder()
_write = msgspec.json.Encoder(order="sorted").encode
NONE = b"[]"


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
    snapshot_seq: int
    last: int | None
    at: int
    turns: int = 0  # since the snapshot's, declines too: each is read when the actor wakes
    link: bytes = START


@dataclass(slots=True)
class Folded:
    """What a fold came to: the next state, and the rows of its commit."""

    state: Any
    facts: Sequence[Any]  # as they come back from their bytes: what a rebuild will see
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
        windowed: Container[str] = (),
    ) -> None:
        """`windowed`: kinds whose ids count for a time only, so that a key equal to one is owed by name as any other."""
        self._windowed = windowed
        self._ports = ports
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
        state, facts, written = _evolved(module, base, decision.facts)
        seq = base.seq + len(facts)
        snapshot_seq = base.snapshot_seq
        if module.snapshot is not None and _snapshot_due(base, seq, module.snapshot_every):
            state, facts, written = _evolved(module, base, [*facts, module.snapshot(state)])
            snapshot_seq = seq = seq + 1
        if len(written) > MAX_ROW_BYTES:
            raise TooLarge(f"the facts of {base.kind} {base.key}", len(written), MAX_ROW_BYTES)
        reply, reply_bytes = None, None
        if replies:
            reply_bytes, reply = module.codecs.reply.seal(decision.reply)
            if len(reply_bytes) > MAX_ROW_BYTES:
                raise TooLarge(f"the reply of {base.kind} {base.key}", len(reply_bytes), MAX_ROW_BYTES)
        n = self._mint_turn()
        if event is None:
            event = f"a/{n}"
        owed: list[Outstanding] = []
        named: list[tuple[int, str, bytes]] = []
        local: list[tuple[Table, Row]] = []
        owes: bytes | None = None
        if decision.owed:
            known = None if module.keys_once else named
            for item in decision.owed:
                self._owe(base, event, item, now, owed, known, local)
            owes = _names.encode([(item.port, item.key) for item in decision.owed])
        sealed = link(base.link, written)
        turn = (n, base.actor, seq, base.last, event, digest, reply_bytes, written, owes, now, 0, sealed)
        return Folded(state, facts, seq, snapshot_seq, n, turn, sealed, reply, owed, named, local)

    def _owe(
        self,
        base: Base,
        event: str,
        item: Owed,
        now: int,
        owed: list[Outstanding],
        named: list[tuple[int, str, bytes]] | None,
        local: list[tuple[Table, Row]],
    ) -> None:
        port = self._ports.get(item.port)
        if isinstance(port, Local):
            leaves = leaving(base, self._row_key(base.kind, event, item.key))
            local.append((port.table, port.row(base.actor, principal_text(base.principal), leaves, item.body)))
            return
        body = _sealed(port, item)
        if len(body) > MAX_ROW_BYTES:
            raise TooLarge(f"what {base.kind} {base.key} owes {item.port}", len(body), MAX_ROW_BYTES)
        key = self._row_key(base.kind, event, item.key)
        if key[0] == "e" and (twin := next((one for one in owed if one.key == key), None)) is not None:
            if (twin.port, twin.body) != (item.port, body):
                raise KeyConflict(item.key)
            return
        n = self._mint_owed()
        if key[0] == "k" and named is not None and not isinstance(port, Inner):
            named.append((n, key, self._digest(item.port.encode() + b"\0" + body)))
        due = now if item.at is None else max(now, up(item.at))
        owed.append(Outstanding(n, key, item.port, body, 0, due, "ready", now))

    def _row_key(self, kind: str, event: str, key: str) -> str:
        """e/ for a key that equals the folded event's id, which counts once anyhow; k/ for any other.

        Where ids have a window the event may count again, and its key is owed by name: never for other bytes.
        """
        if not key:
            raise Broken("a module owed something under an empty key")
        return f"e/{key}" if event[2:] == key and kind not in self._windowed else f"k/{key}"


def _evolved(
    module: Module[Any, Any, Any, Any, Any], base: Base, facts: Sequence[Any]
) -> tuple[Any, Sequence[Any], bytes]:
    """The state after these facts, the facts as a rebuild will see them, and their bytes."""
    if not facts:
        return base.state, facts, NONE
    if module.own_words:
        written = _write(facts)
    else:
        written, facts = module.codecs.fact.seal_many(facts)
    state, evolve = base.state, module.evolve
    for fact in facts:
        state = evolve(state, fact)
    return state, facts, written


def _snapshot_due(base: Base, seq: int, every: int) -> bool:
    """After so many facts, or twice so many turns: an actor that mostly declines must not wake slower with each."""
    return seq - base.snapshot_seq >= every or (seq > 0 and base.turns >= 2 * every)


def _sealed(port: Port[Any, Any] | None, item: Owed) -> bytes:
    """The only bytes ever sent for this key. A row whose port no part provides waits, so its body
    is written by its own class then."""
    codec = port.body if port is not None else codec_of(type(item.body))
    return codec.encode(item.body)
