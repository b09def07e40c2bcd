"""timers.making - `timers(name, to=...)`: the module, and where its ticks go.

For: `to` as one of a port, a webhook's address, another module's mail, or a cell's turn.
Never: sends; opens anything. A place that cannot take ticks is refused here, in plain words.
Was wrong once: a place known only by name, and looked for when the first tick was due. It was misspelt, and the
schedule of a year was parked in its first night.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from onefold.almanac import tz_version
from onefold.kernel.module import Module
from onefold.kernel.port import DELIVER, POST, Port, Posting
from onefold.kernel.words import Answer, Decision, Dropped
from onefold.terms.errors import Finding, LoadRefused
from onefold.timers import module
from onefold.timers.facts import Fact, Schedule, evolve
from onefold.timers.words import Event, Reply, Tick, Timer

LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class Timers(Module[Schedule, Event, Fact, Reply, Timer | None]):
    """A module of schedules. What sets it apart from one that a person writes stands in these few lines."""

    room = "timers"
    keys_once = True  # a tick is minted once: its generation and instant only rise
    mostly_sleeps = True
    may_void = True
    hears_only_ends = True

    def voids(self, state: Schedule, key: str) -> bool:
        return module.voids(state, key)


def timers(name: str, *, to: Port[Tick, Any] | str) -> Timers:
    """A module whose actors are schedules; their ticks leave through `to`.

    to: a Port that takes Tick · "https://…": each tick posted there, signed by Standard Webhooks · "deliver.<module>":
    an event of another module of the app, whose events include Tick · "post": a turn `tick` of the cell that the owner
    names, "Room/lobby", given what it takes of id, owner, key, due_at, payload. Raises: LoadRefused for anything else.
    """
    port, brings = _place(name, to)

    def decide(state: Schedule, event: Event, now: datetime) -> Decision[Fact, Reply]:
        return module.decide(state, event, now, port=port)

    def on_alarm(state: Schedule, now: datetime) -> Decision[Fact, None]:
        return module.on_alarm(state, now, port=port)

    def on_answer(state: Schedule, answer: Answer[Dropped | None], now: datetime) -> Decision[Fact, None]:
        return module.on_answer(state, answer, now)

    made = Timers(
        name,
        initial=Schedule(),
        key=module.schedule_of,
        decide=decide,
        evolve=evolve,
        view=module.view,
        on_answer=on_answer,
        on_alarm=on_alarm,
        wake=module.wake,
        snapshot=module.snapshot,
    )
    made.owes = {port: Tick}
    made.brings = brings
    made.reckoned_by = tz_version()
    return made


def _place(name: str, to: object) -> tuple[str, tuple[Port[Any, Any] | Posting, ...]]:
    """The name of the port that ticks are owed to, and what the app must be given for it."""
    if isinstance(to, Port):
        return to.name, (to,)
    if isinstance(to, str) and (to == POST or to.startswith(DELIVER)):
        return to, ()
    if isinstance(to, str) and to.startswith(("https://", "http://")):
        posting = Posting(f"webhook.{name}", to, "timer.tick", Tick)
        _check_address(name, to)
        return posting.name, (posting,)
    raise LoadRefused([Finding(f"timers {name!r}, to", _refusal(to))])


def _check_address(name: str, url: str) -> None:
    parts = urlsplit(url)
    if not parts.hostname:
        problem = "is an address without a host"
    elif parts.scheme != "https" and parts.hostname not in LOCAL:
        problem = "posts to another machine over plain http, where anybody on the way reads the payload; use https"
    elif parts.username or parts.password:
        problem = "has a password in its address; the post is signed, so the receiver needs none"
    else:
        return
    raise LoadRefused([Finding(f"timers {name!r}, to", problem)])


def _refusal(to: object) -> str:
    return (
        f'must be a port that takes Tick, an https address, "post", or "deliver." and the name of a module, not {to!r}'
    )
