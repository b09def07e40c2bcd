"""terms.faults - one thing wrong with what was sent, and one thing found while loading.

For: the parts of an error that has many. `errors` gives both to everybody.
Never: raised; they are carried by BadArguments and LoadRefused.
Was wrong once: one sentence for all faults. An agent mended the first and sent the rest again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one argument: its dotted path, what is wrong, and what came."""

    field: str
    problem: str
    got: Any = None

    def __str__(self) -> str:
        sent = "" if self.got is None else f"; sent {short(self.got)}"
        return f"{self.field}: {self.problem}{sent}" if self.field else f"{self.problem}{sent}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found while loading or checking: where, what, and how grave ("refused", "warning")."""

    where: str
    problem: str
    level: Literal["refused", "warning"] = "refused"

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


def short(value: object, limit: int = 200) -> str:
    text = str(value) if isinstance(value, str | int | float) else repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
