"""serve.door - what the doors ask of the opened application, as Protocols.

For: the one list of host's verbs that serve may call; mypy holds the real host and the tests' to it.
Never: a verb that only one page wants; a second way to ask for the same thing; a naive instant.
Was wrong once: doors that took host's class. Nothing here could be tested before all of host stood.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

from onefold.host.caller import Caller
from onefold.host.parked import ParkedDetail
from onefold.serve.door_fleet import HasFleet
from onefold.serve.door_reflexes import Incoming, ReflexHost
from onefold.serve.door_tables import HasTables

T_co = TypeVar("T_co", covariant=True)
Json = Any

__all__ = [
    "Actuator",
    "Caller",
    "Catalog",
    "Choice",
    "Clock",
    "Config",
    "Facts",
    "Happening",
    "Hook",
    "Host",
    "Incoming",
    "JournalRow",
    "Json",
    "Key",
    "LinkPage",
    "LinkState",
    "OpenApproval",
    "Page",
    "ParkedDetail",
    "ParkedItem",
    "Pruned",
    "Receipt",
    "Started",
    "Swept",
    "Verdict",
]

Choice = Literal["approve", "reject"]
LinkState = Literal["open", "decided", "expired", "cancelled", "unknown", "changed"]


# --- values that only travel through ---------------------------------------------------------------


class Receipt(Protocol):
    """A frozen picture of a run."""

    @property
    def run_id(self) -> str: ...

    def to_json(self) -> dict[str, Any]:
        """As in API.md: run_id, program, status, and what applies of key, result, error, waits, instants."""


class Started(Protocol):
    """What `start` gives: the receipt, and whether the key had been seen before."""

    @property
    def receipt(self) -> Receipt: ...
    @property
    def replayed(self) -> bool: ...


class Delivered(Protocol):
    """What an event came to: the reply as JSON, and whether it was given before."""

    @property
    def reply(self) -> bytes: ...
    @property
    def replayed(self) -> bool: ...


class Page(Protocol[T_co]):
    """Some items, and where to go on: `after=next`, or None at the end."""

    @property
    def items(self) -> Sequence[T_co]: ...
    @property
    def next(self) -> str | None: ...


class Facts(Page[dict[str, Any]], Protocol):
    """A page of facts. `begins`: the number of the first there is, where earlier ones were asked for and are pruned."""

    @property
    def begins(self) -> int | None: ...


class Pruned(Protocol):
    """What a prune came to: how many facts went, and the number of the first that is kept."""

    @property
    def facts(self) -> int: ...
    @property
    def begins(self) -> int: ...


class Swept(Protocol):
    """How many of each went, or would."""

    @property
    def replies(self) -> int: ...
    @property
    def runs(self) -> int: ...
    @property
    def reflex_runs(self) -> int: ...
    @property
    def intake(self) -> int: ...


class JournalRow(Protocol):
    """One journaled act of a run. `error` is None unless it failed."""

    @property
    def seq(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def step(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def at(self) -> datetime: ...
    @property
    def result(self) -> Json: ...
    @property
    def error(self) -> Json: ...


class OpenApproval(Protocol):
    """An approval somebody is waited for. `shown` is what exactly will happen, as JSON."""

    @property
    def run_id(self) -> str: ...
    @property
    def program(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def since(self) -> datetime: ...
    @property
    def until(self) -> datetime | None: ...
    @property
    def shown(self) -> Json: ...


class Verdict(Protocol):
    """What deciding came to. `by`, `at` and `way`: who decided, when and which way, whoever it was."""

    @property
    def outcome(self) -> Literal["decided", "already_decided", "expired", "cancelled"]: ...
    @property
    def by(self) -> str | Sequence[str] | None: ...
    @property
    def at(self) -> datetime | None: ...
    @property
    def way(self) -> Literal["approved", "rejected"] | None: ...


class LinkPage(Protocol):
    """What an approval link leads to. Of an unknown or forged link only `state` means anything.

    outcome: of `link_page`, and of a second tap, what was decided ("approved" or "rejected"), where
    known; of `link_decide` it is "decided" for the one tap that decided, and state is then "decided".
    """

    @property
    def state(self) -> LinkState: ...
    @property
    def run_id(self) -> str: ...
    @property
    def program(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def shown(self) -> Json: ...
    @property
    def choice(self) -> Choice: ...
    @property
    def since(self) -> datetime | None: ...
    @property
    def until(self) -> datetime | None: ...
    @property
    def by(self) -> str | Sequence[str] | None: ...
    @property
    def at(self) -> datetime | None: ...
    @property
    def outcome(self) -> str | None: ...


class ParkedItem(Protocol):
    """Something that waits for a person: what, why, since when."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def program(self) -> str: ...
    @property
    def cause(self) -> str: ...
    @property
    def since(self) -> datetime: ...


class Happening(Protocol):
    """One thing that just happened, for the live page."""

    @property
    def at(self) -> datetime: ...
    @property
    def what(self) -> str: ...
    @property
    def run_id(self) -> str | None: ...
    @property
    def program(self) -> str | None: ...
    @property
    def text(self) -> str: ...


# --- what is there to serve ------------------------------------------------------------------------


