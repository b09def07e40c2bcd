"""terms.turns - how a turn of a cell fails.

For: one error with a kind, and a case of it for each kind.
Never: a fault of the world, but for the one that time ran out.
Was wrong once: time as a verdict. Under load a program that had always passed was declined, for good.

    TurnFailed            the cell is unchanged; the refusal counts, and a repeat gets it again
    ├─ ParseFailed        kind "parse": it is no program                .line
    ├─ UnknownCall        kind "call": it calls what the cell has not   .name .nearest
    ├─ ProgramRaised      kind "raised": a method or the program raised .message
    ├─ LimitHit           kind "limit": calls, memory, depth, output    .limit
    └─ BadHandle          kind "handle": a spent or made-up token       .token
    OutOfTime             nothing is stored; the same again may pass    .seconds
"""

from __future__ import annotations

from typing import Any, ClassVar

from onefold.terms.errors import Failed, HostError
from onefold.terms.faults import ended, short


class TurnFailed(Failed):
    """A turn that was given and kept nothing. `ran` of the `of` statements had ended when it stopped."""

    status = 422
    kind: ClassVar[str] = "raised"

    def __init__(self, ran: int, of: int, why: str) -> None:
        self.ran = ran
        self.of = of
        at = f" It had run {ran} of {of} statements." if of > 1 else ""
        super().__init__(f"{why} Nothing of the turn was kept.{at}")


class ParseFailed(TurnFailed):
    kind = "parse"

    def __init__(self, line: int, message: str, ran: int = 0, of: int = 0) -> None:
        self.line = line
        self.message = message
        super().__init__(ran, of, f"Line {line} is no program: {ended(message)}")


class UnknownCall(TurnFailed):
    kind = "call"

    def __init__(self, name: str, nearest: str | None, ran: int = 0, of: int = 1) -> None:
        self.name = name
        self.nearest = nearest
        hint = f" Did you mean {nearest!r}?" if nearest else ""
        super().__init__(ran, of, f"The cell has no method {short(name)!r}.{hint}")


class ProgramRaised(TurnFailed):
    kind = "raised"

    def __init__(self, message: str, ran: int = 0, of: int = 1) -> None:
        self.message = message
        super().__init__(ran, of, f"The turn raised: {ended(message)}")


class LimitHit(TurnFailed):
    kind = "limit"

    def __init__(self, limit: str, ran: int = 0, of: int = 1) -> None:
        self.limit = limit
        super().__init__(ran, of, f"The turn went over its limit of {limit}.")


class BadHandle(TurnFailed):
    kind = "handle"

    def __init__(self, token: str, message: str, ran: int = 0, of: int = 1) -> None:
        self.token = token
        self.message = message
        super().__init__(ran, of, f"The handle {short(token)!r} {ended(message)}")


class OutOfTime(HostError):
    """A turn took longer than it may. That says as much of the machine as of the turn: it is a fault, no verdict."""

    def __init__(self, what: str, seconds: float) -> None:
        self.what = what
        self.seconds = seconds
        super().__init__(f"{what} took longer than {seconds:g} seconds. Nothing was kept. Send the same again.")


def failed(record: dict[str, Any]) -> TurnFailed:
    """The case behind a record {"kind", "ran", "of", …}. Raises: KeyError for a kind that is none."""
    known = {case.kind: case for case in (ParseFailed, UnknownCall, ProgramRaised, LimitHit, BadHandle)}
    return known[record["kind"]](**{name: value for name, value in record.items() if name != "kind"})
