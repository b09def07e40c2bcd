"""ports.notify - tell a person that a run waits for them.

For: the port `notify`: one notice goes to every target it names (people, mailto:, https:) and, as
one line, to the console. The pair of links is made here, when the notice is sent.
Never: decides; keeps a link (whoever can read the store could approve); puts one into an error, or into a log outside `onefold dev`.
Was wrong once: mail that was not set up counted as sent. An approval waited out its whole day, and
nobody had been told; such a notice now fails, is parked, and says what is missing. (Under `onefold
dev` the console line, which has the links, is enough.)

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
from urllib.parse import urlsplit

from onefold.actuators.words import Ask
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


# One way to reach somebody: (url, what is asked, links, message id, instant of the notice). Raises: Unsent.
Way = Callable[[str, Ask, Links, str, datetime], Awaitable[None]]


def notify_port(
    *,
    links: Callable[[Ask], Links],
    people: Mapping[str, Sequence[str]],
    ways: Mapping[str, Way],
    say: Callable[[str], None],
    show_links: bool,
) -> Port[Ask, None]:
    """The port `notify`.

    people: name -> URLs. ways: URL scheme ("mailto", "https", "http") -> how to reach it.
    say: takes one console text. show_links: print the links too, as `onefold dev` does.
    The port raises PortFailed when any target did not take it; the kernel then tries again.
    """
    taken: OrderedDict[str, set[str]] = OrderedDict()

    @dedupes("notify")
    async def notify(step: Step, ask: Ask) -> None:
        pair = links(ask)
        if step.key not in taken:
            say(console_text(ask, pair if show_links else None))
        done = taken.setdefault(step.key, set())
        while len(taken) > REMEMBERED:
            taken.popitem(last=False)
        failures = [why for name in ask.notify for why in await _reach(name, step, ask, pair, done)]
        if failures:
            raise PortFailed("notify", step.key, "; ".join(failures))
        taken.pop(step.key, None)

    async def _reach(name: str, step: Step, ask: Ask, pair: Links, done: set[str]) -> list[str]:
        failures = []
        for url in people.get(name, (name,)):
            way = ways.get(url.partition(":")[0])
            try:
                if url in done:
                    continue
                if way is not None:
                    await way(url, ask, pair, _message_id(step.key, url), step.now)
                elif not (show_links and url.startswith("mailto:")):  # then the console line was the notice
                    raise Unsent(NO_MAIL if url.startswith("mailto:") else NOBODY)
                done.add(url)
            except Unsent as unsent:
                failures.append(f"{_shown(name)} {unsent.why}")
        return failures

    return notify


def _message_id(key: str, url: str) -> str:
    """The same for every attempt to tell this target this; holds neither a key nor an address."""
    return hashlib.sha256(f"{key}\0{url}".encode()).hexdigest()[:40]


def _shown(name: str) -> str:
    """A target as an error may name it: of an address only its host, since paths hold tokens."""
    return f"https://{urlsplit(name).hostname}/…" if name.startswith(("https:", "http:")) else name


def console_text(ask: Ask, links: Links | None) -> str:
    """One line that says who is asked what; with links, two more. Control characters never reach the terminal."""
    until = "" if ask.until is None else f" until {said(ask.until)}"
    line = f'{plain(ask.program)} asks for approval "{plain(ask.name)}"{until}: {plain(ask.message)}'
    if links is None:
        return f"{line}\n  decide: onefold approve {ask.run} {plain(ask.name)} --yes | --no"
    return f"{line}\n  approve: {links.approve}\n  reject:  {links.reject}"


def said(instant: int) -> str:
    """An instant (milliseconds) for people, to the minute."""
    return f"{moment(instant):%Y-%m-%d %H:%M} UTC"


def plain(text: str) -> str:
    """The text on one line, with what could steer a terminal or a mail header made visible."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)
