"""A restart under another release of the zone data: what is pending is planned anew, once, neither lost nor doubled."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import tzdata  # type: ignore[import-untyped]  # it is data and has no types

from onefold.host import reckoning
from onefold.host.reckoning import RECKONED
from onefold.store.contract import Query
from onefold.terms.codec import parse
from onefold.timers import Ack, Supersede, timers
from onefold.timers import schedule_id as id_of
from onefold.timers.facts import Planned
from onefold.timers.planning import spread
from tests.house.tree import ROOT
from tests.timers.conftest import Homes
from tests.timers.home import SCHEDULE, START, Home, Owner, at, create, tick_id
from tests.timers.test_planning import VIENNA, zone_data

NINE_THIRTY = datetime(2026, 1, 1, 8, 30, tzinfo=UTC)  # in Vienna, in winter


def shifted(folder: Path, release: str, clocks: str) -> Path:
    """A copy of the package of zone data that calls itself `release` and shows other clocks in Vienna."""
    source = Path(tzdata.__file__).parent
    copy = folder / release / "tzdata"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "America", "Antarctica", "Pacific"))
    shutil.copy(source / "zoneinfo" / clocks, copy / "zoneinfo" / "Europe" / "Vienna")
    init = copy / "__init__.py"
    init.write_text(init.read_text().replace(tzdata.IANA_VERSION, release))
    return copy.parent


def life(store: Path, start: datetime, minutes: int, data: Path | None = None) -> dict[str, Any]:
    """A process of its own, from `start` on its clock."""
    path = [str(ROOT / "src"), str(ROOT)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(data), *path] if data else path)}
    at_ms = str(round(start.timestamp() * 1000))
    command = [sys.executable, "-m", "tests.timers.life_under_other_zone_data", str(store), at_ms, str(minutes)]
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    told = parse(ran.stdout.encode())
    assert isinstance(told, dict)
    return told


def test_a_process_with_other_zone_data_plans_anew_what_another_planned(tmp_path: Path) -> None:
    store = tmp_path / "store"
    first = life(store, START, 0)
    assert first["next"] == "2026-01-01T08:30:00Z"
    tokyo = shifted(tmp_path, "2099a", "Asia/Tokyo")
    second = life(store, START, 15, tokyo)
    assert second["release"] == "2099a"
    assert second["armed"].startswith("2026-01-01T00:30:00"), "the alarm that the old data had set is moved at once"
    assert second["next"] == "2026-01-01T00:30:00Z"
    assert second["planned"] == [first["release"], "2099a"]
    third = life(store, START + timedelta(minutes=20), 600)
    assert third["got"] == ["2026-01-01T08:30:00Z"]
    assert third["planned"] == [first["release"], "2099a", first["release"]]


# --- the same within one process, on every store ---------------------------------------------------


async def reborn(home: Home) -> Home:
    """The same parts under the zone data of now, opened again."""
    again = home.owner.timers()
    home.stage.parts = (again,)
    home.timers = again
    await home.stage.restart()
    await home.stage.settle()
    return home


async def test_an_instant_that_moves_forward_in_time_does_not_ring_late(home: Home) -> None:
    await home.say(create(VIENNA))
    with zone_data("2099a", Europe_Vienna="Asia/Tokyo"):
        await reborn(home)
        await home.later("31m")
        assert home.owner.due == [at(minutes=30)]
        assert home.owner.at[0] == at(minutes=30) + timedelta(milliseconds=spread(tick_id(at(minutes=30))))


async def test_an_instant_that_moves_back_in_time_does_not_ring_early(home: Home) -> None:
    await home.say(create(VIENNA))
    with zone_data("2099a", Europe_Vienna="America/New_York"):
        await reborn(home)
        await home.later("9h")
        assert home.owner.ticks == []
        await home.later("6h")
        assert home.owner.due == [datetime(2026, 1, 1, 14, 30, tzinfo=UTC)]


async def test_what_moved_into_the_past_comes_at_once(home: Home) -> None:
    await home.say(create(VIENNA))
    await home.later("5h")
    with zone_data("2099a", Europe_Vienna="Asia/Tokyo"):
        await reborn(home)
        await home.later("1s")
        assert home.owner.due == [at(minutes=30)]


async def test_the_day_that_rang_does_not_ring_again(home: Home) -> None:
    await home.say(create(VIENNA))
    await home.later("9h")
    with zone_data("2099a", Europe_Vienna="America/New_York"):
        await reborn(home)
        await home.say(Ack("a1", tick_id(NINE_THIRTY)))
        await home.later("12h")
        assert home.owner.due == [NINE_THIRTY]
        await home.later("18h")
        assert home.owner.due == [NINE_THIRTY, datetime(2026, 1, 2, 14, 30, tzinfo=UTC)]


async def test_it_is_done_once_for_each_release(home: Home) -> None:
    await home.say(create(VIENNA))
    with zone_data("2099a"):
        await reborn(home)
        assert (await home.facts())[-1].tz == "2099a"
        space = await home.stage.host.space("main")
        (rows,) = await space.look(Query(RECKONED))
        assert list(rows) == [("reminders", "2099a")]
        before = await home.facts()
        await reborn(home)
        assert home.stage.host.resident_count == 0, "nothing was read for a release that was done"
        assert await home.facts() == before


async def test_a_kill_half_way_leaves_nothing_unplanned(homes: Homes) -> None:
    home = await homes()
    keys = [f"k{number}" for number in range(12)]
    for key in keys:
        await home.say(create(VIENNA, id=key, key=key))
    await home.stage.settle()
    with zone_data("2099a", Europe_Vienna="Asia/Tokyo"):
        again = home.owner.timers()
        home.stage.parts, home.timers = (again,), again
        await home.stage.close()
        home.stage.kill_at("after-commit", hit=2)
        await home.stage.open()
        await home.stage.let_die()
        home.stage.live_on()
        await home.stage.open()
        await home.stage.settle()
        for key in keys:
            assert (await home.shown(id_of("agent-7", key))).next_due == at(minutes=30)


async def test_more_than_a_page_at_one_instant_is_planned_anew(homes: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reckoning, "PAGE", 20)
    home = await homes()
    count = 70
    await asyncio.gather(*(home.say(create(VIENNA, id=f"c{number}", key=f"k{number}")) for number in range(count)))
    with zone_data("2099a", Europe_Vienna="Asia/Tokyo"):
        await reborn(home)
        await home.later("31m")
        assert len(home.owner.taken) == len(set(home.owner.taken)) == count


async def test_a_held_tick_and_an_end_are_left_as_they_are(home: Home) -> None:
    await home.say(create(VIENNA))
    await home.later("9h")
    before = await home.facts()
    with zone_data("2099a", Europe_Vienna="Asia/Tokyo"):
        await reborn(home)
        assert await home.facts() == before
        assert (await home.shown()).held == tick_id(NINE_THIRTY)


async def test_superseding_plans_with_the_data_of_now(home: Home) -> None:
    await home.say(create(VIENNA))
    with zone_data("2099a", Europe_Vienna="Asia/Tokyo"):
        await reborn(home)
        await home.say(Supersede("s1", SCHEDULE, VIENNA))
        assert (await home.shown()).next_due == at(minutes=30)


@pytest.mark.parametrize("clocks", ["Asia/Tokyo", "America/New_York", "Pacific/Apia"])
async def test_every_release_rings_each_local_day_once(home: Home, clocks: str) -> None:
    """Ten days, a new release on each third, the owner keeping up."""

    async def keep_up(tick: Any) -> None:
        await home.say(Ack(f"ack {tick.id}", tick.id))

    home.owner.meanwhile = keep_up
    await home.say(create(VIENNA))
    for number, shown in enumerate(["Europe/Vienna", clocks, "Europe/Vienna"]):
        with zone_data(f"2099{number}", Europe_Vienna=shown):
            await reborn(home)
            await home.later("3d")
    days = [str(fact.local) for fact in await home.facts() if isinstance(fact, Planned)]
    rung = len(home.owner.taken)
    assert rung == len(set(home.owner.taken))
    assert sorted(set(days)) == [f"2026-01-{day:02}T09:30" for day in range(1, rung + 2)]


def test_a_module_says_by_which_release_it_is_reckoned() -> None:
    assert timers("reminders", to=Owner().port).reckoned_by == tzdata.IANA_VERSION
