"""ports.sandbox.words - what the host and a worker say to each other, and how it is framed.

For: a message as a typed value, four bytes of its length and its JSON.
Never: pickle; a message longer than its bound; what a worker says taken for more than its shape (judging looks at it).
Was wrong once: lines of text. A file that printed spoke in its worker's name.

`run` is the number of one pass in this worker, `n` of one question within it.
"""

from __future__ import annotations

import struct
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from onefold.actuators.carried import Change, PassEnded, Progress
from onefold.actuators.limits import Limits
from onefold.actuators.parts import NULL, Trouble
from onefold.actuators.state import Journal, State
from onefold.actuators.words import Entry, Fact, Stepped, Trying, Waiting

HEAD: Final = struct.Struct(">I")
MOST: Final = 8 << 20
"""Bytes of one message of a worker. The largest honest one is a pass's last thousand waits."""
Kin = Literal["begin", "show", "send", "cancel"]
Statement = Literal["execute", "fetch", "fetch_one"]
Told: TypeAlias = Stepped | Trying | Waiting | Change | Progress
"""The events that a pass may fold. Whatever else a run hears is said by others."""


class Line(Struct, frozen=True, tag_field="say", tag=True, omit_defaults=True):
    """All messages carry their class name as "say"."""


# --- what a file says of itself -----------------------------------------------------------------------


class PortSaid(Struct, frozen=True):
    name: str
    promise: Literal["dedupes", "lookup", "neither"]


class Said(Struct, frozen=True, omit_defaults=True):
    """One actuator of a file, as its own process reads it. input: the schema, or None where it takes nothing."""

    name: str
    description: str
    output: dict[str, Any]
    input: dict[str, Any] | None = None
    model: str = ""
    hosts: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    ports: tuple[PortSaid, ...] = ()
    migrations: tuple[str, ...] = ()
    dedupe_by: tuple[str, ...] = ()
    tool: bool = True
    webhook: Literal["standard", "stripe", "github", "slack"] | None = None
    long_wait: Literal["auto", "receipt", "task"] = "auto"
    hints: dict[str, bool] = {}
    limits: Limits | None = None


class Wrong(Struct, frozen=True):
    """One thing that keeps a file from being loaded, or one argument from being taken."""

    where: str
    problem: str
    got: Any = None


# --- to the worker ------------------------------------------------------------------------------------


class Load(Line, frozen=True):
    name: str
    source: str


class Check(Line, frozen=True):
    """Look at the arguments of a call."""

    n: int
    actuator: str
    arguments: Raw


class Go(Line, frozen=True):
    """Make a pass over this run."""

    run: int
    actuator: str
    state: State
    entries: tuple[Entry, ...]


class Came(Line, frozen=True):
    """These facts of the run are committed."""

    run: int
    facts: tuple[Fact, ...]


class Yes(Line, frozen=True):
    """What was asked is done, and gave this."""

    run: int
    n: int
    value: Raw = NULL


class No(Line, frozen=True):
    """What was asked was refused, or raised."""

    run: int
    n: int
    trouble: Trouble


class Stop(Line, frozen=True):
    """The pass is over."""

    run: int


class Ping(Line, frozen=True):
    """Are you there?"""


# --- from the worker ----------------------------------------------------------------------------------


class Ready(Line, frozen=True):
    actuators: tuple[Said, ...]


class Unready(Line, frozen=True):
    findings: tuple[Wrong, ...]


class Checked(Line, frozen=True):
    """The input as it is kept, or what is wrong with it."""

    n: int
    input: Raw = NULL
    faults: tuple[Wrong, ...] = ()


class Fold(Line, frozen=True):
    run: int
    n: int
    event: Told


class Author(Line, frozen=True):
    """A database step begins: this attempt of this call."""

    run: int
    n: int
    call: str
    attempt: int


class Verb(Line, frozen=True):
    """One statement of it. values: cells, as a journal has them."""

    run: int
    n: int
    verb: Statement
    sql: str
    values: Raw


class Wrote(Line, frozen=True):
    """It is done, and this is its outcome."""

    run: int
    n: int
    event: Stepped


class Undo(Line, frozen=True):
    """It raised: nothing of it is kept."""

    run: int
    n: int


class Child(Line, frozen=True):
    """A verb for another run, with its arguments as a list."""

    run: int
    n: int
    verb: Kin
    arguments: Raw


class Ended(Line, frozen=True):
    run: int
    outcome: PassEnded


class Broke(Line, frozen=True):
    """The pass itself raised; it has no outcome."""

    run: int
    why: str


class Pong(Line, frozen=True):
    """Yes."""


ToWorker: TypeAlias = Load | Check | Go | Came | Yes | No | Stop | Ping
ToHost: TypeAlias = Ready | Unready | Checked | Fold | Author | Verb | Wrote | Undo | Child | Ended | Broke | Pong


def _written(value: Any) -> Any:
    """A journal travels beside its state."""
    if type(value) is Journal:
        return None
    raise TypeError(f"a {type(value).__name__} is no part of a message")


def _read(kind: type, value: Any) -> Any:
    return Journal() if kind is Journal else value


_encode = msgspec.json.Encoder(enc_hook=_written).encode
to_host = msgspec.json.Decoder(ToHost).decode
to_worker = msgspec.json.Decoder(ToWorker, dec_hook=_read).decode


def framed(word: ToWorker | ToHost) -> bytes:
    raw = _encode(word)
    return HEAD.pack(len(raw)) + raw
