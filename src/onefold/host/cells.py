"""host.cells - the verbs on cells: spawn, turn, run, read, get, capture, evict, retire, list.

For: one event of a cell into one fold, programs run beside the loop on a draft, and what is told of both.
Never: decides (cell.module does); keeps a draft between two turns; begins a cell that nobody asked to begin.
Was wrong once: a program's changes written as they came out. A turn that came between was overwritten by them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from onefold.cell.module import BEGIN, Cells, checked, ended, everything
from onefold.cell.numbers import earlier, numbered
from onefold.cell.shape import Shape
from onefold.cell.words import Call, Capture, Ended, Event, Record, Retire, Spawn, Told, Turn
from onefold.fleet.mailbox import MAIL, Posted, letter
from onefold.fleet.wire import Sent
from onefold.host.caller import Caller
from onefold.host.core import MAIN, Core
from onefold.host.deciding import decided
from onefold.host.gates import Gates
from onefold.host.letterbox import Letterbox
from onefold.host.modules import Page
from onefold.kernel.words import NOTHING, Decision
from onefold.node.brought import Brought
from onefold.program.handles import Handles
from onefold.program.monty import Interpreter
from onefold.program.source import read as parsed
from onefold.program.words import LIMITS, OneCall, Statements, Stopped
from onefold.store.contract import AuthorSpace, Done, Last, Refused
from onefold.terms.codec import Json, canonical, digest
from onefold.terms.errors import BadArguments, Contended, Fault, NotFound, OutcomeUnknown
from onefold.terms.ids import ActorId, check_text, door_id
from onefold.terms.instant import moment
from onefold.terms.turns import failed

SEED_BYTES = 8


@dataclass(frozen=True, slots=True)
class Seen:
    """A cell as it is: its record, and its fields as JSON, those nobody set by their default."""

    record: Record
    state: dict[str, Json]


class CellVerbs:
    """Verbs on cells. `holder` is whoever has custody of it; None for a borrow."""

    def __init__(
        self,
        core: Core,
        chance: Callable[[int], bytes],
        actors: Callable[..., Awaitable[Page[Any]]],
        letterbox: Letterbox,
    ) -> None:
        self._core = core
        self._chance = chance
        self._actors = actors
        self._gates = Gates()
        self._interpreter = Interpreter()
        self._letterbox = letterbox

    async def stop(self) -> None:
        """No turn waits any longer for a holder."""
        self._gates.close()

    def close(self) -> None:
        """End the workers that run programs."""
        self._interpreter.close()

    async def spawn(self, shape: str, id: str, *, key: str | None = None, caller: Caller) -> str:
        """ "spawned", or "resident" where it was there already."""
        caller.need("call", "beginning a cell")
        at = self._cell(shape, id, caller)
        told = await self._fold(at, Spawn(self._key(key), id), ["spawn"], None)
        return told.outcome

    async def retire(self, shape: str, id: str, *, key: str | None = None, caller: Caller, holder: Any = None) -> None:
        """It exists no longer. Raises: NotFound."""
        caller.need("call", "retiring a cell")
        at = self._cell(shape, id, caller)
        await self._fold(at, Retire(self._key(key), id), ["retire"], holder)

    async def turn(
        self,
        shape: str,
        id: str,
        method: str,
        arguments: Json,
        *,
        key: str | None = None,
        caller: Caller,
        holder: Any = None,
        typed: bool = False,
    ) -> Turn:
        """One method, one commit. `typed`: the arguments are what `Method.written` gave.

        Raises: NotFound, BadArguments before anything was written, TurnFailed.
        """
        caller.need("call", "a turn of a cell")
        at, known = self._cell(shape, id, caller), self._shape(shape)
        found = known.method(method)
        if found.for_programs_only:
            raise BadArguments([Fault("method", "takes or gives handles, which only a program can hold", method)])
        if not typed:
            found.checked(arguments)
        event = Call(self._key(key), id, method, dict(arguments))
        told = await self._fold(at, event, ["call", method, arguments], holder)
        return self._turn(known, told)

    async def program(
        self, shape: str, id: str, source: str, *, key: str | None = None, caller: Caller, holder: Any = None
    ) -> Turn:
        """A program, atomically. Raises: NotFound, TurnFailed and its cases, OutOfTime."""
        caller.need("call", "a turn of a cell")
        return await self._program(self._cell(shape, id, caller), source, self._key(key), holder)

    async def post(self, shape: str, id: str, source: str, *, key: str, caller: Caller) -> Posted:
        """A program into the cell's box: committed when this returns, run in its turn. Its key counts once, here and as
        a turn. Raises: ParseFailed, UnknownCall, LimitHit, KeyConflict, Busy, OutcomeUnknown.
        """
        caller.need("call", "posting to a cell")
        at = self._cell(shape, id, caller)
        check_text(key, "key")
        self._read(at, source)
        space = await self._core.space(MAIN)
        row = letter(
            space.mint(MAIL),
            at,
            door_id(key),
            caller.name,
            canonical({"program": source}),
            self._core.clock.now(),
            self._core.slots,
        )
        await self._letterbox.post(space, row, digest(canonical(["program", source])))
        router = self._core.router
        owner = None if router is None else router.told(at)
        self._core.point("before-reply")
        return Posted(key, owner)

    async def read(self, shape: str, id: str, *, caller: Caller) -> Seen:
        """The committed record. Raises: NotFound where it never was, or was retired."""
        record = await self._record(self._cell(shape, id, caller))
        known = self._shape(shape)
        if not record.exists and not known.on_demand:
            raise NotFound(shape, id, BEGIN)
        return Seen(record, everything(record, known))

    async def get(self, shape: str, id: str, field: str, *, caller: Caller) -> tuple[bool, Json]:
        """Whether a field was ever set, and its value. Raises: NotFound, Undeclared."""
        self._shape(shape).field(field)
        record = (await self.read(shape, id, caller=caller)).record
        return field in record.fields, record.fields.get(field)

    async def capture(
        self,
        shape: str,
        id: str,
        fields: Mapping[str, Json],
        *,
        base: int | None = None,
        key: str | None = None,
        caller: Caller,
        holder: Any = None,
    ) -> Seen:
        """Set fields in one commit; the record after it. Raises: NotFound, Undeclared, BadArguments; Contended where the
        record is no longer the one after `base` changes.
        """
        caller.need("call", "a turn of a cell")
        at, known = self._cell(shape, id, caller), self._shape(shape)
        if not isinstance(fields, Mapping):
            raise BadArguments([Fault("set", "must be an object of fields", fields)])
        event = Capture(self._key(key), id, checked(known, fields), base)
        await self._fold(at, event, ["capture", dict(fields)], holder)
        return await self.read(shape, id, caller=caller)

    async def evict(self, shape: str, id: str, *, caller: Caller, holder: Any = None) -> str:
        """ "evicted" from memory, or "absent" there. What it owns is kept; one in a turn finishes it first."""
        at = self._cell(shape, id, caller)
        if self._core.router is not None:
            return await self._core.router.evict(at, partial(self.evict_here, at, holder))
        return await self.evict_here(at, holder)

    async def evict_here(self, at: ActorId, holder: Any = None) -> str:
        """As `evict`, of an actor of this process."""
        node = self._core.node
        async with self._gates.held(at, object() if holder is None else holder):
            resident = node.resident(at)
            if resident is not None and resident.pending:  # they had passed the gate; it goes behind them
                await node.fold(at, None, b"", _nothing, replies=False, probe=False)
            return "evicted" if node.evict(at) else "absent"

    async def take(self, shape: str, id: str, *, caller: Caller, holder: object) -> None:
        """Custody: from now on nobody else has a turn of it. Begins it where it is not there. Raises: OwnedElsewhere."""
        caller.need("call", "opening a cell")
        at = self._cell(shape, id, caller)
        await self._core.node.activate(at)
        await self._gates.take(at, holder)
        try:
            await self._fold(at, Spawn(self._key(None), id), ["spawn"], holder)
        except BaseException:
            self._gates.let_go(at, holder)
            raise

    async def let_go(self, shape: str, id: str, *, caller: Caller, holder: object) -> None:
        """The end of custody: it leaves memory, and others have turns again."""
        at = self._cell(shape, id, caller)
        try:
            await self.evict_here(at, holder)
        finally:
            self._gates.let_go(at, holder)

    def held(self) -> Sequence[tuple[ActorId, object]]:
        """The cells that somebody has alone, and who: custody, or a program that runs."""
        return self._gates.holding()

    def takes(self, shape: str, method: str) -> Sequence[str]:
        """The names of a method's arguments. Raises: UnknownName, NotFound."""
        return self._shape(shape).method(method).parameters

    def now(self) -> datetime:
        """The host's clock."""
        return moment(self._core.clock.now())

    async def list(
        self, shape: str, *, prefix: str = "", limit: int = 100, after: str | None = None, caller: Caller
    ) -> Page[dict[str, Any]]:
        """A page of {"key", "alarm"} of the caller's cells of a shape, retired ones too."""
        self._shape(shape)
        return await self._actors(shape, prefix=prefix, limit=limit, after=after, caller=caller)

    # --- inside ---------------------------------------------------------------------------------

    def _read(self, at: ActorId, source: str) -> OneCall | Statements:
        """Raises: BadArguments, ParseFailed, UnknownCall, LimitHit."""
        if not isinstance(source, str):
            raise BadArguments([Fault("program", "must be text", source)])
        program = parsed(source, self._shape(at.kind).names, LIMITS)
        if isinstance(program, Stopped):
            raise failed({"kind": program.kind, **program.told, "ran": program.ran, "of": program.of})
        return program

    async def _program(self, at: ActorId, source: str, key: str, holder: Any) -> Turn:
        router = self._core.router
        here = partial(self._run, at, source, key, holder)
        if router is None or holder is not None:
            return self._turn(self._shape(at.kind), await here())
        self._read(at, source)  # what is no program goes nowhere
        sent = Sent(at, door_id(key), digest(canonical(["program", source])), {"program": source})
        return self._turn(self._shape(at.kind), await router.program(sent, here))

    def read_program(self, sent: Sent) -> OneCall | Statements:
        """A program that was sent here, as this code reads it. Raises: BadArguments, ParseFailed, UnknownCall, LimitHit."""
        return self._read(sent.at, sent.word["program"])

    async def programmed(self, sent: Sent, read: OneCall | Statements, takes: Brought | None) -> Told:
        """A program that was sent here, as a turn of a cell of this process."""
        return await self._programmed(sent.at, sent.word["program"], read, sent.event[2:], None, takes)

    async def _run(self, at: ActorId, source: str, key: str, holder: Any) -> Told:
        self._core.node.mine(at)
        return await self._programmed(at, source, self._read(at, source), key, holder, None)

    async def _programmed(
        self, at: ActorId, source: str, program: OneCall | Statements, key: str, holder: Any, takes: Brought | None
    ) -> Told:
        known, content = self._shape(at.kind), ["program", source]
        if isinstance(program, OneCall):
            event = Call(key, at.key, program.name, dict(program.arguments))
            return await self._folded(at, event, content, holder, takes)
        alone = holder if holder is not None else object()
        async with self._gates.held(at, alone):
            while True:
                came = await self._ended(at, known, program, key)
                try:
                    return await self._folded(at, came, content, alone, takes)
                except Contended:
                    continue  # a turn that had passed the gate before was committed meanwhile

    async def opened(self, at: ActorId) -> None:
        """Return when nobody has the cell alone."""
        await self._gates.open(at)

    def _shape(self, name: str) -> Shape:
        return self._core.catalog.shape(name)

    def _cell(self, shape: str, id: str, caller: Caller) -> ActorId:
        return ActorId(self._shape(shape).name, caller.principal, check_text(id, "id"))

    def _key(self, key: str | None) -> str:
        """A turn without a key of its caller's counts as often as it is sent."""
        return self._chance(16).hex() if key is None else check_text(key, "key")

    async def _record(self, at: ActorId) -> Record:
        record: Record = await self._core.node.read(at)
        return record

    async def _fold(self, at: ActorId, event: Event, content: Json, holder: Any) -> Told:
        """One fold, its reply, wherever the cell is."""
        router = self._core.router
        if router is None or not router.elsewhere(at):  # there, its owner's gates count
            await self._gates.open(at, holder)
        if holder is not None:
            return await self._folded(at, event, content, holder, None)  # custody ends where the cell moves
        decide = partial(decided, self._core.node.kind(at.kind).module.decide, event)
        told: Told = await self._core.fold(at, door_id(event.id), digest(canonical(content)), event, decide)
        self._core.point("before-reply")
        return told

    async def _folded(self, at: ActorId, event: Event, content: Json, holder: Any, takes: Brought | None) -> Told:
        """One fold here. What it is told by is `content`: a program is the same one whatever it came to."""
        await self._gates.open(at, holder)
        decide = partial(decided, self._core.node.kind(at.kind).module.decide, event)
        told: Told = await self._core.node.fold(at, door_id(event.id), digest(canonical(content)), decide, takes=takes)
        self._core.point("before-reply")
        return told

    async def _ended(self, at: ActorId, shape: Shape, program: Statements, key: str) -> Ended:
        """Run a program on a draft of the committed record, in a thread. Raises: OutOfTime."""
        record, now = await self._record(at), moment(self._core.clock.now())
        draft = shape.draft(record, now)
        seed = int.from_bytes(digest(f"{at.kind}\0{at.key}\0{key}".encode())[:SEED_BYTES], "big")
        scope = shape.scope(draft, Handles())
        verdict = await asyncio.wrap_future(self._interpreter.begin(program, scope, now, seed, LIMITS))
        return ended(shape, draft, record, key, at.key, verdict)

    def _turn(self, shape: Shape, told: Told) -> Turn:
        if told.error is not None:
            raise failed(told.error)
        return Turn(shape.branch(told.value), told.value, told.ran)


def _nothing(record: Record, now: datetime) -> Decision[Any, Any]:
    return NOTHING


async def number_shapes(cells: Sequence[Cells], space: AuthorSpace) -> None:
    """Give each shape the number it has in this store.

    Raises: LoadRefused where a type changed without an upgrade, OutcomeUnknown.
    """
    for cell in cells:

        def body(cell: Cells = cell) -> Any:
            (rows,) = yield (earlier(cell.shape),)
            found, append = numbered(cell.shape, rows)
            return Last(() if append is None else (append,), found)

        outcome = await space.transact(body)
        if isinstance(outcome, Refused):
            raise outcome.error
        if not isinstance(outcome, Done):
            raise OutcomeUnknown(f"the number of shape {cell.shape.name} in {MAIN}")
        cell.numbered = outcome.value
