"""An author's tables are shown and taken out alike, whichever node of a fleet is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import ASGITransport, AsyncClient
from pydantic import BaseModel

from onefold import App, Run, actuator
from onefold.fleet import abroad
from onefold.fleet.abroad import Abroad, authored
from onefold.host import lending
from onefold.kernel.tables import KERNEL
from onefold.store.memory import MemoryWorld
from onefold.terms.codec import canonical, parse
from onefold.terms.errors import BadArguments, Busy, OwnedElsewhere, StoreUnavailable
from onefold.testing import VirtualClock
from tests.contracts.backends import store_of
from tests.fleet.served import SECRET, nodes

ROWS = 8


class Put(BaseModel):
    n: int


@actuator(
    migrations=[
        "CREATE TABLE notes (id INTEGER PRIMARY KEY, said TEXT, size REAL)",
        "CREATE TABLE empty (thing TEXT)",
    ]
)
async def keeps(run: Run, input: Put) -> int:
    """Keep a note."""
    said = '=x,\n"é" ' + "y" * 50_000
    return await run.db.execute("INSERT INTO notes VALUES (:id, :said, :size)", id=input.n, said=said, size=input.n / 4)


@pytest.fixture(params=("sqlite", "postgres"))
async def pair(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[App, App]]:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    async with nodes(store_of(request.param, tmp_path), keeps) as (a, b):
        for n in range(ROWS):
            await a.call(keeps, Put(n=n), key=f"n{n}")
        yield a, b


async def both(pair: tuple[App, App], path: str, **headers: str) -> tuple[Any, Any]:
    told = []
    for app in pair:
        async with AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1") as client:
            answer = await client.get(path, headers=headers)
            told.append((answer.status_code, answer.headers["content-type"], answer.content))
    return told[0], told[1]


PATHS = (
    "/tools/keeps/tables",
    "/tools/keeps/tables/notes?limit=7",
    "/tools/keeps/tables/notes?limit=1000",
    "/tools/keeps/tables/notes?limit=1000&after=5",
    "/tools/keeps/tables/empty",
)
REFUSED = (
    "/tools/keeps/tables/nothing",
    "/tools/keeps/tables/_onefold_turn",
    "/tools/keeps/tables/notes?after=soon",
    "/tools/nobody/tables",
)


async def test_a_table_is_one_table_from_both(pair: tuple[App, App], monkeypatch: pytest.MonkeyPatch) -> None:
    for path in PATHS:
        near, far = await both(pair, path)
        assert near == far
        assert near[0] == 200
        near, far = await both(pair, path, accept="text/csv")
        assert near == far
    for path in REFUSED:
        near, far = await both(pair, path)
        assert near == far
        assert near[0] == 404
    for app in pair:
        seen: list[int] = []
        after: str | None = None
        while True:
            columns, rows, after = await app.host.table_rows("keeps", "notes", limit=3, after=after, caller=app.caller)
            assert columns == ["id", "said", "size"]
            seen += [row[0] for row in rows]
            if after is None:
                break
        assert seen == list(range(ROWS))
    for piece in (120_000, 1):  # what goes between two nodes is cut; what is shown is not
        monkeypatch.setattr(abroad, "PIECE", piece)
        near, far = [await app.host.table_rows("keeps", "notes", limit=7, caller=app.caller) for app in pair]
        assert near == far
        assert len(near[1]) == 7


async def test_the_whole_of_it_is_one_file_from_both(pair: tuple[App, App], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(abroad, "PIECE", 100_000)
    monkeypatch.setattr(lending, "PIECE", 100_000)
    for form in ("sql", "sqlite"):
        near, far = await both(pair, f"/tools/keeps/export?as={form}")
        assert near == far
        assert near[0] == 200
        assert len(near[2]) > 400_000
    near, far = await both(pair, "/tools/keeps/export?as=csv")
    assert near == far
    assert near[0] == 422
    lent = [app.host.fleet._lending for app in pair]  # type: ignore[union-attr]
    assert not any(one._loans for one in lent)
    far = next((app for app in pair if app.host._core.abroad("keeps") is not None), None)
    if far is not None:
        owner = lent[0] if far is pair[1] else lent[1]
        space = await far.host.space("keeps")
        for _ in range(lending.MOST):
            await space._ask("keeps", {"author": "export", "sql": True})  # type: ignore[attr-defined]
        with pytest.raises(Busy):
            await far.host.export("keeps", sql=True, caller=far.caller)
        for name in tuple(owner._loans):
            owner._end(name)  # as after a minute without a question
        (await far.host.export("keeps", sql=True, caller=far.caller)).close()
        with pytest.raises(StoreUnavailable, match="ask for it anew"):
            await space._ask("keeps", {"author": "piece", "loan": "nobody's", "at": 0})  # type: ignore[attr-defined]


async def test_whatever_an_author_keeps_arrives_as_it_is() -> None:
    world = MemoryWorld(clock=VirtualClock().now)
    space = await world.open("work", (KERNEL,))
    odd = """INSERT INTO odd VALUES (NULL, 7), (-9223372036854775808, 0.1), (9e999, -9e999), ('', 'é' || char(0) || 'x'),
        (x'00ff', x''), (printf('%.*c', 900000, 'y'), 1), (printf('%.*c', 900000, 'z'), 2)"""
    await space.author_migrate(["CREATE TABLE odd (a, b)", odd])

    async def ask(name: str, asked: Any) -> Any:
        return parse(canonical(await authored(space, parse(canonical(asked), "asked"))), "rows")

    far = Abroad("work", ask, lambda: OwnedElsewhere("space/work", "b", 0, 3))
    assert await far.author_tables() == await space.author_tables() == ["odd"]
    for limit in (1, 3, 1000):
        assert await far.author_rows("odd", limit=limit, after=None) == await space.author_rows(
            "odd", limit=limit, after=None
        )
    for asked in (
        {},
        {"author": "all"},
        {"author": "rows", "table": 3, "limit": 1},
        {"author": "rows", "limit": 10**6},
    ):
        with pytest.raises(BadArguments):
            await authored(space, asked)
    await world.close()
