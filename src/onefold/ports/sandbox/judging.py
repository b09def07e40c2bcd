"""ports.sandbox.judging - whether what a worker says may be believed as far as it goes. Pure.

For: names, sizes, counts and kinds of everything that crosses from a worker, before anything acts on it.
Never: mends; trusts a worker for an id, a key, a principal or whose run it is; lets a text that strangers wrote be run
over here (a pattern of theirs is never searched with).
Was wrong once: the right type taken for the right value. A wait of a stranger's run ended that run.

A worker that says what it may not is at fault as a whole: `Nonsense`, and its process is ended.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from msgspec import Raw

from onefold.actuators.asking import MESSAGE_LIMIT, NEED_LIMIT, OFFER_LIMIT
from onefold.actuators.attempting import RESULT_LIMIT
from onefold.actuators.carried import Change, Diverged, PassEnded, Progress, Raised, Rested, Returned, Stuck, Uncertain
from onefold.actuators.ending import child_of
from onefold.actuators.parts import NULL, Asking, Trouble, Wait
from onefold.actuators.passing import BATCH
from onefold.actuators.rules import MARK, faults_in
from onefold.actuators.run import MESSAGE
from onefold.actuators.stepping import NAME_LIMIT
from onefold.actuators.troubles import DATA_LIMIT
from onefold.actuators.troubles import MESSAGE_LIMIT as TROUBLE_LIMIT
from onefold.actuators.words import Stepped, Trying, Waiting
from onefold.kernel.blob import plain
from onefold.ports.egress import NotAllowed, target_of
from onefold.ports.sandbox.words import Told
from onefold.terms.codec import parse, text_problem
from onefold.terms.errors import BadArguments
from onefold.terms.limits import MAX_DEPTH, MAX_DURATION_MS, MAX_INT

CALL: Final = re.compile(r"(?:[0c]|h[0-9a-f]{32})(?:\.[0-9]{1,9})*#[0-9]{1,9}", re.ASCII)
PLACE: Final = 300  # characters of a call's id, or of a place in the code
DIGEST: Final = 64
MANY: Final = 10_000  # calls that a pass lets go at once
ATTEMPTS: Final = 1_000_000
PEOPLE: Final = 100
RULES: Final = 2_000
"""Parts of the schema of an offer with its references written out. One that contains itself has no end of them."""


class Nonsense(Exception):
    """What a worker of this file would never say."""


@dataclass(frozen=True, slots=True)
class Judge:
    """programs: the actuators of the file. origins: the https origins that it declares."""

    programs: Collection[str]
    origins: frozenset[str]

    def event(self, event: Told) -> Told:
        """An event of a pass, as it may be folded. Raises: Nonsense."""
        match event:
            case Stepped():
                self.stepped(event)
            case Trying(call=call, attempt=attempt):
                _call(call)
                _whole(attempt, 1, ATTEMPTS)
            case Waiting():
                self._waits(event.waits, event.released, event.unread)
            case Change(places=places):
                if not 1 <= len(places) <= BATCH:
                    raise Nonsense("it passed no place, or too many")
                _texts(places, PLACE)
            case Progress(n=n, message=message, done=done, of=of):
                _whole(n, 1, MAX_INT)
                _text(message, MESSAGE)
                for number in (done, of):
                    if number is not None and not (isfinite(number) and abs(number) <= MAX_INT):
                        raise Nonsense("a progress of no finite number")
        return event

    def stepped(self, event: Stepped) -> None:
        _call(event.call)
        _text(event.name, NAME_LIMIT)
        _text(event.digest, DIGEST)
        _whole(event.attempt, 1, ATTEMPTS)
        fit(event.result, RESULT_LIMIT)
        if event.trouble is not None:
            _trouble(event.trouble)
        if event.again_after is not None:
            _whole(event.again_after, 1, MAX_DURATION_MS)

    def outcome(self, outcome: PassEnded, first: int, last: int) -> PassEnded:
        """How a pass ended that was handed `first` entries as it began, and `last` by now. Raises: Nonsense."""
        _whole(outcome.seen, first if isinstance(outcome, Rested) else 0, last)
        match outcome:
            case Rested():
                self._waits(outcome.waits, outcome.released, outcome.unread)
            case Returned(result=result, children=children):
                fit(result, RESULT_LIMIT)
                self._children(children)
            case Raised(trouble=trouble, children=children):
                _trouble(trouble)
                self._children(children)
            case Diverged(expected=expected, found=found):
                _texts((expected, found), TROUBLE_LIMIT)
            case Stuck(tasks=tasks):
                _texts(tasks, PLACE)
            case Uncertain(step=step, why=why):
                _texts((step, why), TROUBLE_LIMIT)
        return outcome

    # --- waits --------------------------------------------------------------------------------------

    def _waits(self, waits: Collection[Wait], released: Collection[str], unread: Collection[str]) -> None:
        if len(waits) > BATCH or len(released) > MANY or len(unread) > MANY:
            raise Nonsense("more waits than a pass makes at once")
        for call in (*released, *unread):
            _call(call)
        for wait in waits:
            self._wait(wait)

    def _wait(self, wait: Wait) -> None:
        _call(wait.call)
        _text(wait.name, 2 * PLACE)
        _text(wait.digest, DIGEST)
        if wait.after is not None:
            _whole(wait.after, 0, MAX_DURATION_MS)
        if wait.until is not None:
            _whole(wait.until, 0, 2 * 10**14)
        if wait.kind == "retry" or (wait.asking is not None) is not (wait.kind == "approval"):
            raise Nonsense(f"a wait of the kind {wait.kind!r} that no function can make")
        if wait.kind == "child":
            self._children((wait.name,))
        if wait.asking is not None:
            self._asking(wait.asking)

    def _children(self, names: Collection[str]) -> None:
        """A parent's end ends its children: they are runs of its own file."""
        if len(names) > MANY:
            raise Nonsense("more children than a run can have")
        for name in names:
            _text(name, PLACE)
            if child_of(name)[0] not in self.programs:
                raise Nonsense("a child of another file")

    def _asking(self, asking: Asking) -> None:
        _text(asking.message, MESSAGE_LIMIT)
        _whole(asking.need, 1, NEED_LIMIT)
        if not 1 <= len(asking.notify) <= PEOPLE or len(asking.not_by) > PEOPLE:
            raise Nonsense("it asks nobody, or too many")
        _texts((*asking.notify, *asking.not_by), TROUBLE_LIMIT)
        fit(asking.offer, OFFER_LIMIT)
        if not isinstance(fit(asking.rules, OFFER_LIMIT), dict) and asking.offer != NULL:
            raise Nonsense("rules of an offer that are none")

    def refusal(self, waits: Iterable[Wait]) -> str | None:
        """Why what these waits ask of people cannot be asked; the program is told."""
        for wait in waits:
            if wait.asking is None:
                continue
            for address in wait.asking.notify:
                if ":" in address and not self._declared(address):
                    return (  # the notice holds the run's input
                        f"approval {wait.name!r} notifies {address.partition('?')[0][:PLACE]!r}. A deployed file notifies "
                        "people by their names in [people], or https addresses of a host that its capabilities declare"
                    )
            problem = None if wait.asking.offer == NULL else _unruly(wait.asking)
            if problem is not None:
                return f"approval {wait.name!r}: the offer of a deployed file {problem}"
        return None

    def _declared(self, address: str) -> bool:
        try:
            return target_of(address).origin in self.origins
        except NotAllowed:
            return False


