"""actuators.outcomes - what became of an approval, told apart with `match`.

For: Approved, Rejected, Expired.
Never: a shared attribute that decides, or a truth value: an expiry must not be read as a no.
Was wrong once: None for "nobody answered". `if not decision` paid nothing and said nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn


class _Matched:
    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} has no truth value; tell outcomes apart with `match`: "
            "case Approved(): … case Rejected(): … case Expired(): …"
        )


@dataclass(frozen=True, slots=True)
class Approved(_Matched):
    """A person agreed. `value` is the offer, perhaps edited; None without one."""

    by: tuple[str, ...]
    at: datetime
    comment: str | None = None
    value: Any = None


@dataclass(frozen=True, slots=True)
class Rejected(_Matched):
    """A person said no."""

    by: str
    at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Expired(_Matched):
    """Nobody decided, or nothing came, until the deadline."""

    deadline: datetime