class Actuator(Protocol):
    """One durable function, as far as a door must know it. Schemas are flat, refs inlined, checked at load."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def tool(self) -> bool: ...
    @property
    def webhook(self) -> str | None: ...
    @property
    def long_wait(self) -> str: ...
    @property
    def hints(self) -> Mapping[str, bool]: ...
    @property
    def input_schema(self) -> dict[str, Any]: ...
    @property
    def output_schema(self) -> dict[str, Any]: ...


class Catalog(Protocol):
    """The parts of the application, by name."""

    @property
    def title(self) -> str: ...
    @property
    def actuators(self) -> Mapping[str, Actuator]: ...
    @property
    def modules(self) -> Mapping[str, Any]: ...
    @property
    def cells(self) -> Mapping[str, Any]: ...

    generation: int


class Key(Protocol):
    """One bearer key: whom it speaks for, what it may do, and which variable holds it."""

    @property
    def secret_env(self) -> str: ...
    @property
    def may(self) -> frozenset[Literal["call", "read", "operate", "deploy"]]: ...
    @property
    def principal(self) -> str | None: ...


class Hook(Protocol):
    """How one signed door is checked, and who its calls run as."""

    @property
    def secret_env(self) -> str: ...
    @property
    def scheme(self) -> str | None: ...
    @property
    def principal(self) -> str | None: ...


class Config(Protocol):
    """How the application is run, as far as a door must know it."""

    @property
    def listen(self) -> tuple[str, int]: ...
    @property
    def loopback(self) -> bool: ...
    @property
    def public_url(self) -> str: ...
    @property
    def keys(self) -> Sequence[Key]: ...
    @property
    def hooks(self) -> Mapping[str, Hook]: ...
    @property
    def signals(self) -> Mapping[str, Incoming]: ...

    def secret(self, name: str, asks: str) -> str:
        """What the variable `name` holds, which the setting `asks` names. Raises: LoadRefused when it is unset or too short."""


class Clock(Protocol):
    def now(self) -> int:
        """The instant it is, in milliseconds since 1970."""


# --- the verbs -------------------------------------------------------------------------------------


class Host(ReflexHost, HasFleet, HasTables, Protocol):
    """The opened application. Every verb checks the principal; the doors check the rights."""

    @property
    def catalog(self) -> Catalog: ...
    @property
    def config(self) -> Config: ...
    @property
    def clock(self) -> Clock: ...

    async def start(
        self, name: str, arguments: Json, *, key: str | None, caller: Caller, callback: str | None = ...
    ) -> Started: ...
    async def receipt(self, run_id: str, *, wait_ms: int = 0, seen: Any = None, caller: Caller) -> Receipt: ...
    async def runs_list(
        self,
        *,
        program: str | None = None,
        status: str | None = None,
        key: str | None = None,
        limit: int = 100,
        after: str | None = None,
        caller: Caller,
    ) -> Page[Receipt]: ...
    async def run_journal(self, run_id: str, *, caller: Caller) -> Sequence[JournalRow]: ...
    async def run_history(self, run_id: str, *, caller: Caller) -> tuple[Sequence[JournalRow], Mapping[str, Json]]: ...
    async def run_send(
        self, run_id: str, event: str, body: Json, *, key: str | None = None, caller: Caller
    ) -> Receipt: ...
    async def run_cancel(self, run_id: str, reason: str | None = None, *, caller: Caller) -> Receipt: ...
    async def run_fork(self, run: str, from_step: str, *, key: str | None, caller: Caller) -> Receipt: ...
    async def run_retry(self, run_id: str, *, caller: Caller) -> Receipt: ...
    async def approvals_list(self, *, caller: Caller) -> Sequence[OpenApproval]: ...
    async def approvals_decide(
        self,
        run_id: str,
        name: str,
        *,
        approve: bool,
        by: str,
        reason: str | None = None,
        comment: str | None = None,
        value: Json = None,
        caller: Caller,
    ) -> Verdict: ...
    async def link_page(self, token: str) -> LinkPage: ...
    async def link_decide(
        self, token: str, *, choice: Choice, reason: str | None, by: str | None = None
    ) -> LinkPage: ...
    async def deliver_raw(self, module: str, raw: bytes, *, caller: Caller) -> Delivered: ...
    async def read_json(self, module: str, key: str, *, caller: Caller) -> dict[str, Any]: ...
    async def facts(self, module: str, key: str, *, after: int = 0, limit: int = 100, caller: Caller) -> Facts: ...
    async def actors(
        self, module: str, *, prefix: str = "", limit: int = 100, after: str | None = None, caller: Caller
    ) -> Page[dict[str, Any]]: ...
    async def prune_named(self, module: str, key: str, *, caller: Caller) -> Pruned: ...
    async def sweep(
        self,
        *,
        runs: int | None = None,
        replies: int | None = None,
        reflex_runs: int | None = None,
        intake: int | None = None,
        dry_run: bool = False,
        caller: Caller,
    ) -> Swept: ...
    async def parked_list(self, *, caller: Caller) -> Sequence[ParkedItem]: ...
    async def parked_show(self, id: str, *, caller: Caller) -> ParkedDetail: ...
    async def parked_retry(self, id: str, *, caller: Caller) -> None: ...
    async def parked_drop(self, id: str, *, reason: str, caller: Caller) -> None: ...
    async def ready(self) -> Mapping[str, Any]: ...
    def watch(self) -> AsyncIterator[Happening]: ...
