"""kernel.unfit - what a module gave that does not fit its own annotation, as the module's fault.

For: naming module, function, annotation and field where a reply, a fact, a view or an owed body does not fit.
Never: blames who asked: he sent what the module takes.
Was wrong once: the codec's own refusal, passed on. The caller was told 422 "must be a whole number; sent 9" for
an event that had no number in it, and the module's author was told nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from onefold.kernel.words import Decision, Forked
from onefold.terms.errors import BadArguments, DecideFailed, LoadRefused, OnefoldError

UNFIT: Final = "Unfit"
T = TypeVar("T")


def fitting(module: str, key: str, function: str, what: str, annotation: Any, write: Callable[[], T]) -> T:
    """What `write` gives. Raises: DecideFailed where it does not fit, and whatever else it raises."""
    try:
        return write()
    except (BadArguments, LoadRefused) as fault:
        raise unfit(module, key, function, what, annotation, fault) from fault


def blamed(fault: OnefoldError, module: str, key: str, event: str | None) -> OnefoldError:
    """A fault of deciding as it is told: what our own calls refused inside the module is the module's fault.

    A fork onto an actor that has a history is refused here too, and is the asker's.
    """
    if isinstance(fault, LoadRefused) or (isinstance(fault, BadArguments) and fault.nothing_was != "forked"):
        failed = DecideFailed(module, key, type(fault).__name__, f"{giver(event)}: {said(fault)}")
        failed.__cause__ = fault
        return failed
    return fault


def unfit(
    module: str, key: str, function: str, what: str, annotation: Any, fault: BadArguments | LoadRefused
) -> DecideFailed:
    """The fault of `function`, whose `what` does not fit."""
    return DecideFailed(
        module,
        key,
        UNFIT,
        f"{function} gave {what}, which does not fit its annotation {shown(annotation)}: {said(fault)}",
    )


def decided_by(decision: Any, event: str | None) -> Any:
    """The decision. Raises: TypeError for what is none, as where a `match` without its last case gives None."""
    if isinstance(decision, Decision | Forked):
        return decision
    raise TypeError(f"{giver(event)} gave {decision!r}, and must give Decision(facts=…, owed=…, reply=…)")


def giver(event: str | None) -> str:
    """Which of a module's functions decides an event (its row text; None for an alarm)."""
    if event is None:
        return "on_alarm"
    return "on_answer" if event.startswith("o/") else "decide"


def shown(annotation: Any) -> str:
    """An annotation as its author wrote it, nearly."""
    if isinstance(annotation, type) and not getattr(annotation, "__args__", None):
        return annotation.__name__
    members = getattr(annotation, "__args__", ())
    if type(annotation).__name__ in ("UnionType", "_UnionGenericAlias"):
        return " | ".join(map(shown, members))
    return str(annotation).replace("typing.", "")


def said(fault: BadArguments | LoadRefused) -> str:
    """What is wrong, field by field, without what was not done because of it."""
    parts = fault.faults if isinstance(fault, BadArguments) else fault.findings
    return "; ".join(map(str, parts))
