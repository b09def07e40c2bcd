"""ports.telling - the effect `notify`: an automation tells people of the app something.

For: {"to": [names], "message", "subject"} to each address of each person, once for each task.
Never: writes to an address that a reflex names: whoever may be told stands in the settings.
Was wrong once: any mail address would do. A draft that somebody armed too soon wrote to a whole list of customers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from onefold.kernel.port import Step
from onefold.ports.notify import Memo, Reaching
from onefold.reflex.seams import Task
from onefold.reflex.words import Json
from onefold.terms.codec import below, text_problem
from onefold.terms.errors import BadArguments, Fault
from onefold.terms.ids import nearest

NAME: Final = "notify"
PARTS: Final = ("to", "message", "subject")
MAX_MESSAGE: Final = 20_000
MAX_SUBJECT: Final = 200


class NotifyEffect:
    """people: the names that the settings have."""

    name = NAME
    writes: Sequence[str] | None = ()

    def __init__(self, reaching: Reaching, people: Collection[str]) -> None:
        self._reaching = reaching
        self._people = people

    def __repr__(self) -> str:
        return f"<effect {self.name}>"

    async def run(self, task: Task, input: Json, /) -> Json:
        """{"told": names}. Raises: BadArguments, and PortFailed when somebody was not reached; they are tried again."""
        memo = self._checked(input)
        step = Step(task.key, task.now, task.attempt, task.principal)
        await self._reaching.tell(self.name, step, memo, None)
        return {"told": list(memo.notify)}

    def show(self, input: Json, /) -> str | None:
        memo = self._checked(input)
        return f"tell {', '.join(memo.notify)}: {memo.subject}"

    def _checked(self, input: Json) -> Memo:
        if not isinstance(input, dict):
            raise _bad([Fault("", 'must be an object: {"to": ["name"], "message": "…"}')])
        faults = [strange(key, PARTS) for key in input if key not in PARTS]
        to: Any = input.get("to")
        if not isinstance(to, list) or not to:
            faults.append(Fault("to", "must be a list of names of [people]"))
        else:
            faults += [fault for at_, name in enumerate(to) if (fault := self._unknown(name, below("to", at_)))]
        message = _text(input.get("message"), "message", MAX_MESSAGE, faults)
        subject = input.get("subject", message.partition("\n")[0][:MAX_SUBJECT])
        subject = _text(subject, "subject", MAX_SUBJECT, faults)
        if faults:
            raise _bad(faults)
        return Memo(subject, message, tuple(dict.fromkeys(to)))

    def _unknown(self, name: Any, where: str) -> Fault | None:
        if isinstance(name, str) and name in self._people:
            return None
        near = nearest(str(name), self._people)
        told = f"; did you mean {near!r}?" if near else "; add them to [people] in onefold.toml"
        return Fault(where, f"is nobody in [people]{told}", name if isinstance(name, str) else None)


def _text(value: Any, field: str, most: int, faults: list[Fault]) -> str:
    if isinstance(value, str) and value.strip() and len(value) <= most and not text_problem(value):
        return value
    if not any(fault.field == "message" for fault in faults):
        faults.append(Fault(field, f"must be text of 1 to {most} characters"))
    return ""


def strange(key: str, parts: Collection[str]) -> Fault:
    """An input has this key, which is none of `parts`."""
    near = nearest(key, parts)
    return Fault(key, f"is not known; did you mean {near!r}?" if near else f"is not known; there is {', '.join(parts)}")


def _bad(faults: list[Fault]) -> BadArguments:
    return BadArguments(faults, nothing_was="told")
