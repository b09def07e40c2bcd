"""kernel.alert - what people are told when something parks. Pure.

For: the notice, and the owed row that carries it in the very commit in which something parks.
Never: sends; alerts about an alert: one that cannot be delivered parks where everybody sees it, and that is all.
Was wrong once: told by whoever saw the row park. A kill between the commit and the mail, and nobody was told;
a second look after a restart, and everybody was told twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from onefold.kernel.fold import Base, Outstanding

PORT = "alert"
NOTICES = ("notify", PORT)  # ports that tell people something
_KEY = "k/alert/"
KINDS = {"parked": "owed", "uncertain": "uncertain", "waits": "port"}
"""States of a row that has stopped, and what each is called in the list of what is parked."""


class Alert(Struct, frozen=True, tag_field="type", tag=True, omit_defaults=True):
    """Something stopped and waits for a person. item: its id in the list of what is parked. kind: as there.

    key: of the actor. since: ms. notify: names of people, or addresses.
    """

    item: str
    kind: str
    program: str
    key: str
    cause: str
    since: int
    notify: tuple[str, ...]
    principal: str | None = None


def is_alert(row: Outstanding) -> bool:
    """Whether this row tells people of something else that parked. No module hears of it."""
    return row.port == PORT and row.key.startswith(_KEY)


class Alerts:
    """One space's alerts. people: whom they name."""

    def __init__(
        self, people: Sequence[str], space: str, number: Callable[[], int], write: Callable[[Alert], bytes]
    ) -> None:
        self._people = tuple(people)
        self._space = space
        self._number = number
        self._write = write

    def row(self, base: Base, before: Outstanding | None, after: Outstanding, now: int) -> Outstanding | None:
        """The notice that a row has stopped, or None when it has not just now, or is a notice itself."""
        if not stopped(after) or is_alert(after) or (before is not None and stopped(before)):
            return None
        cause = f"{after.port}: {after.error}"
        return self._owed(base, f"owed.{self._space}.{after.n}", KINDS[after.state], cause, after.at, now)

    def alarm(self, base: Base, error: str | None, now: int) -> Outstanding:
        """The notice that an actor's wake was given up."""
        return self._owed(base, f"alarm.{self._space}.{base.actor}", "alarm", error or "", now, now)

    def run(self, base: Base, cause: str, now: int) -> Outstanding:
        """The notice that a run has stopped by name."""
        return self._owed(base, base.key, "run", cause, now, now)

    def _owed(self, base: Base, item: str, kind: str, cause: str, since: int, now: int) -> Outstanding:
        n = self._number()
        body = self._write(Alert(item, kind, base.kind, base.key, cause, since, self._people, base.principal))
        return Outstanding(n, f"{_KEY}{n}", PORT, body, 0, now, "ready", now)


def falls(row: Outstanding) -> bool:
    """Whether it is a notice that was tried and did not get through: somebody is waited for who does not know."""
    return row.port in NOTICES and row.error is not None


def stopped(row: Outstanding) -> bool:
    """Whether the row waits for a person, or for a part that is not here."""
    return row.next_at is None or row.state == "waits"
