"""actuators.asking - what people are asked, checked where it is asked, and what their answer means.

For: the question as a value, and the outcome of the entry that answers it.
Never: sends the question; decides who may answer (approving does).
Was wrong once: a question checked when it was sent. An empty list of people waited for nobody, for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from onefold.actuators.outcomes import Approved, Expired, Rejected
from onefold.actuators.parts import NULL, Asking
from onefold.actuators.words import Approval, Rejection, WaitDue
from onefold.terms.codec import canonical, text_problem
from onefold.terms.instant import moment

if TYPE_CHECKING:
    from pydantic import BaseModel

MESSAGE_LIMIT = 4_000
"""Characters of an approval's message: what the tightest chat service shows whole, less room for the link."""
NEED_LIMIT = 100
"""People that must agree. More of them is a vote, which this is not."""

OFFER_LIMIT = 16_384
"""Bytes of an offer: a form that a person reads and edits."""


def asking(
    label: str,
    message: str,
    notify: str | Sequence[str],
    offer: BaseModel | None = None,
    need: int = 1,
    not_by: str | Sequence[str] | None = None,
) -> Asking:
    """The question. Raises: TypeError, ValueError with a sentence naming the approval and what is wrong."""
    if not isinstance(message, str):
        raise TypeError(f"approval {label!r}: the message must be text, not {type(message).__name__}")
    problem = "must not be empty" if not message.strip() else text_problem(message)
    if problem is None and len(message) > MESSAGE_LIMIT:
        problem = f"has {len(message)} characters; at most {MESSAGE_LIMIT} are shown"
    if problem:
        raise ValueError(f"approval {label!r}: the message {problem}")
    if type(need) is not int or not 1 <= need <= NEED_LIMIT:
        raise ValueError(f"approval {label!r}: need={need!r} must be a whole number from 1 to {NEED_LIMIT}")
    people = _texts(label, "notify", notify, "at least one person or URL")
    others = () if not_by is None else _texts(label, "not_by", not_by, "at least one person")
    if offer is None:
        return Asking(message, people, need, others)
    written, rules = _offered(label, offer)
    return Asking(message, people, need, others, written, rules)


UNSAID: Any = type("Unsaid", (), {"__repr__": lambda _: "…"})()
"""What stands for an option that must be said: left out, its right form is told, not only its name."""
FORM = 'run.wait_for_approval("boss", "Pay 90?", notify="ada", timeout="24 hours")'


def all_said(label: str, **options: object) -> None:
    """Raises: TypeError with the right form, for an option of an approval that was left out."""
    missing = [name for name, value in options.items() if value is UNSAID]
    if missing:
        raise TypeError(
            f"approval {label!r} does not say {' and '.join(missing)}. Write it like {FORM}: notify names somebody of "
            "[people] in onefold.toml or an address, timeout=None waits for ever"
        )


def event_class(event: object, other: tuple[object, ...]) -> None:
    """Raises: TypeError with the right form, where an event is waited for by anything but its class."""
    if other or isinstance(event, str):
        named = next((one.__name__ for one in other if isinstance(one, type)), "Go")
        said = f", name={event!r}" if isinstance(event, str) else ""
        raise TypeError(
            f"wait_for_event takes the class of the event, and its options by name: run.wait_for_event({named}{said}, "
            'timeout="1 day"). An event is sent under the name of its class, or under `name`'
        )


def answered(offer: BaseModel | None) -> Callable[[Any], Approved | Rejected | Expired]:
    """What makes the outcome of the entry that answers. An edited offer is a model again, and raises if it cannot be."""

    def outcome(entry: Approval | Rejection | WaitDue) -> Approved | Rejected | Expired:
        match entry:
            case Approval():
                return Approved(entry.by, moment(entry.at), entry.comment, _value(offer, entry.value))
            case Rejection():
                return Rejected(entry.by, moment(entry.at), entry.reason)
            case WaitDue():
                return Expired(moment(entry.until))

    return outcome


def _offered(label: str, offer: BaseModel) -> tuple[Raw, Raw]:
    from pydantic import BaseModel

    from onefold.actuators.schema import marked

    if not isinstance(offer, BaseModel):
        raise TypeError(f"approval {label!r}: the offer must be a pydantic model, not {type(offer).__name__}")
    written = canonical(offer.model_dump(mode="json", by_alias=True))
    if len(written) > OFFER_LIMIT:
        raise ValueError(f"approval {label!r}: the offer has {len(written)} bytes; at most {OFFER_LIMIT} are kept")
    return Raw(written), Raw(canonical(marked(type(offer))))


def _value(offer: BaseModel | None, edited: Raw) -> Any:
    if offer is None:
        return None
    raw = offer.model_dump_json(by_alias=True) if edited == NULL else bytes(edited)
    return type(offer).model_validate_json(raw)


def _texts(label: str, option: str, value: object, what: str) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not texts or not all(isinstance(t, str) and t.strip() for t in texts):
        raise TypeError(f"approval {label!r}: {option} must name {what}, as text or a list of texts")
    return tuple(texts)
