"""cli.answers - what came back from the app, and which exit code it stands for.

For: an answer as status and body; a problem as an error with the exit code of its class.
Never: prints; knows which command asked.
Was wrong once: exit codes by HTTP status. 409 is a conflict of keys (3), a cancelled run (1) and a
contended write (7); only the code tells them apart. And only the codes of what happened to be imported: a turn that
failed was "refused" (3) on the command line and 1 in every test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from onefold.terms import damage, turns
from onefold.terms.errors import OnefoldError

DONE, FAILED, USAGE, REFUSED, NOT_FOUND, NOT_FINISHED, HELD, UNAVAILABLE, BROKEN = 0, 1, 2, 3, 4, 5, 6, 7, 70


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer that is no problem. `json` is the body read, None for an empty one."""

    status: int
    body: bytes
    json: Any
    headers: dict[str, str]


class Problem(Exception):
    """The app said no. `body` is its problem+json as it came, `told` the same read."""

    def __init__(self, body: bytes, told: dict[str, Any]) -> None:
        super().__init__(str(told.get("detail", "")))
        self.body = body
        self.told = told

    @property
    def exit(self) -> int:
        """By the problem's code, which is the name of an error class; by its status for one this version lacks."""
        known = _EXITS.get(str(self.told.get("code")))
        return _by_status(self.told.get("status")) if known is None else known


class Unanswered(OnefoldError):
    """Nobody took the request, or nobody knows whether it was taken."""

    exit = UNAVAILABLE
    status = 503
    retry = "same"

    def __init__(self, url: str, why: str) -> None:
        self.url = url
        self.why = why
        super().__init__(f"{url} did not answer: {why}")


class AnotherApp(OnefoldError):
    """What listens at the address that this folder's settings give is another app than they name."""

    exit = USAGE
    status = 421
    retry = "never"

    def __init__(self, url: str, listening: str, named: str) -> None:
        self.url = url
        self.listening = listening
        self.named = named
        super().__init__(
            f"Nothing was done: {url} is the app {listening!r}, and the settings of this folder name {named!r}. "
            f"Give one of them a `listen` of its own, or say --url {url} when you mean that one."
        )


def _classes(above: type[OnefoldError]) -> Iterator[type[OnefoldError]]:
    for below in above.__subclasses__():
        yield below
        yield from _classes(below)


_TOLD = (damage, turns)
"""Imported for their errors, which are known by having been defined; whoever asks holds nothing else of an app."""

_EXITS = {error.code: error.exit for error in _classes(OnefoldError)}


def _by_status(status: object) -> int:
    match status:
        case 404:
            return NOT_FOUND
        case 421:
            return HELD
        case 429 | 502 | 503 | 504:
            return UNAVAILABLE
        case int() if 400 <= status < 500:
            return REFUSED
        case _:
            return FAILED
