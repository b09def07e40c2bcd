"""Keys and heads that are written late: what a crash, a rollback, a late number or a removal must not confuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from onefold.store.contract import Append, Done, Query, Refusal, Remove, Row, Space
from onefold.store.sqlite import SqliteWorld, chain
from onefold.store.sqlite.lag import MISSING, Lag
from onefold.terms.errors import Contended
from tests.store.child import Asking, clock
from tests.store.life import Life
from tests.store.shorthand import turn, writing
from tests.store.tables import SCHEMA, TURN


@pytest.fixture(autouse=True)
def _short_generations(monkeypatch: pytest.MonkeyPatch, company: None) -> None:
    monkeypatch.setattr(chain, "GENERATION", 8)
    monkeypatch.setattr(chain, "LUMP", 2)


async def opened(folder: Path) -> tuple[SqliteWorld, Space]:
    world = SqliteWorld(folder, clock=clock, shared=Life.shared)
    return world, await world.open("main", [SCHEMA])


async def add(space: Space, *rows: Row) -> None:
    assert isinstance(await space.transact(writing(Append(TURN, rows))), Done)


async def others(space: Space, count: int, actor: int = 900) -> None:
    """Enough of other actors' turns that what was noted before is long written and forgotten by memory."""
    for i in range(count):
        await add(space, turn(space, actor + i, "other"))


async def history(space: Space, actor: int) -> list[Row]:
    (rows,) = await space.look(Query(TURN, where=(("actor", "=", actor),), order=("-n",)))
    return list(rows)


async def test_a_history_removed_and_begun_again_with_a_lower_number_is_found(tmp_path: Path) -> None:
    world, space = await opened(tmp_path)
    early = space.mint(TURN)
    await add(space, turn(space, 1, "e"))
    await others(space, 3)  # a generation is full, and none of it is written yet
    (old,) = await history(space, 1)
    again = (early, 1, None, "e", None)
    company = [turn(space, 50 + i, "e") for i in range(8)]  # so many that this commit writes all of that generation
    both = writing(Remove(TURN, keys=[(old[0],)]), Append(TURN, [again, *company]))
    assert isinstance(await space.transact(both), Done)
    for end in ("memory", "tables", "kill"):
        if end == "tables":
            await others(space, 40, 2_000)
        if end == "kill":
            world.abandon()
            world, space = await opened(tmp_path)
        assert await history(space, 1) == [again], end
    await world.close()


@pytest.mark.parametrize("gap", range(0, 24, 3))
async def test_a_number_committed_late_survives_a_kill_at_any_place_of_the_writing(tmp_path: Path, gap: int) -> None:
    world, space = await opened(tmp_path)
    early = space.mint(TURN)
    await others(space, gap)
    late = (early, 1, None, "late", None)
    await add(space, late)
    await others(space, gap, 2_000)
    world.abandon()
    world, space = await opened(tmp_path)
    assert await history(space, 1) == [late]
    (found,) = await space.look(Query(TURN, on=("actor", "event"), keys=[(1, "late")]))
    assert found == [late]
    await world.close()


async def test_a_probe_before_a_removal_that_was_taken_back_is_not_believed(tmp_path: Path) -> None:
    """Inside the body the id is gone; the body is refused; the id is there again."""
    world, space = await opened(tmp_path)
    first = turn(space, 1, "e")
    await add(space, first)
    await others(space, 40)

    def body() -> Asking:
        probe = Query(TURN, on=("actor", "event"), keys=[(1, "e")])
        (before, _, after) = yield (probe, Remove(TURN, keys=[(first[0],)]), probe)
        assert (before, after) == ([first], [])
        raise Refusal(Contended("x"))

    met = Append(TURN, [turn(space, 1, "e", int(str(first[0])))], met="keep")
    refused, kept = await space.transact(body), await space.transact(writing(met))
    assert not isinstance(refused, Done)
    assert isinstance(kept, Done)
    assert kept.answers == ([first],)
    assert await history(space, 1) == [first]
    await world.close()


async def test_what_is_written_late_is_written_in_the_end(tmp_path: Path) -> None:
    world, space = await opened(tmp_path)
    rows = []
    for i in range(100):
        row = turn(space, i % 7, f"e{i}", None)
        rows.append(row)
        await add(space, row)
    await world.close()
    world, space = await opened(tmp_path)
    db = space.engine.file.conn  # type: ignore[attr-defined]
    keys = db.execute('select "actor", "event", "_n" from _onefold_turn__key').fetchall()
    assert sorted(keys) == sorted((r[1], r[3], r[0]) for r in rows)
    heads = dict(db.execute('select "actor", "_n" from _onefold_turn__head').fetchall())
    assert heads == {r[1]: r[0] for r in rows}
    await world.close()


def test_a_layer_is_kept_or_dropped_whole() -> None:
    lag = Lag()
    lag.start({"a": 1, "b": 2})
    lag.layers = [{}]
    lag.note([("c", 3)])
    lag.layers.append({})
    lag.note([("a", None), ("d", 4)])
    assert (lag.get("a"), lag.get("b"), lag.get("c"), lag.get("d"), lag.get("e")) == (None, 2, 3, 4, MISSING)
    lag.layers.pop()
    assert (lag.get("a"), lag.get("d")) == (1, MISSING)
    assert lag.share(1) == [("a", 1)]
    lag.drop()
    assert lag.left == 2
    assert lag.get("c") is MISSING


def test_entries_are_written_sorted_and_once() -> None:
    lag = Lag()
    lag.start({key: n for n, key in enumerate("dcba", start=1)})
    written = []
    while lag.left:
        lag.layers = [{}]
        written += lag.share(3)
        lag.commit(removed=False)
    assert written == [("a", 4), ("b", 3), ("c", 2), ("d", 1)]
    assert lag.get("a") == 4
    lag.rotate()
    assert lag.get("a") is MISSING
