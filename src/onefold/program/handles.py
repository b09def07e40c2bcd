"""program.handles - objects of the host that a program may hold, and never touch: tokens of one turn.

For: `h:Ticket:1` in the place of an object; the way back, for as long as it was not spent.
Never: a token that outlives its turn, or that a program can make: what is not in the pool reaches no object.
Was wrong once: the object's own address as the token. A program counted upwards until one of them answered.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from onefold.program.words import BadToken

T = TypeVar("T")


class Handle(Generic[T]):
    """What a method gives or takes by token. `spend()` inside a method ends it: its token is refused from then on."""

    __slots__ = ("_spent", "value")

    def __init__(self, value: T) -> None:
        self.value = value
        self._spent = False

    @property
    def spent(self) -> bool:
        return self._spent

    def spend(self) -> T:
        """The object, for the last time."""
        self._spent = True
        return self.value


class Handles:
    """The pool of one turn."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, Handle[object]]] = {}

    def give(self, handle: Handle[object], kind: str) -> str:
        """A token for it; one that it has already stays the same."""
        for token, (_, held) in self._held.items():
            if held is handle:
                return token
        token = f"h:{kind}:{len(self._held) + 1}"
        self._held[token] = (kind, handle)
        return token

    def take(self, token: object, kind: str) -> Handle[object]:
        """The handle behind a token of this kind. Raises: BadToken."""
        kind_of, handle = self._held.get(token, ("", None)) if isinstance(token, str) else ("", None)
        if handle is None:
            raise BadToken(str(token), "is none of this turn")
        if kind_of != kind:
            raise BadToken(str(token), f"is a {kind_of}, where a {kind} belongs")
        if handle.spent:
            raise BadToken(str(token), "is spent")
        return handle
