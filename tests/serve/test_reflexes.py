"""Facts and reflexes over HTTP: every route, over the real host; who may do what, over the fake one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from httpx2 import AsyncClient, Response

from onefold.serve import asgi_app
from onefold.testing.stage import Stage, staged
from tests.host.automated import BY_HAND, CLOCKED, Effect, automated, emitting, reflex, till
from tests.serve.conftest import client_of


class Site:
    """An app with two reflexes of nobody and one of anna, served to this machine."""

    def __init__(self, stage: Stage, client: AsyncClient, effect: Effect) -> None:
        self.stage, self.client, self.effect = stage, client, effect

    async def asked(self, method: str, path: str, body: Any = None, **headers: str) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.request(method, path, json=body, headers=named)

    async def get(self, path: str, **headers: str) -> Any:
        told = await self.asked("GET", path, **headers)
        assert told.status_code == 200, told.text
        return told.json()

    async def post(self, path: str, body: Any = None, status: int = 200, **headers: str) -> Any:
        told = await self.asked("POST", path, body, **headers)
        assert told.status_code == status, told.text
        return told.json()


@asynccontextmanager
async def site(*definitions: Any) -> AsyncIterator[Site]:
    effect = Effect()
    async with staged(till, automated(*definitions, effects=[effect])) as stage:
        front = asgi_app(stage.host)
        try:
            async with client_of(front) as client:
                yield Site(stage, client, effect)
        finally:
            await front.aclose()


SOLD = {"kind": "write", "entity": "till.Sold", "op": "insert", "row": {"key": "north", "seq": 1, "cents": 7}}


async def test_a_fact_is_kept_once_and_what_it_led_to_can_be_walked_both_ways() -> None:
    async with site(reflex()) as one:
        fact = {**SOLD, "dedupeKey": "k1"}
        kept = await one.post("/facts", fact, 202)
        assert await one.post("/facts", fact, 202) == {**kept, "duplicate": True}
        await one.stage.settle()
        (shown,) = (await one.get("/facts?kind=write&subject=till.Sold&state=delivered"))["items"]
        assert (shown["id"], shown["fact"]["row"], shown["depth"]) == (kept["id"], SOLD["row"], 0)
        (run,) = (await one.get("/reflexes/shop.thank/runs"))["items"]
        assert (run["state"], run["cause"], run["done"]) == ("settled", "fact:1", 1)
        assert (await one.get("/reflexes/runs"))["items"] == [run]
        (task,) = (await one.get(f"/reflexes/runs/{run['id']}/tasks"))["items"]
        assert (task["state"], task["output"]) == ("done", {"thanked": {"cents": 7}})
        chain = (await one.get(f"/reflexes/explain/{task['id']}"))["items"]
        assert [link["kind"] for link in chain] == ["task", "run", "fact"]
        second = await one.get(f"/reflexes/explain/{task['id']}?limit=1&after=1")
        assert (second["items"], second["next"]) == (chain[1:2], "2")
        all_of_them = (await one.get("/reflexes"))["items"]
        first = await one.get("/reflexes?limit=1")
        assert first["items"] == all_of_them[:1]
        assert (await one.get("/reflexes/overdue?limit=1")) == {"items": [], "next": None}
        assert (await one.asked("POST", f"/reflexes/tasks/{task['id']}/retry")).status_code == 422


@pytest.mark.parametrize(
    "fact, field",
    [
        ({"kind": "write", "op": "insert", "row": {}}, "entity"),
        ({**SOLD, "name": "x"}, "name"),
        ({"kind": "manual", "target": "shop.thank"}, "kind"),
        ({"kind": "signal", "name": "x", "payload": 1, "notBefore": "soon"}, "notBefore"),
        ({**SOLD, "as": "anna"}, "as"),
        ([], ""),
    ],
)
async def test_what_is_no_fact_is_refused_by_field_and_not_kept(fact: Any, field: str) -> None:
    async with site() as one:
        told = await one.post("/facts", fact, 422)
        assert field in [error["field"] for error in told["errors"]]
        assert (await one.get("/facts"))["items"] == []


async def test_facts_come_in_pages_newest_first() -> None:
    async with site() as one:
        for n in range(5):
            await one.post("/facts", {"kind": "signal", "name": "s", "payload": n}, 202)
        first = await one.get("/facts?limit=2")
        second = await one.get(f"/facts?limit=2&after={first['next']}")
        last = await one.get(f"/facts?limit=2&after={second['next']}")
        told = [item["fact"]["payload"] for page in (first, second, last) for item in page["items"]]
        assert (told, last["next"]) == ([4, 3, 2, 1, 0], None)
        for page in ("x", "9" * 20, "9" * 5_000):
            assert (await one.asked("GET", f"/facts?after={page}")).status_code == 404
            assert (await one.asked("GET", f"/reflexes/runs?after={page}")).status_code == 404
        assert (await one.asked("GET", "/facts?limit=0")).status_code == 422


async def test_reflexes_are_listed_shown_drawn_and_tried_out() -> None:
    async with site(reflex(), reflex("daily", **CLOCKED)) as one:
        listed = (await one.get("/reflexes"))["items"]
        assert [item["id"] for item in listed] == ["daily", "shop.thank"]
        daily = await one.get("/reflexes/daily")
        assert (daily["next_at"], daily["definition"]["intent"]) == ("2026-01-01T08:00:00Z", "Thank for each sale.")
        graph = await one.get("/reflexes/graph")
        assert "till.Sold" in graph["text"]
        assert graph["dot"].startswith("digraph")
        seen = await one.post("/reflexes/shop.thank/preview", {"fact": SOLD})
        (task,) = seen["tasks"]
        assert (seen["cause"], task["input"], task["shows"]) == ("fact", {"cents": 7}, "thank for {'cents': 7}")
        later = await one.post("/reflexes/daily/preview", {"at": "2026-02-01T00:00:00Z", "next": 2})
        assert later["next_occurrences"] == ["2026-02-01T08:00:00Z", "2026-02-02T08:00:00Z"]
        assert (await one.asked("GET", "/reflexes/dialy")).json()["detail"].endswith("Did you mean 'daily'?")
        for body in ({"at": "soon"}, {"next": -1}, {"when": 1}, {"fact": {"kind": "write"}}):
            assert (await one.asked("POST", "/reflexes/daily/preview", body)).status_code == 422
        await one.stage.settle()
        assert (one.effect.seen, (await one.get("/facts"))["items"]) == ([], [])


async def test_firing_and_backfilling_answer_202_and_are_done_as_ones_own_principal_alone() -> None:
    async with site(
        reflex("hand", **BY_HAND), reflex("daily", **CLOCKED), reflex("annas", **BY_HAND, **{"as": "anna"})
    ) as one:
        fired = await one.post("/reflexes/hand/fire", {"input": {"n": 1}, "by": "me"}, 202)
        await one.stage.settle()
        assert one.effect.seen[-1][3] == {"said": {"n": 1}}
        (link,) = (await one.get(f"/reflexes/explain/{fired['id']}"))["items"]
        assert link["detail"]["by"] == "me"
        body = {"since": "2025-12-01T00:00:00Z", "until": "2025-12-03T23:00:00Z"}
        assert await one.post("/reflexes/daily/backfill", body, 202) == {"count": 3}
        assert await one.post("/reflexes/daily/backfill", body, 202) == {"count": 0}
        assert (await one.asked("POST", "/reflexes/daily/backfill", {"since": "2025-12-01"})).status_code == 422
        assert (await one.asked("POST", "/reflexes/annas/fire", {})).status_code == 422
        await one.post("/reflexes/annas/fire", {}, 202, onefold_as="anna")


async def test_a_draft_says_what_is_wrong_and_arms_nothing_and_a_set_may_be_put_where_the_code_gives_none() -> None:
    async with site() as one:
        draft = await one.post("/reflexes/draft", reflex(on={"clock": {"in": "2 minutes"}}, effect={"name": "thnk"}))
        assert "at" in draft["definition"]["on"]["clock"]
        (finding,) = [found for found in draft["findings"] if found["level"] == "refused"]
        assert (finding["reflex"], finding["path"]) == ("shop.thank", "effect.name")
        for nothing in (5, "x", True):
            told = await one.post("/reflexes/draft", nothing)
            assert (told["definition"], len(told["findings"]), told["changes"]) == (nothing, 1, [])
        wrong = await one.asked("PUT", "/reflexes", [reflex(effect={"name": "thnk"}), {"id": "b"}])
        assert (wrong.status_code, wrong.json()["code"]) == (422, "load_refused")
        assert len(wrong.json()["findings"]) > 2
        assert (await one.get("/reflexes"))["items"] == []
        told = await one.asked("PUT", "/reflexes", reflex())
        assert (told.status_code, told.json()["armed"]) == (200, ["shop.thank"])
        await one.post("/facts", SOLD, 202)
        await one.stage.settle()
        assert len(one.effect.seen) == 1
        assert (await one.asked("PUT", "/reflexes", [])).json() == {"armed": [], "findings": []}


async def test_put_is_refused_where_the_code_gives_the_definitions() -> None:
    async with site(reflex()) as one:
        told = await one.asked("PUT", "/reflexes", [])
        assert (told.status_code, "what the code says wins" in told.json()["detail"]) == (422, True)
        assert [item["id"] for item in (await one.get("/reflexes"))["items"]] == ["shop.thank"]


async def test_what_is_overdue_and_what_is_parked_is_told() -> None:
    effect = Effect("ring", ["thanks"], does=emitting)
    loop = reflex("ring", on={"fact": {"entity": "thanks"}}, when={"$": "true"}, effect={"name": "ring", "input": {}})
    async with staged(
        automated(loop, reflex("daily", **CLOCKED | {"effect": {"name": "ring"}}), effects=[effect])
    ) as stage:
        front = asgi_app(stage.host)
        async with client_of(front) as client:
            one = Site(stage, client, effect)
            await one.post("/facts", {"kind": "write", "entity": "thanks", "op": "insert", "row": {}}, 202)
            await stage.settle()
            (item,) = (await one.get("/parked"))["items"]
            assert (item["kind"], item["program"]) == ("fact", "thanks")
            assert (await one.get(f"/parked/{item['id']}"))["drop"] == "lets it wake nobody"
            assert await one.post(f"/facts/{item['id']}/release") == {"id": item["id"], "released": True}
            await stage.settle()
            assert (await one.post(f"/facts/{item['id']}/release"))["released"] is False
            (item,) = (await one.get("/parked"))["items"]
            dropped = await one.asked("POST", f"/parked/{item['id']}/drop", {"reason": "enough"})
            assert dropped.status_code == 204
            stage.host.rest()
            stage.clock.step_to(stage.clock.now() + 9 * 3_600_000)
            (late,) = (await one.get("/reflexes/overdue"))["items"]
            assert (late["reflex"], late["late_seconds"]) == ("daily", 3600.0)
            assert (await one.get("/readyz"))["oldest_overdue_seconds"] == 3600.0
        await front.aclose()
