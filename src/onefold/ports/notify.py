"""ports.notify - tell a person that a run waits for them, or that something has stopped.

For: the ports `notify` and `alert`: one notice goes to every target it names (people, mailto:, https:) and, as one
line, to the console. The pair of links is made here, when the notice is sent.
Never: decides; keeps a link (whoever can read the store could approve); puts one into an error, or into a log outside
`onefold dev`.
Was wrong once: mail that was not set up counted as sent. An approval waited out its whole day, and nobody had been
told; such a notice now fails, is parked, and says what is missing. (Under `onefold dev` the console line, which has the
links, is enough.)

A notice that is sent again (a crash, a lost answer) carries the same message id for the same
target, so a mail program or a receiver shows it once. Targets that already took it in this
process are not asked again; the others are.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias
from urllib.parse import urlsplit

from onefold.actuators.carried import Ask
from onefold.kernel.alert import PORT, Alert
from onefold.kernel.port import Port, Step, dedupes
from onefold.terms.errors import PortFailed
from onefold.terms.instant import moment

NO_MAIL = "is reached by mail, and no mail server is set up: add `smtp` to onefold.toml"
NOBODY = "is nobody in [people] and no address that can be reached"
REMEMBERED = 1_000  # notices of which some target is still open; the oldest is forgotten and sent to all again


@dataclass(frozen=True, slots=True)
class Links:
    """Each opens a page that decides nothing. Bearer rights: never stored, never logged."""

    approve: str = field(repr=False)
    reject: str = field(repr=False)


class Unsent(Exception):
    """A target did not take it. `why` is plain words without a link, an address' password or the other side's text."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class Memo:
    """What an automation says to people. subject: one line. notify: names of people."""

    subject: str
    message: str
    notify: tuple[str, ...]


Notice: TypeAlias = Ask | Alert | Memo

# One way to reach somebody: (url, notice, links of an Ask, message id, instant of the notice). Raises: Unsent.
Way = Callable[[str, Notice, Links | None, str, datetime], Awaitable[None]]


class Reaching:
    """How people are reached, and who of them has taken what in this process.

    people: name -> URLs. ways: URL scheme ("mailto", "https", "http") -> how to reach it.
    say: takes one console text. show_links: print the links too, as `onefold dev` does.
    """

    def __init__(
        self,
        people: Mapping[str, Sequence[str]],
        ways: Mapping[str, Way],
        say: Callable[[str], None],
        *,
        show_links: bool,
    ) -> None:
        self._people = people
        self._ways = ways
        self._say = say
        self._show_links = show_links
        self._taken: OrderedDict[str, set[str]] = OrderedDict()

    async def tell(self, port: str, step: Step, notice: Notice, pair: Links | None) -> None:
        """Tell everybody whom the notice names. Raises: PortFailed when any target did not take it."""
        taken = self._taken
        if step.key not in taken:
            self._say(console_text(notice, pair if self._show_links else None))
        done = taken.setdefault(step.key, set())
        while len(taken) > REMEMBERED:
            taken.popitem(last=False)
        failures = [why for name in notice.notify for why in await self._reach(name, step, notice, pair, done)]
        if failures:
            raise PortFailed(port, step.key, "; ".join(failures))
        taken.pop(step.key, None)

    async def _reach(self, name: str, step: Step, notice: Notice, pair: Links | None, done: set[str]) -> list[str]:
        failures = []
        for url in self._people.get(name, (name,)):
            way = self._ways.get(url.partition(":")[0])
            try:
                if url in done:
                    continue
                if way is not None:
                    await way(url, notice, pair, _message_id(step.key, url), step.now)
                elif not (self._show_links and url.startswith("mailto:")):  # then the console line was the notice
                    raise Unsent(NO_MAIL if url.startswith("mailto:") else NOBODY)
                done.add(url)
            except Unsent as unsent:
                failures.append(f"{_shown(name)} {unsent.why}")
        return failures


def notify_port(reaching: Reaching, links: Callable[[Ask], Links]) -> Port[Ask, None]:
    """The port `notify`: people are asked, with a pair of links made now."""

    @dedupes("notify")
    async def notify(step: Step, ask: Ask) -> None:
        await reaching.tell("notify", step, ask, links(ask))

    return notify


def alert_port(reaching: Reaching) -> Port[Alert, None]:
    """The port `alert`: people are told of what has stopped."""

    @dedupes(PORT)
    async def alert(step: Step, body: Alert) -> None:
        await reaching.tell(PORT, step, body, None)

    return alert


def _message_id(key: str, url: str) -> str:
    """The same for every attempt to tell this target this; holds neither a key nor an address."""
    return hashlib.sha256(f"{key}\0{url}".encode()).hexdigest()[:40]


def _shown(name: str) -> str:
    """A target as an error may name it: of an address only its host, since paths hold tokens."""
    return f"https://{urlsplit(name).hostname}/…" if name.startswith(("https:", "http:")) else name


def console_text(ask: Notice, links: Links | None) -> str:
    """One line that says who is asked what, or what has stopped; with links, two more. Control characters never
    reach the terminal."""
    if isinstance(ask, Memo):
        return f"{plain(ask.subject)}: {plain(ask.message)}"
    if isinstance(ask, Alert):
        return f"{headline(ask)}\n  {plain(ask.cause)}\n  look: onefold parked show {plain(ask.item)}"
    until = "" if ask.until is None else f" until {said(ask.until)}"
    line = f'{plain(ask.program)} asks for approval "{plain(ask.name)}"{until}: {plain(ask.message)}'
    if links is None:
        return f"{line}\n  decide: onefold approve {ask.run} {plain(ask.name)} --yes | --no"
    return f"{line}\n  approve: {links.approve}\n  reject:  {links.reject}"


def headline(alert: Alert) -> str:
    """What has stopped, in one line."""
    what = {"run": "A run", "alarm": "The wake", "uncertain": "A doubtful send"}.get(alert.kind, "Something owed")
    return f"{what} of {plain(alert.program)} {plain(alert.key)} has stopped and waits for a person"


def said(instant: int) -> str:
    """An instant (milliseconds) for people, to the minute."""
    return f"{moment(instant):%Y-%m-%d %H:%M} UTC"


def plain(text: str) -> str:
    """The text on one line, with what could steer a terminal or a mail header made visible."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)
