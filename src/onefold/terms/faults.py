"""terms.faults - one thing wrong with what was sent, and one thing found while loading.

For: the parts of an error that has many. `errors` gives both to everybody.
Never: raised; they are carried by BadArguments and LoadRefused.
Was wrong once: one sentence for all faults. An agent mended the first and sent the rest again. And all faults of
whatever came, with all of it: a body of one megabyte was answered with fifteen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from onefold.terms.limits import MAX_FAULTS, MAX_KEY_BYTES

FIRST_PAGE: Final = "Leave `after` out, and begin with the first one."  # what to do about a page that no list has named

PARTS: Final = frozenset({"module", "tool", "shape"})  # an app is given these
ELSEWHERE: Final = {
    "file": "The console has no other files than it asks for.",
    "hook": "A hook is an actuator with a `webhook`, whose secret onefold.toml names under `hooks`.",
    "reflex": "Load a definition of that id, or ask for `onefold graph`, which shows those there are.",
    "route": "Those there are stand in /openapi.json.",
    "selection": "Give it to Reflexes(…, selects=[…]).",
    "signal": "Name its secret in onefold.toml under `signals`.",
}
"""Where other names come from, for somebody who used one that is none."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one argument: its dotted path, what is wrong, and what came."""

    field: str
    problem: str
    got: Any = None

    def __str__(self) -> str:
        sent = "" if self.got is None else f"; sent {short(self.got)}"
        return f"{short(self.field)}: {self.problem}{sent}" if self.field else f"{self.problem}{sent}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found while loading or checking: where, what, and how grave ("refused", "warning")."""

    where: str
    problem: str
    level: Literal["refused", "warning"] = "refused"

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


def sentences(faults: Sequence[object]) -> str:
    """Each as a sentence, one after the other. One that ends in a question has its mark already."""
    return " ".join(ended(str(fault)) for fault in faults)


def ended(text: str) -> str:
    """A sentence with one mark at its end: what stands in it may have its own."""
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def there_are(names: Iterable[str], most: int = 8) -> str:
    """A sentence with what there is, for somebody who named something else: " There is a, b and 3 more." Or nothing."""
    known = sorted(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return f" There is {', '.join(short(name) for name in known[:most])}{more}." if known else ""


def remedy(kind: str, name: str, guessed: bool) -> str:
    """What to do about a name that nothing has, as a sentence with a space before it. guessed: another was offered."""
    if kind in PARTS:
        part = f", {name}" if name.isidentifier() and len(name) <= MAX_KEY_BYTES else ""
        return f" {'If not, give' if guessed else 'Give'} it to the app: onefold.App(…{part})."
    return "" if guessed or kind not in ELSEWHERE else f" {ELSEWHERE[kind]}"


def few(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """The first MAX_FAULTS of these, and how many more there are."""
    more = len(faults) - MAX_FAULTS
    return tuple(faults) if more <= 0 else (*faults[:MAX_FAULTS], Fault("", f"has {more} more faults"))


def says(fault: BaseException) -> str:
    """What an exception says of itself. One of an author's may raise even there, and must not take its door along."""
    try:
        return str(fault)
    except Exception as worse:  # noqa: BLE001 - the door: an exception that cannot be told is told of all the same
        return f"it cannot say what it is: {type(worse).__name__}"


def looks(value: object) -> str:
    """How a value looks. A whole number of many digits has no text, and an author's own class may raise."""
    try:
        return str(value) if isinstance(value, int | float) else repr(value)
    except Exception:  # noqa: BLE001 - the door: what cannot be shown is named, and what is wrong with it is told
        return f"a {type(value).__name__} that cannot be shown"


def short(value: object, limit: int = MAX_KEY_BYTES) -> str:
    text = value if isinstance(value, str) else looks(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