# --- parts ----------------------------------------------------------------------------------------------


def _call(id: str) -> None:
    if len(id) > PLACE or not CALL.fullmatch(id):
        raise Nonsense("a call that no pass makes")


def _text(value: str, most: int) -> None:
    if not value or len(value) > most or text_problem(value):
        raise Nonsense("a text that is empty, too long or no text")


def _texts(values: Collection[str], most: int) -> None:
    if len(values) > MANY:
        raise Nonsense("too many texts")
    for value in values:
        _text(value, most)


def _whole(value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise Nonsense("a number that is out of its range")


def fit(raw: Raw, most: int) -> Any:
    """A value as JSON, that may be kept as it came. Raises: Nonsense."""
    told = bytes(raw)
    if len(told) > most or told != plain(told):
        raise Nonsense("a value that is too large, or points at another's")
    try:
        return parse(told)
    except BadArguments:
        raise Nonsense("a value that is no JSON") from None


def _trouble(trouble: Trouble) -> None:
    _text(trouble.kind, NAME_LIMIT)
    fit(trouble.data, DATA_LIMIT)
    for value, most in ((trouble.message, TROUBLE_LIMIT), (trouble.place, PLACE), (trouble.call, PLACE)):
        if value is not None and (len(value) > most or text_problem(value)):
            raise Nonsense("a trouble that is told at too great length")
    if trouble.step is not None:
        _text(trouble.step, TROUBLE_LIMIT)
    if trouble.attempts is not None:
        _whole(trouble.attempts, 0, ATTEMPTS)


def _unruly(asking: Asking) -> str | None:
    """What keeps an edit of the offer from being judged here by the file's own rules, or None."""
    rules: dict[str, Any] = parse(bytes(asking.rules))
    defs = rules.get("$defs")
    try:
        _weigh(rules, defs if isinstance(defs, dict) else {}, RULES)
        fits = not faults_in(rules, parse(bytes(asking.offer)), "offer")
    except Nonsense as problem:
        return str(problem)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        fits = False
    return None if fits else "must fit its own rules"


def _weigh(node: Any, defs: Mapping[str, Any], left: int, depth: int = 0) -> int:
    """How much is left of `left` when the node is counted with what it refers to. Raises: Nonsense."""
    if left <= 0 or depth > MAX_DEPTH:
        raise Nonsense("is too large, or may hold itself")
    left -= 1
    below: list[Any] = []
    if isinstance(node, list):
        below = node
    elif isinstance(node, dict) and not node.get(MARK):
        if isinstance(node.get("pattern"), str):
            raise Nonsense("may have no pattern: what strangers wrote is not searched with here")
        below = [value for name, value in node.items() if name != "$defs"]
        if "$ref" in node:
            below.append(defs.get(str(node["$ref"]).rpartition("/")[2]))
    for value in below:
        left = _weigh(value, defs, left, depth + 1)
    return left
