"""host.borrow - a cell in a program's hands: borrowed by anybody, or owned for the length of a block.

For: `app.cell(Room, "lobby")`, a handle that does no I/O by itself; `app.open(Room, "room-7")`, custody.
Never: holds a cell for a borrow, a capture included; lets anybody but its owner hibernate a cell.
Was wrong once: a borrow that could be hibernated. The cell left memory in the middle of another's turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

from onefold.cell.method import Method
from onefold.cell.shape import Cell, Shape, close, shape_of
from onefold.cell.words import UNSET, Absent, Evicted, Resident, Spawned, Turn
from onefold.fleet.mailbox import Posted
from onefold.host.caller import Caller
from onefold.host.cells import Seen
from onefold.host.host import Host
from onefold.terms.errors import BadArguments, Fault, NotOwner

C = TypeVar("C", bound=Cell)
P = ParamSpec("P")
R = TypeVar("R")


class Borrow(Generic[C]):
    """A named cell. Every verb is one question or one turn of it, wherever it lives."""

    def __init__(self, host: Host, caller: Caller, shape: type[C], id: str) -> None:
        self._host = host
        self._caller = caller
        self._class = shape
        self._shape: Shape = shape_of(shape)
        self.id = id

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} of {self._shape.name} {self.id!r}>"

    async def spawn(self) -> Spawned | Resident:
        """Let it exist; both answers are fine."""
        told = await self._host.cells.spawn(self._shape.name, self.id, caller=self._caller)
        return Spawned() if told == "spawned" else Resident()

    async def evict(self) -> Evicted | Absent:
        """Let it leave memory. What it owns is kept, and the next turn finds it as it was."""
        told = await self._host.cells.evict(self._shape.name, self.id, caller=self._caller, holder=self._holder)
        return Evicted() if told == "evicted" else Absent()

    async def retire(self) -> None:
        """Let it exist no longer. Raises: NotFound."""
        await self._host.cells.retire(self._shape.name, self.id, caller=self._caller, holder=self._holder)

    async def read(self) -> C:
        """The committed record, closed to writes. Raises: NotFound where it never was, or was retired."""
        return self._record(await self._seen())

    async def get(self, field: str) -> Any:
        """One field's value, UNSET where nobody has set it. Raises: NotFound, Undeclared."""
        known = self._shape.field(field)
        there, value = await self._host.cells.get(self._shape.name, self.id, field, caller=self._caller)
        return known.read(value) if there else UNSET

    def turn(self, method: Callable[Concatenate[C, P], R], *, key: str | None = None) -> Callable[P, Awaitable[R]]:
        """One method as a turn: `await lobby.turn(Room.greet)("guest")`. Raises: NotFound, BadArguments, TurnFailed."""
        found = self._method(method)

        async def call(*args: P.args, **words: P.kwargs) -> R:
            arguments = found.written(args, words)
            holder, caller = self._holder, self._caller
            turn = await self._host.cells.turn(
                self._shape.name, self.id, found.name, arguments, key=key, caller=caller, holder=holder, typed=True
            )
            assert found.gives is not None  # the host refuses one that gives a handle
            value: R = found.gives.from_json(turn.value)
            return value

        return call

    async def run(self, source: str, *, key: str | None = None) -> Turn:
        """A program as one turn: all of it or nothing. Raises: NotFound, TurnFailed and its cases, OutOfTime."""
        return await self._host.cells.program(
            self._shape.name, self.id, source, key=key, caller=self._caller, holder=self._holder
        )

    async def post(self, source: str, *, key: str) -> Posted:
        """A program into the cell's box: it counts once, in the order of posting, also while nobody owns the cell.

        Raises: ParseFailed, UnknownCall, KeyConflict, Busy.
        """
        return await self._host.cells.post(self._shape.name, self.id, source, key=key, caller=self._caller)

    def capture(self) -> Capturing[C]:
        """`async with cell.capture() as draft:` one commit where the block ends, nothing on an exception.

        On a borrow it commits only if no turn came between; else Contended, and nothing is written.
        """
        return Capturing(self._shape, self._seen, self._keep, self._host.cells.now)

    if not TYPE_CHECKING:

        async def hibernate(self) -> None:
            raise NotOwner(f"{self._shape.name} {self.id}")

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _holder(self) -> object | None:
        return None

    async def _keep(self, fields: dict[str, Any], base: int) -> Seen:
        """Set fields on the record after `base` changes. Custody checks it too: a turn that had passed the gate before
        it was taken may land within the block. Raises: Contended, BadArguments.
        """
        return await self._host.cells.capture(
            self._shape.name, self.id, fields, base=base, caller=self._caller, holder=self._holder
        )

    def _method(self, method: Any) -> Method:
        name = getattr(method, "__name__", "")
        found = self._shape.methods.get(name)
        if found is None or getattr(method, "__func__", method) is not found.function:
            raise BadArguments(
                [
                    Fault(
                        "method",
                        f"is no method of {self._shape.name}: give it as {self._shape.name}.name",
                        name or method,
                    )
                ]
            )
        return found

    async def _seen(self) -> Seen:
        return await self._host.cells.read(self._shape.name, self.id, caller=self._caller)

    def _record(self, seen: Seen) -> C:
        record: Any = self._shape.seen(seen.record)
        return record  # type: ignore[no-any-return]


class Custody(Borrow[C]):
    """A cell that is this block's alone: nobody else has a turn of it until the block ends, and it hibernates."""

    _open = True

    @property
    def _holder(self) -> object:
        if not self._open:
            raise NotOwner(f"{self._shape.name} {self.id}")
        return self

    async def hibernate(self) -> None:
        """Let go of it before the block ends: it leaves memory, and this custody is over."""
        _ = self._holder
        await self._host.cells.let_go(self._shape.name, self.id, caller=self._caller, holder=self)
        self._open = False

    async def __aenter__(self) -> Custody[C]:
        await self._host.cells.take(self._shape.name, self.id, caller=self._caller, holder=self)
        self._open = True
        return self

    async def __aexit__(self, *fault: object) -> None:
        if self._open:
            await self.hibernate()


class Capturing(Generic[C]):
    """What `capture()` gives: to be opened by `async with`, and by nothing else."""

    def __init__(
        self,
        shape: Shape,
        see: Callable[[], Awaitable[Seen]],
        keep: Callable[[dict[str, Any], int], Awaitable[Seen]],
        now: Callable[[], datetime],
    ) -> None:
        self._shape = shape
        self._see = see
        self._keep = keep
        self._now = now
        self._seen: Seen | None = None
        self._draft: Any = None

    async def __aenter__(self) -> C:
        if self._draft is not None:
            raise TypeError("this capture was opened before; a second one is another `cell.capture()`")
        self._seen = await self._see()
        self._draft = self._shape.draft(self._seen.record, self._now())
        draft: C = self._draft
        return draft

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        assert self._seen is not None
        close(self._draft)
        if kind is not None:
            return
        record = self._seen.record
        fields = self._shape.changed(self._draft, record)
        if fields or not record.exists:
            self._shape.show(self._draft, (await self._keep(fields, record.changes)).record)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise TypeError(f"a capture begins with `async with cell.capture() as draft:`; {name!r} is on the draft")
