"""A box keeps its letters in order, once each, until their turn is committed; one that cannot be folded waits or parks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from onefold.fleet import mailbox
from onefold.fleet.mailbox import BOX_AT_MOST, MAIL, MAILS, TRIES, box, due, failed, letter, ready, waiting
from onefold.fleet.posting import Lowest, Post, came, posting
from onefold.store.contract import Append, AuthorSpace, Done, Last, Remove, Row, Write
from onefold.store.memory import MemoryWorld
from onefold.store.sqlite import SqliteWorld
from onefold.terms.errors import Busy, KeyConflict
from onefold.terms.ids import ActorId

ROOM = ActorId("Room", None, "lobby")
OTHER = ActorId("Room", "studio", "lobby")


@pytest.fixture(params=["memory", "sqlite"])
async def space(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AuthorSpace]:
    world: Any = MemoryWorld(clock=lambda: 0) if request.param == "memory" else SqliteWorld(tmp_path, clock=lambda: 0)
    yield await world.open("main", (MAILS,))
    await world.close()


async def post(space: AuthorSpace, to: ActorId, key: str, sender: str = "ada", body: bytes = b"{}", at: int = 0) -> Any:
    """Whether it was there already, or what refused it."""
    (told,) = await post_all(space, [letter(space.mint(MAIL), to, f"d/{key}", sender, body, at)])
    return told


async def post_all(space: AuthorSpace, rows: list[Row], lowest: Lowest | None = None) -> list[Any]:
    posts = [Post(row) for row in rows]
    outcome = await space.transact(posting(posts, lowest))
    assert isinstance(outcome, Done)
    return list(came(posts, outcome))


async def write(space: AuthorSpace, change: Write) -> None:
    def body() -> Any:
        yield ()
        return Last((change,), None)

    assert isinstance(await space.transact(body), Done)


async def of(space: AuthorSpace, to: ActorId, now: int) -> list[list[str]]:
    (rows,) = await space.look(box(to, 100))
    return [[mail.event for mail in lane] for lane in ready(rows, now)]


async def test_letters_are_ready_by_sender_in_the_order_of_posting(space: AuthorSpace) -> None:
    for n, sender in enumerate(["ada", "bob", "ada", "bob", "ada"]):
        await post(space, ROOM, str(n), sender)
    await post(space, OTHER, "0")
    assert await of(space, ROOM, 0) == [["d/0", "d/2", "d/4"], ["d/1", "d/3"]]
    assert await of(space, OTHER, 0) == [["d/0"]]
    (rows,) = await space.look(due(0, 100))
    assert mailbox.boxes(rows) == [ROOM, OTHER]


async def test_one_id_is_one_letter(space: AuthorSpace) -> None:
    assert await post(space, ROOM, "k") is False
    assert await post(space, ROOM, "k") is True
    assert isinstance(await post(space, ROOM, "k", body=b"[]"), KeyConflict)
    assert await of(space, ROOM, 0) == [["d/k"]]


async def test_behind_a_letter_that_waits_its_senders_others_wait_and_nobody_elses(space: AuthorSpace) -> None:
    for n, sender in enumerate(["ada", "ada", "bob"]):
        await post(space, ROOM, str(n), sender)
    (rows,) = await space.look(box(ROOM, 100))
    await write(space, failed(waiting(rows[0]), 0, "the disk is full"))
    assert await of(space, ROOM, 0) == [["d/2"]]
    assert await of(space, ROOM, 60_000) == [["d/0", "d/1"], ["d/2"]]


async def test_a_letter_that_never_folds_is_parked_and_holds_up_nobody(space: AuthorSpace) -> None:
    await post(space, ROOM, "0")
    await post(space, ROOM, "1")
    now, waits = 0, []
    for _ in range(TRIES):
        (rows,) = await space.look(box(ROOM, 1))
        await write(space, failed(waiting(rows[0]), now, "broken"))
        (rows,) = await space.look(box(ROOM, 1))
        at = rows[0][MAIL.at["due_at"]]
        if at is not None:
            waits.append(int(at) - now)
            now = int(at)
    assert waits == sorted(waits)
    (given_up,) = await space.look(mailbox.parked())
    assert [row[MAIL.at["error"]] for row in given_up] == ["broken"]
    assert await of(space, ROOM, now) == [["d/1"]]
    await write(space, mailbox.again(int(given_up[0][0]), now))
    assert await of(space, ROOM, now) == [["d/0", "d/1"]]


@pytest.mark.parametrize("shared", [True, False])
async def test_a_box_has_a_bound(space: AuthorSpace, monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    assert BOX_AT_MOST >= 1_000
    lowest = Lowest(shared=shared)
    monkeypatch.setattr(mailbox, "BOX_AT_MOST", 3)

    def rows(to: ActorId, *keys: str) -> list[Row]:
        return [letter(space.mint(MAIL), to, f"d/{key}", "ada", b"{}", 0) for key in keys]

    assert await post_all(space, rows(ROOM, "0", "1"), lowest) == [False, False]
    told = await post_all(space, [*rows(ROOM, "2", "3"), *rows(OTHER, "0"), *rows(ROOM, "1")], lowest)
    assert [told[0], *told[2:]] == [False, False, True], "what is in the box already is no further letter"
    assert isinstance(told[1], Busy)
    (there,) = await space.look(box(ROOM, 100))
    await write(space, Remove(MAIL, keys=[(there[0][0],)]))
    assert await post_all(space, rows(ROOM, "3"), lowest) == [False]


async def test_letters_that_are_posted_together_are_answered_one_by_one(space: AuthorSpace) -> None:
    await post(space, ROOM, "old")
    given = [("new", b"{}"), ("old", b"{}"), ("old", b"[]"), ("new", b"{}"), ("new", b"[]"), ("last", b"{}")]
    told = await post_all(space, [letter(space.mint(MAIL), ROOM, f"d/{key}", "ada", body, 0) for key, body in given])
    assert [KeyConflict if isinstance(each, KeyConflict) else each for each in told] == [
        False,
        True,
        KeyConflict,
        True,
        KeyConflict,
        False,
    ]
    assert await of(space, ROOM, 0) == [["d/old", "d/new", "d/last"]]


def test_a_box_that_another_node_empties_between_two_looks_takes_a_letter() -> None:
    row = letter(2, ROOM, "d/2", "ada", b"{}", 0)
    body: Any = posting([Post(row)])()
    next(body)
    with pytest.raises(StopIteration) as end:
        body.send(([], [letter(1, ROOM, "d/1", "ada", b"{}", 0)], []))
    assert end.value.value == Last((Append(MAIL, [row], met="keep"),), [None])
