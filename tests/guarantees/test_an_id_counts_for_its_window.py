"""`ids_for`: up to the end of its window a repeat gets the first reply, from there on it is a new event."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onefold import Module
from onefold.host.driver import BEAT_MS
from onefold.kernel.tables import TURN
from onefold.store.contract import Query, Row
from onefold.terms.errors import KeyConflict, LoadRefused
from onefold.testing import Stage
from tests.guarantees import shop
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Accepted, Account, Deposit, PayOut, Provider

DAY_MS = 86_400_000
AnyModule = Module[Any, Any, Any, Any, Any]


def bank_for(ids_for: str | None, snapshot_every: int = 500) -> AnyModule:
    return Module(
        "bank",
        initial=Account(),
        key=lambda event: event.account,
        decide=shop.decide,
        evolve=shop.evolve,
        view=shop.view,
        on_answer=shop.on_answer,
        snapshot=shop.snapshot,
        snapshot_every=snapshot_every,
        ids_for=ids_for,
    )


async def turns(stage: Stage) -> list[Row]:
    (rows,) = await (await stage.host.space("main")).look(Query(TURN, order=("n",)))
    return list(rows)


async def put(stage: Stage, module: AnyModule, id: str, amount: int = 1, key: str = "a") -> Any:
    return await stage.host.deliver(module, Deposit(id, key, amount), caller=stage.caller())


@pytest.fixture(params=["before any beat", "after the beats"])
def beats(request: pytest.FixtureRequest) -> bool:
    """Whether the sweep has been by. It must make no difference."""
    return bool(request.param == "after the beats")


async def passes(stage: Stage, ms: int, beats: bool = True) -> None:
    """Let time pass while nothing is open, then for two beats, or for none."""
    await stage.close()
    rung = 2 * BEAT_MS if beats and ms > 2 * BEAT_MS else 0
    stage.clock.step_to(stage.clock.now() + ms - rung)
    await stage.open()
    await stage.advance(f"{rung} ms")


async def test_the_window_ends_at_its_last_millisecond_and_not_before(stages: Stages, beats: bool) -> None:
    module = bank_for("1 day")
    stage = await stages(module)
    assert await put(stage, module, "d1", 5) == Accepted(5)
    await passes(stage, DAY_MS - 1, beats)
    assert await put(stage, module, "d1", 5) == Accepted(5)
    with pytest.raises(KeyConflict):
        await put(stage, module, "d1", 6)
    await passes(stage, 1, beats)
    assert await put(stage, module, "d1", 6) == Accepted(11)
    await passes(stage, DAY_MS - 1, beats)
    assert await put(stage, module, "d1", 6) == Accepted(11)
    await stage.crash()
    assert await put(stage, module, "d1", 6) == Accepted(11)
    assert (await stage.host.read(module, "a", caller=stage.caller())).balance == 11


async def test_repeats_after_the_window_at_one_moment_count_once_again(stages: Stages) -> None:
    module = bank_for("1 day")
    stage = await stages(module)
    await put(stage, module, "d1")
    await passes(stage, DAY_MS)
    answers = await asyncio.gather(*(put(stage, module, "d1") for _ in range(20)))
    assert answers == [Accepted(2)] * 20
    await stage.crash()
    assert await put(stage, module, "d1") == Accepted(2)


async def test_ids_without_a_window_count_for_ever(stages: Stages) -> None:
    module = bank_for(None)
    stage = await stages(module)
    await put(stage, module, "d1")
    before = await turns(stage)
    await passes(stage, 40 * DAY_MS)
    assert await put(stage, module, "d1") == Accepted(1)
    assert await turns(stage) == before


async def test_the_settings_give_a_window_to_modules_that_declare_none(stages: Stages) -> None:
    module, own = bank_for(None), bank_for("10 days")
    stage = await stages(module, settings={"retention": {"ids": "1 day"}})
    await put(stage, module, "d1")
    await passes(stage, DAY_MS)
    assert await put(stage, module, "d1") == Accepted(2)
    await stage.close()
    stage.parts = (own,)
    await stage.open()
    await passes(stage, 5 * DAY_MS)
    assert await put(stage, own, "d1") == Accepted(2)


async def test_a_window_that_is_declared_later_or_taken_back_holds_for_ids_from_before(stages: Stages) -> None:
    ever, day = bank_for(None), bank_for("1 day")
    stage = await stages(ever)
    for module, id, balance in ((ever, "old", 1), (day, "new", 2), (ever, "old", 1), (ever, "new", 2), (day, "old", 1)):
        await stage.close()
        stage.parts = (module,)
        await stage.open()
        assert await put(stage, module, id) == Accepted(balance)  # what it was answered first
    await passes(stage, DAY_MS)
    assert await put(stage, day, "old") == Accepted(3)


async def test_freeing_takes_the_id_its_digest_and_reply_and_leaves_the_facts(stages: Stages) -> None:
    module = bank_for("1 day")
    stage = await stages(module)
    for n in range(5):
        await put(stage, module, f"d{n}")
    history = await stage.host.history(module, "a", caller=stage.caller())
    await passes(stage, DAY_MS)
    await stage.advance(f"{2 * BEAT_MS} ms")
    rows = await turns(stage)
    assert [row[TURN.at["event"]] for row in rows] == [f"f/{row[0]!s}" for row in rows]
    assert {(row[TURN.at["digest"]], row[TURN.at["reply"]]) for row in rows} == {(b"", None)}
    assert await stage.host.history(module, "a", caller=stage.caller()) == history
    await stage.crash()
    assert (await stage.host.read(module, "a", caller=stage.caller())).balance == 5


async def test_an_actor_with_a_window_and_a_prune_keeps_few_rows_however_long_it_lives(stages: Stages) -> None:
    module = bank_for("1 day", snapshot_every=10)
    stage = await stages(module)
    left = []
    for day in range(4):
        for n in range(30):
            await put(stage, module, f"{day}-{n}")
        await passes(stage, DAY_MS)
        await stage.host.prune(module, "a", caller=stage.caller())
        await stage.advance(f"{2 * BEAT_MS} ms")
        left.append(len(await turns(stage)))
    assert max(left) <= 60
    assert left[-1] <= left[0] + 30
    assert (await stage.host.read(module, "a", caller=stage.caller())).balance == 120
    await stage.crash()
    assert (await stage.host.read(module, "a", caller=stage.caller())).balance == 120
    assert await put(stage, module, "0-0") == Accepted(121)


async def test_a_beat_looks_at_no_turn_a_second_time(stages: Stages, monkeypatch: pytest.MonkeyPatch) -> None:
    module = bank_for("1 day")
    stage = await stages(module)
    for part in range(3):
        await asyncio.gather(*(put(stage, module, f"{part}-{n}", key=f"k{n % 50}") for n in range(500)))
    await passes(stage, DAY_MS)
    await stage.advance(f"{2 * BEAT_MS} ms")
    await asyncio.gather(*(put(stage, module, f"fresh-{n}", key=f"k{n % 50}") for n in range(700)))
    space = await stage.host.space("main")
    look, read = space.look, [0]

    async def counted(*queries: Query) -> Any:
        answers = await look(*queries)
        scans = [rows for query, rows in zip(queries, answers, strict=True) if query.table is TURN]
        read[0] = max([read[0], *map(len, scans)])
        return answers

    with monkeypatch.context() as patch:
        patch.setattr(space, "look", counted)
        await stage.advance(f"{3 * BEAT_MS} ms")
    assert read[0] <= 512  # of 2,200; none of the 1,500 that are settled
    assert {row[TURN.at["event"]][:2] for row in (await turns(stage))[:1500]} == {"f/"}  # type: ignore[index]


async def test_a_key_owed_again_by_a_new_event_is_never_sent_twice_nor_with_other_bytes(
    stages: Stages, provider: Provider
) -> None:
    module = bank_for("1 day")
    stage = await stages(module, provider.dedupes())
    caller = stage.caller()
    await put(stage, module, "d1", 100)
    await stage.host.deliver(module, PayOut("p1", "a", 10), caller=caller)
    await passes(stage, DAY_MS)
    assert len(provider.calls) == 1
    await stage.host.deliver(module, PayOut("p1", "a", 10), caller=caller)
    await stage.settle()
    assert len(provider.calls) == 1
    await passes(stage, DAY_MS)
    with pytest.raises(KeyConflict):
        await stage.host.deliver(module, PayOut("p1", "a", 11), caller=caller)


async def test_a_clock_that_was_set_back_lets_no_turn_stand_in_front_of_all_others(stages: Stages) -> None:
    module = bank_for("1 day")
    stage = await stages(module)
    await put(stage, module, "ahead", key="wrong")
    await stage.close()
    stage.clock.set_back(30 * DAY_MS)
    await stage.open()
    await put(stage, module, "d1")
    await passes(stage, DAY_MS)
    await stage.advance(f"{2 * BEAT_MS} ms")
    assert [row[TURN.at["event"]] for row in await turns(stage)][1:] == [f"f/{(await turns(stage))[1][0]!s}"]


@pytest.mark.parametrize("wrong", ["0s", "11 years", "soon"])
def test_a_window_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises((LoadRefused, Exception), match=r"longer than nothing|years|duration"):
        bank_for(wrong)
