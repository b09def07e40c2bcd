"""A capture is one commit where its block ends: seeded from what is committed, gone with an exception, and closed after."""

from __future__ import annotations

import pytest

from onefold import testing
from onefold.terms.errors import Contended
from onefold.testing import AwaitedApp
from tests.cell.rooms import Room


async def room_of_41(app: AwaitedApp) -> None:
    async with app.open(Room, "lobby") as room, room.capture() as draft:
        draft.visits = 41
        draft.occupants = ["a"]


async def test_a_capture_begins_with_what_is_committed_and_the_next_one_with_what_it_committed() -> None:
    async with testing.open(Room) as app:
        await room_of_41(app)
        lobby = app.cell(Room, "lobby")
        for expected in (42, 43):
            async with lobby.capture() as draft:
                assert (draft.visits, draft.occupants) == (expected - 1, ["a"])
                draft.visits += 1
                draft.visits += 1
                draft.visits -= 1
            assert (await lobby.read()).visits == expected


async def test_what_was_written_before_an_exception_is_gone_with_it() -> None:
    async with testing.open(Room) as app:
        await room_of_41(app)
        lobby = app.cell(Room, "lobby")

        async def fail() -> None:
            async with lobby.capture() as draft:
                draft.visits = 100
                draft.occupants.append("b")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        assert await lobby.read() == Room(visits=41, occupants=["a"])


async def test_after_its_block_a_draft_is_the_committed_record_and_shares_nothing_with_what_was_written() -> None:
    async with testing.open(Room) as app:
        await room_of_41(app)
        lobby = app.cell(Room, "lobby")
        mine = ["a", "b"]
        async with lobby.capture() as draft:
            draft.occupants = mine
        mine.append("c")
        assert draft.occupants == ["a", "b"]
        assert draft == await lobby.read()


async def test_a_capture_that_changes_nothing_commits_nothing() -> None:
    async with testing.open(Room) as app:
        await room_of_41(app)
        lobby = app.cell(Room, "lobby")
        async with lobby.capture() as draft:
            draft.visits = 100
            draft.visits = 41
            await lobby.turn(Room.greet)("b")
        assert (await lobby.read()).visits == 42


async def test_of_two_captures_of_one_record_the_second_is_refused_whole() -> None:
    async with testing.open(Room) as app:
        await room_of_41(app)
        lobby = app.cell(Room, "lobby")

        async def within() -> None:
            async with lobby.capture() as outer:
                outer.occupants.append("outer")
                async with lobby.capture() as inner:
                    inner.visits += 1

        with pytest.raises(Contended):
            await within()
        assert await lobby.read() == Room(visits=42, occupants=["a"])
