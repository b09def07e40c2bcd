"""A thousand spaces at rest cost a start one glance each: none is opened, written or locked; what is due goes on."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw

from tests.example.many import COUNT
from tests.example.shop import ROOT, Shop, shop

MANY = str(ROOT / "tests" / "example" / "many.py")
AWAKE = COUNT - 1  # the number of the tool that has something to do


async def starts(one: Shop, number: int, at: datetime) -> None:
    body = {"bill": f"bill {number}", "at": at.isoformat()}
    answer = await one.app.http.post(f"/tools/tool_{number}", json=body, headers={"prefer": "wait=0"})
    assert answer.status_code == 202, answer.text
    receipt = answer.json()
    while receipt["status"] == "running" and not receipt.get("waits"):
        receipt = (await one.app.http.get(f"/runs/{receipt['run_id']}", params={"wait": "0"})).json()


def multiply(store: Path) -> None:
    """The first tool's space for every other, under its own name."""
    for number in range(1, AWAKE):
        name = f"tool_{number}"
        shutil.copy(store / "tool_0.db", store / f"{name}.db")
        db = apsw.Connection(str(store / f"{name}.db"))
        db.execute("pragma synchronous = off")
        with db:
            db.execute("update _onefold_actor set kind = ?", (name,))
            db.execute("update _onefold_alarm set kind = ?", (name,))
            db.execute("update _onefold_run set program = ?", (name,))
        db.close()


def looks(store: Path) -> dict[str, tuple[int, int]]:
    """Size and time of the last write of each space that is at rest."""
    found = {path.name: path.stat() for path in store.iterdir() if path.name.startswith("tool_")}
    return {name: (s.st_size, s.st_mtime_ns) for name, s in found.items() if not name.startswith(f"tool_{AWAKE}.")}


def held(pid: int, store: Path) -> set[str]:
    """The files of the store that the process has open."""
    return {link.name for fd in Path(f"/proc/{pid}/fd").iterdir() if (link := fd.resolve()).parent == store}


async def test_a_thousand_spaces_at_rest_stay_closed_and_the_one_that_is_due_goes_on(tmp_path: Path) -> None:
    async with shop(tmp_path, target=MANY) as one:
        await one.opens()
        now = datetime.now(UTC)
        await starts(one, 0, now + timedelta(days=1))
        await starts(one, AWAKE, now + timedelta(seconds=4))
        await one.closes()
        multiply(one.store)
        before = looks(one.store)
        assert len([name for name in before if name.endswith(".db")]) == AWAKE

        app = await one.opens()
        await app.outlives(one.provider.paid(f"bill {AWAKE}"))

        spaces = {name.partition(".")[0] for name in held(app.process.pid, one.store)}
        assert spaces == {"main", f"tool_{AWAKE}"}
        assert looks(one.store) == before
        listed = (await app.http.get("/runs", params={"program": "tool_5"})).json()["items"]
        assert [receipt["status"] for receipt in listed] == ["waiting"]
        assert {name.partition(".")[0] for name in held(app.process.pid, one.store)} == spaces | {"tool_5"}
