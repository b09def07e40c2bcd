"""Modules with one fault each, and the law that is to find it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, assert_never

from onefold import Answer, Decision, Module, Owed

AnyModule = Module[Any, Any, Any, Any, Any]


@dataclass(frozen=True)
class Put:
    id: str
    book: str
    text: str
    wrong: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Clear:
    id: str
    book: str


@dataclass(frozen=True)
class Written:
    text: str
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Cleared:
    count: int


@dataclass(frozen=True)
class Printed:
    page: str


@dataclass(frozen=True)
class Whole:
    lines: list[str]
    pages: int


@dataclass(frozen=True)
class Page:
    text: str


@dataclass
class Book:
    lines: list[str] = field(default_factory=list)
    pages: int = 0


Event = Put | Clear
Fact = Written | Cleared | Printed | Whole


def decide(book: Book, event: Event, now: datetime) -> Decision[Fact, int]:
    match event:
        case Put(id=id, text=text):
            return Decision(facts=[Written(text)], owed=[Owed("printer", id, Page(text))], reply=len(book.lines) + 1)
        case Clear():
            return Decision(facts=[Cleared(len(book.lines))] if book.lines else [], reply=0)


def evolve(book: Book, fact: Fact) -> Book:
    match fact:
        case Written(text=text):
            return replace(book, lines=[*book.lines, text])
        case Cleared():
            return replace(book, lines=[])
        case Printed():
            return replace(book, pages=book.pages + 1)
        case Whole(lines=lines, pages=pages):
            return Book(list(lines), pages)
    assert_never(fact)


def on_answer(book: Book, answer: Answer[Page], now: datetime) -> Decision[Fact, None]:
    return Decision(facts=[Printed(answer.body.text)])


def view(book: Book) -> list[str]:
    return book.lines


def snapshot(book: Book) -> Whole:
    return Whole(book.lines, book.pages)


def make(**parts: Any) -> AnyModule:
    whole: dict[str, Any] = {
        "initial": Book(), "key": lambda event: event.book, "decide": decide, "evolve": evolve, "view": view,
        "on_answer": on_answer, "snapshot": snapshot,
    }  # fmt: skip
    return Module("book", **{**whole, **parts})


# --- one fault each --------------------------------------------------------------------------------------


def counting() -> AnyModule:
    """The line's number comes from the process and not from the state."""
    ticks = itertools.count()

    def decide(book: Book, event: Event, now: datetime) -> Decision[Fact, int]:
        return Decision(facts=[Written(f"line {next(ticks)}")], reply=1)

    return make(decide=decide)


def growing() -> AnyModule:
    """The state that was handed in is changed, and given back as it is."""

    def view(book: Book) -> list[str]:
        if "seen" not in book.lines:
            book.lines.append("seen")
        return ["one"]

    return make(view=view)


def half_read() -> AnyModule:
    """No case for the fact of an answer."""

    def evolve(book: Book, fact: Fact) -> Book:
        match fact:
            case Written(text=text):
                return replace(book, lines=[*book.lines, text])
            case Cleared():
                return replace(book, lines=[])
            case Whole(lines=lines, pages=pages):
                return Book(list(lines), pages)
            case _:
                return None  # type: ignore[return-value]

    return make(evolve=evolve)


def refusing() -> AnyModule:
    """A decline that is raised."""

    def decide(book: Book, event: Event, now: datetime) -> Decision[Fact, int]:
        if isinstance(event, Clear):
            raise ValueError("nothing to clear")
        return Decision(facts=[Written(event.text)], reply=1)

    return make(decide=decide)


def unmet() -> AnyModule:
    """A case is missing for a fact that nothing decides yet."""

    def evolve(book: Book, fact: Written | Cleared) -> Book:
        if isinstance(fact, Cleared):
            raise AssertionError("unreachable")
        return replace(book, lines=[*book.lines, fact.text])

    def decide(book: Book, event: Event, now: datetime) -> Decision[Written | Cleared, int]:
        return Decision(facts=[Written("a")], reply=1)

    return make(evolve=evolve, decide=decide, on_answer=None, snapshot=None)


def forgetting() -> AnyModule:
    """A snapshot that leaves the pages out."""

    def snapshot(book: Book) -> Whole:
        return Whole(book.lines, 0)

    return make(snapshot=snapshot)


def clocked() -> AnyModule:
    """What is owed is named by the clock."""

    def decide(book: Book, event: Event, now: datetime) -> Decision[Fact, int]:
        return Decision(facts=[Written("a")], owed=[Owed("printer", f"{event.id} {now}", Page("a"))], reply=1)

    return make(decide=decide)


def reused() -> AnyModule:
    """One key for every page."""

    def decide(book: Book, event: Event, now: datetime) -> Decision[Fact, int]:
        return Decision(owed=[Owed("printer", "page", Page(event.id))], reply=1)

    return make(decide=decide, on_answer=None)


def unnamed() -> AnyModule:
    """The id is of the object, and not of the event."""
    ids: dict[int, str] = {}
    kept: list[object] = []

    def event_id(event: Event) -> str:
        kept.append(event)
        return ids.setdefault(id(event), f"event {len(ids)}")

    return make(event_id=event_id)


def tupled() -> AnyModule:
    """A tuple where a list is annotated: it comes back as one."""

    def decide(book: Book, event: Event, now: datetime) -> Decision[Fact, int]:
        return Decision(facts=[Written("a", tags=("x",))], reply=1)  # type: ignore[arg-type]

    return make(decide=decide)


def mistyped() -> AnyModule:
    """A reply of another type than its annotation."""

    def decide(book: Book, event: Event, now: datetime) -> Decision[Fact, int]:
        return Decision(reply=str(len(book.lines)))  # type: ignore[arg-type]

    return make(decide=decide)


BAD: list[tuple[str, Callable[[], AnyModule]]] = [
    ("purity", counting),
    ("purity", growing),
    ("totality", half_read),
    ("totality", refusing),
    ("totality", unmet),
    ("replay", forgetting),
    ("dedupe", clocked),
    ("dedupe", reused),
    ("dedupe", unnamed),
    ("round trips", tupled),
    ("round trips", mistyped),
]
