"""Mail that was folded and whose sender was not told yet keeps its id and its reply, whatever windows and sweeps say."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from onefold import Answer, Decision, Module, Owed
from onefold.host.sweep import Swept
from onefold.kernel.tables import OWED, TURN
from onefold.node import sweeping
from onefold.node.owning import UNGUARDED
from onefold.store.contract import Query
from onefold.testing import Stage
from onefold.testing.stage import Killed
from tests.guarantees.conftest import Stages

WINDOW_MS = 100
LONG = "k" * 300  # a key that leaves as its hash


@dataclass(frozen=True)
class Note:
    id: str
    to: str


@dataclass(frozen=True)
class Noted:
    id: str
    place: int = 0


Notes = tuple[str, ...]


def take(notes: Notes, note: Note, now: datetime) -> Decision[Noted, Noted]:
    return Decision(facts=[Noted(note.id)], reply=Noted(note.id, len(notes) + 1))


def ask(notes: Notes, note: Note, now: datetime) -> Decision[Noted, Noted]:
    return Decision(owed=[Owed("deliver.inbox", note.id, Note(note.id, note.to))], reply=Noted(note.id))


def heard(notes: Notes, answer: Answer[Noted], now: datetime) -> Decision[Noted, None]:
    return Decision(facts=[answer.body])


def add(notes: Notes, fact: Noted) -> Notes:
    return (*notes, f"{fact.id} {fact.place}" if fact.place else fact.id)


def shown(notes: Notes) -> Notes:
    return notes


def inbox(ids_for: str | None = None) -> Module[Any, Any, Any, Any, Any]:
    return Module("inbox", initial=(), key=lambda note: note.to, decide=take, evolve=add, view=shown, ids_for=ids_for)


desk: Module[Any, Any, Any, Any, Any] = Module(
    "desk", initial=(), key=lambda note: note.id, decide=ask, evolve=add, view=shown, on_answer=heard
)


async def cut_off(stage: Stage, principal: str | None, id: str) -> None:
    """The mail is folded, and the process dies before its sender hears of it. Half a second later it is open again."""
    stage.kill_at("after-send")
    with suppress(Killed):
        await stage.host.deliver(desk, Note(id, "a"), caller=stage.caller(principal))
    await stage.let_die()
    stage.live_on()
    stage.clock.step_to(stage.clock.now() + 5 * WINDOW_MS)
    await stage.open()


async def held(stage: Stage) -> list[bool]:
    """Of each turn of mail, whether its reply is there."""
    (rows,) = await (await stage.host.space("main")).look(Query(TURN, order=("n",)))
    return [row[TURN.at["reply"]] is not None for row in rows if str(row[TURN.at["event"]]).startswith("m/")]


@pytest.mark.parametrize("id", ["n1", "a/b~", LONG])
@pytest.mark.parametrize("principal", [None, "studio_42"])
async def test_a_sweep_takes_no_reply_that_a_sender_still_waits_for(
    stages: Stages, id: str, principal: str | None
) -> None:
    stage = await stages(desk, inbox())
    await cut_off(stage, principal, id)
    caller = stage.caller(principal)
    assert await held(stage) == [True]
    await stage.host.sweep(replies=0, caller=caller)
    assert await held(stage) == [True]
    await stage.advance("10s")
    assert await stage.host.read(desk, id, caller=caller) == (f"{id} 1",)
    assert await stage.host.read(inbox(), "a", caller=caller) == (id,)
    (owed,) = await (await stage.host.space("main")).look(Query(OWED))
    assert not owed


async def test_a_reply_whose_sender_was_told_goes_with_the_others(stages: Stages) -> None:
    stage = await stages(desk, inbox())
    for number in range(3):
        await stage.host.deliver(desk, Note(f"n{number}", "a"), caller=stage.caller())
    await stage.advance("1s")
    assert await held(stage) == [True] * 3
    assert await stage.host.sweep(replies=0, caller=stage.caller()) == Swept(replies=6)
    assert await held(stage) == [False] * 3


@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("id", ["n1", LONG])
async def test_mail_that_comes_again_after_the_window_of_ids_is_no_new_event(
    stages: Stages, swept: bool, id: str
) -> None:
    stage = await stages(desk, inbox("100 ms"))
    await cut_off(stage, None, id)
    if swept:
        space, now = await stage.host.space("main"), stage.clock.now()
        assert (await sweeping.ids(space, UNGUARDED, "inbox", now - WINDOW_MS, now)).count == 0
    await stage.advance("10s")
    assert await stage.host.read(inbox(), "a", caller=stage.caller()) == (id,)
    assert await stage.host.read(desk, id, caller=stage.caller()) == (f"{id} 1",)


async def test_the_id_of_mail_goes_after_its_window_once_its_sender_was_told(stages: Stages) -> None:
    stage = await stages(desk, inbox("1 day"))
    await stage.host.deliver(desk, Note("n1", "a"), caller=stage.caller())
    await stage.advance("1s")
    await stage.close()
    stage.clock.step_to(stage.clock.now() + 86_400_000)
    await stage.open()
    await stage.advance("2m")
    (rows,) = await (await stage.host.space("main")).look(Query(TURN))
    assert not [row for row in rows if str(row[TURN.at["event"]]).startswith("m/")]
