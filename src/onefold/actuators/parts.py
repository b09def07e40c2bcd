"""actuators.parts - what several words are made of.

For: the base of all words, trouble, a wait, and what people are asked.
Never: a word of its own; behaviour.
Was wrong once: the same eight fields in a wait, its fact and its state. The third forgot one.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Raw, Struct

NULL = Raw(b"null")
WaitKind = Literal["approval", "event", "sleep", "retry", "child"]


class Word(Struct, frozen=True, tag_field="type", tag=True, omit_defaults=True):
    """All words carry their class name as "type"."""


class Part(Struct, frozen=True, omit_defaults=True):
    """What stands inside a word has one class where it stands, and says none."""


class Trouble(Part, frozen=True):
    """Why something failed: `kind` is a class name or a code; `step` and `call` when a step ended the run.

    place: `file:line` of the author's own line that raised, without its folder; no caller is told.
    """

    kind: str
    message: str
    step: str | None = None
    attempts: int | None = None
    call: str | None = None
    data: Raw = NULL
    place: str | None = None


class Asking(Part, frozen=True):
    """What people are asked. need: how many must agree. not_by: who may not decide.

    offer: what they may edit, as JSON, and `rules`: the JSON schema that an edit must fit.
    """

    message: str
    notify: tuple[str, ...]
    need: int = 1
    not_by: tuple[str, ...] = ()
    offer: Raw = NULL
    rules: Raw = NULL


class Wait(Part, frozen=True):
    """A wait as a pass registers it: for `after` milliseconds from now, until an instant, or for ever."""

    call: str
    kind: WaitKind
    name: str
    digest: str
    after: int | None = None
    until: int | None = None
    asking: Asking | None = None
