"""A node whose names were taken, and that has not heard of it, tries everything it can do, and leaves each row as it is.

Every route that writes is tried, every verb of code that has none, and what runs by itself: the rows of all tables before
and after are the same. A route that is new fails here until it is tried, or until its reason not to be is written down.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from onefold.errors import OwnedElsewhere
from onefold.fleet.mailbox import MAIL, letter
from onefold.fleet.ownership import OWNER
from onefold.fleet.standing import Standing
from onefold.fleet.words import Claimed
from onefold.kernel.prune import SLICE
from onefold.node.owning import Guard
from onefold.store.contract import Append, Last, Put, Query, Still
from onefold.terms.errors import OnefoldError
from onefold.terms.ids import ActorId
from tests.fleet import shared
from tests.fleet.fenced import BANK, Fenced, contents, fenced_node, posted
from tests.fleet.nodes import SECRET, Fleet, fleet_of, until
from tests.fleet.shared import Room
from tests.guarantees.shop import Deposit, make


@pytest.fixture(params=["postgres", "sqlite"])
async def fenced(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Fenced]:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    async with fenced_node(request.param, tmp_path) as made:
        yield made


# --- by its routes ----------------------------------------------------------------------------------

NOT_OF_AN_ACTOR = {
    "post /facts": "a fact in is nobody's: it is durable, and counts once by its key, wherever it came in",
    "post /facts/{id}/release": "of a fact, as above",
    "post /facts/{signal}": "as above",
    "put /deployed/{file}": "the versions are the store's, each behind the generation that it was judged against",
    "delete /deployed/{file}": "a version, as above",
    "post /deployed/{file}/rollback": "a version, as above",
    "put /reflexes": "the set is the store's, by its generation",
    "post /reflexes/draft": "writes nothing",
    "post /reflexes/tasks/{id}/retry": "of a task, which is its claimer's by a token",
    "post /reflexes/{id}/backfill": "runs of occurrences, each once by its key",
    "post /reflexes/{id}/fire": "a fact, as above",
    "post /reflexes/{id}/preview": "writes nothing",
}


def routes(of: Fenced) -> dict[str, list[tuple[str, str, Any]]]:
    """Of each route that writes, what is asked: method, path, body."""
    bank, room, runs = "/modules/bank", "/cells/Room", of.runs
    tried: dict[str, list[tuple[str, str, Any]]] = {
        "put /cells/{shape}/{id}": [("PUT", f"{room}/new", None)],
        "patch /cells/{shape}/{id}": [("PATCH", f"{room}/r", {"set": {"visits": 9}})],
        "post /cells/{shape}/{id}/turns": [
            ("POST", f"{room}/r/turns", {"program": 'greet(name="y")\ngreet(name="z")'})
        ],
        "post /cells/{shape}/{id}/evict": [("POST", f"{room}/r/evict", None)],
        "post /modules/{module}/events": [
            ("POST", f"{bank}/events", {"type": "Deposit", "id": "new", "account": BANK, "amount": 5}),
            ("POST", f"{bank}/events", {"type": "Deposit", "id": "d1", "account": BANK, "amount": 10}),
            ("POST", f"{bank}/events", {"type": "Deposit", "id": "d1", "account": "fresh", "amount": 10}),
            ("POST", f"{bank}/events", {"type": "PayOut", "id": "out", "account": BANK, "amount": 5}),
        ],
        "post /modules/{module}/{key}/prune": [("POST", f"{bank}/{BANK}/prune", None)],
        "post /parked/{id}/drop": [
            ("POST", f"/parked/{id}/drop", {"reason": "no"}) for id in (of.parked[0], of.letter)
        ],
        "post /parked/{id}/retry": [("POST", f"/parked/{id}/retry", None) for id in (of.parked[1], of.letter)],
        "delete /cells/{shape}/{id}": [("DELETE", f"{room}/r", None)],
        "post /runs/{id}/approvals/{name}": [],
        "post /runs/{id}/cancel": [],
        "post /runs/{id}/events/{event}": [],
        "post /runs/{id}/fork": [],
        "post /runs/{id}/retry": [],
        "post /sweep": [("POST", "/sweep", {"replies": "0s"})],
    }
    if not of.on_postgres:
        return tried
    ran: dict[str, list[tuple[str, str, Any]]] = {
        "post /runs/{id}/approvals/{name}": [("POST", f"/runs/{runs['asks']}/approvals/go", {"approve": True})],
        "post /runs/{id}/cancel": [("POST", f"/runs/{runs['waits']}/cancel", {"reason": "enough"})],
        "post /runs/{id}/events/{event}": [("POST", f"/runs/{runs['waits']}/events/Fed", {"n": 1})],
        "post /runs/{id}/fork": [("POST", f"/runs/{runs['done']}/fork", {"from": "counted"})],
        "post /runs/{id}/retry": [("POST", f"/runs/{runs['failed']}/retry", None)],
        "post /sweep": [("POST", "/sweep", {"replies": "0s"}), ("POST", "/sweep", {"runs": "0s"})],
        **{
            f"post /tools/{name}": [("POST", f"/tools/{name}", {"n": 9})]
            for name in ("work", "hears", "asks", "stores")
        },
    }
    last = {"post /sweep": ran.pop("post /sweep")}
    del tried["post /sweep"]
    return tried | ran | last


async def test_no_route_of_it_writes_a_row(fenced: Fenced) -> None:
    tried = routes(fenced)
    async with httpx2.AsyncClient(base_url=fenced.node.url, timeout=60) as http:
        document = (await http.get("/openapi.json")).json()
        named = {f"{method} {path}" for path, one in document["paths"].items() for method in one if method != "get"}
        assert sorted(named - tried.keys() - NOT_OF_AN_ACTOR.keys()) == []
        for route, asked in tried.items():
            for method, path, body in asked:

                async def act(method: str = method, path: str = path, body: Any = body) -> Any:
                    answer = await http.request(method, path, json=body, headers={"idempotency-key": f"k {path}"})
                    return answer.status_code, answer.text

                await fenced.tries(f"{route} {body}", act)


async def test_the_routes_above_do_write_where_nobody_took_its_names(fenced: Fenced) -> None:
    """The same requests, of a node that has its names: else all of them might be refused for what they say."""
    main = await fenced.core.space("main")
    (owners,) = await main.look(Query(OWNER))
    standing = fenced.node.part.membership.standing
    back = [
        (name, standing.me.name, standing.me.incarnation, epoch - 1)
        for name, node, _, epoch in owners
        if node == "ghost"
    ]

    def body() -> Any:
        yield ()
        return Last((Put(OWNER, back),), None)

    await fenced.node.part.membership.transact(body, "the end of a fence")
    silent = []
    async with httpx2.AsyncClient(base_url=fenced.node.url, timeout=60) as http:
        for route, asked in routes(fenced).items():
            before = contents(fenced.store)
            fenced.believes()
            told = [await http.request(method, path, json=body) for method, path, body in asked]
            if asked and contents(fenced.store) == before:
                silent.append((route, [(one.status_code, one.text) for one in told]))
    assert [route for route, _ in silent] == ["post /cells/{shape}/{id}/evict"], silent


# --- by its code, and by itself ---------------------------------------------------------------------


async def test_no_verb_of_its_code_writes_a_row(fenced: Fenced) -> None:
    app, core = fenced.app, fenced.core
    bank = make(3)

    async def captures() -> None:
        async with app.cell(Room, "r").capture() as draft:
            draft.visits = 3

    async def has_custody() -> None:
        async with app.open(Room, "r") as room:
            await room.turn(Room.greet)("z")

    await fenced.tries("a capture", captures)
    await fenced.tries("custody", has_custody)
    await fenced.tries("a fork", lambda: app.fork(bank, BANK, "forked", id="f"))
    await fenced.tries("an alarm that is looked at", lambda: app.alarm(bank, BANK))
    await fenced.tries("a ring", lambda: _rings(fenced))
    for n in range(3):
        await fenced.tries("many at once", lambda n=n: asyncio.gather(*_many(fenced, n), return_exceptions=True))  # type: ignore[misc]
    assert core.node.resident(ActorId("bank", None, BANK)) is None


async def _rings(of: Fenced) -> None:
    resident = await of.core.node.activate(ActorId("bank", None, BANK))
    await of.core.node.rearm(resident.at)


def _many(of: Fenced, round_: int) -> list[Any]:
    bank = make(3)
    return [of.app.deliver(bank, Deposit(f"m{round_}.{n}", f"{BANK}{n % 5}", 1)) for n in range(40)]


async def test_what_runs_by_itself_writes_no_row(fenced: Fenced) -> None:
    core = fenced.core
    for event in ("d/late", "d/later"):
        await posted(fenced, event, {"program": 'greet(name="late")'})

    async def beats() -> None:
        for _ in range(3):
            fenced.believes()
            core.driver.look()
            core.postman.look()
            core.driver.janitor()
            await asyncio.sleep(0.05)
            await until(lambda: core.postman.idle)

    await fenced.tries("its beats", beats)
    (letters,) = await (await core.space("main")).look(Query(MAIL, where=(("due_at", "null", False),)))
    assert sorted(str(row[MAIL.at["event"]]) for row in letters) == ["d/late", "d/later"]


@pytest.mark.parametrize("fenced", ["postgres"], indirect=True)
async def test_a_step_that_ends_late_leaves_no_result_and_no_row_of_its_author(fenced: Fenced) -> None:
    async def ends() -> None:
        shared.held[5].set()
        await until(lambda: fenced.core.node.idle)

    await fenced.tries("a step", ends)
    with pytest.raises((OwnedElsewhere, OnefoldError)):
        await fenced.app.runs.cancel(fenced.runs["steps"])


@pytest.mark.parametrize("fenced", ["postgres"], indirect=True)
@pytest.mark.parametrize("part, verb", [(Guard, "around"), (Standing, "still")])
async def test_a_guard_that_is_left_out_is_seen(
    fenced: Fenced, monkeypatch: pytest.MonkeyPatch, part: type, verb: str
) -> None:
    bank = make(3)
    without: Callable[..., Any] = (lambda self, body: body) if part is Guard else (lambda self, holds: Still(OWNER, []))
    monkeypatch.setattr(part, verb, without)
    with pytest.raises(AssertionError, match=r"onefold\.turn"):
        await fenced.tries("a prune", lambda: fenced.app.prune(bank, BANK))
    if part is Standing:
        with pytest.raises(AssertionError, match=r"onefold\.turn"):
            await fenced.tries("a turn", lambda: fenced.app.deliver(bank, Deposit("late", BANK, 1)))


async def test_a_prune_stops_in_the_middle_where_its_actor_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEFOLD_SECRET", SECRET)
    bank = make(SLICE * 2)
    async with fleet_of(bank, names="ab") as fleet:
        assert isinstance(fleet, Fleet)
        a, b = fleet.nodes["a"], fleet.nodes["b"]
        key = next(key for n in range(1000) if a.owns("bank", key := f"k{n}"))
        await asyncio.gather(*(a.app.deliver(bank, Deposit(f"d{n}", key, 1)) for n in range(SLICE * 2 + 3)))
        assert (await b.app.prune(bank, key)).facts > SLICE
        assert (await a.app.prune(bank, key)).facts == 0
        guard = a.host._core.node.guard(ActorId("bank", None, key))
        assert isinstance(await b.app.fleet.claim(f"bank/{key}"), Claimed)
        before = contents(fleet.store)

        def late() -> Any:
            yield ()
            return Last((Append(MAIL, [letter(1, ActorId("bank", None, key), "d/x", "x", b"", 0)]),), None)

        outcome: Any = await (await a.host._core.space("main")).transact(guard.around(late))
        assert isinstance(outcome.error, OwnedElsewhere)
        assert outcome.error.fields["record_epoch"] > outcome.error.fields["held_epoch"]
        assert contents(fleet.store) == before
