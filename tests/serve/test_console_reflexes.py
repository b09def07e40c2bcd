"""Automations on the console: looked at without script, every number a link, nothing done by looking."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from httpx2 import AsyncClient

from onefold.reflex.words import Cause, Preview, PreviewTask
from onefold.serve import asgi_app
from onefold.testing.stage import Stage, staged
from tests.host.automated import BY_HAND, CLOCKED, Effect, Sell, automated, reflex, till
from tests.serve import fake_reflexes
from tests.serve.conftest import OPERATOR_KEY, READER_KEY, Keyed, client_of
from tests.serve.fake_host import FakeHost
from tests.serve.test_approvals import HOSTILE, check_all_is_text

ORIGIN = {"origin": "http://127.0.0.1:8600"}


@pytest.fixture
async def site() -> AsyncIterator[tuple[Stage, AsyncClient, Effect]]:
    effect = Effect()
    definitions = [reflex(), reflex("daily", **CLOCKED), reflex("hand", **BY_HAND, enabled=False)]
    async with staged(till, automated(*definitions, effects=[effect])) as stage:
        front = asgi_app(stage.host)
        async with client_of(front) as client:
            yield stage, client, effect
        await front.aclose()


async def sold(stage: Stage) -> None:
    await stage.host.deliver(stage.host.catalog.module("till"), Sell("s1", "north", 7), caller=stage.caller())
    await stage.settle()


async def test_from_the_list_to_a_task_and_to_its_first_cause_by_links(
    site: tuple[Stage, AsyncClient, Effect],
) -> None:
    stage, client, _ = site
    await sold(stage)
    listed = (await client.get("/console/reflexes")).text
    for shown in ("shop.thank", "every day at 09:00 Europe/Vienna", 'class="status paused"', 'class="status armed"'):
        assert shown in listed
    one = (await client.get("/console/reflexes/shop.thank")).text
    assert 'href="/console/reflex-runs/reflex_run_1"' in one
    run = (await client.get("/console/reflex-runs/reflex_run_1")).text
    assert 'href="/console/explain/task_1"' in run
    assert "1: 1 done, 0 failed" in run
    chain = (await client.get("/console/explain/task_1")).text
    assert chain.index("task_1") < chain.index("reflex_run_1") < chain.index("fact_1")
    for missing in ("reflexes/nope", "reflex-runs/reflex_run_9", "explain/x"):
        assert (await client.get(f"/console/{missing}")).status_code == 404


async def test_a_preview_is_a_page_and_does_nothing(site: tuple[Stage, AsyncClient, Effect]) -> None:
    stage, client, effect = site
    told = (await client.get("/console/reflexes/daily/preview")).text
    assert "thank for" in told
    assert "1 Jan 2026, 08:00 UTC" in told
    await stage.settle()
    assert (effect.seen, (await stage.host.facts_list(caller=stage.caller())).items) == ([], [])


async def test_firing_and_trying_again_are_forms_of_this_page(site: tuple[Stage, AsyncClient, Effect]) -> None:
    stage, client, effect = site

    def refuses(task: object, input: object) -> object:
        raise ValueError("no")

    effect.does = refuses
    assert (await client.post("/console/reflexes/hand/fire")).status_code == 403
    fired = await client.post("/console/reflexes/hand/fire", headers=ORIGIN)
    assert (fired.status_code, fired.headers["location"]) == (303, "/console/explain/fact_1")
    await stage.advance("10 seconds")
    page = (await client.get("/console/reflex-runs/reflex_run_1")).text
    assert "ValueError: no" in page
    effect.does = lambda task, input: "fine"
    again = await client.post("/console/reflex-runs/reflex_run_1/tasks/task_1/retry", headers=ORIGIN)
    assert again.status_code == 303
    await stage.settle()
    assert 'class="status done"' in (await client.get("/console/reflex-runs/reflex_run_1")).text


async def test_who_may_only_read_sees_no_button(holding: Keyed, locked: FakeHost) -> None:
    async with holding(READER_KEY) as client:
        one = (await client.get("/console/reflexes/shop.greet")).text
        run = (await client.get("/console/reflex-runs/reflex_run_1")).text
        assert ("<button" in one, "<button" in run) == (False, False)
        assert (await client.post("/console/reflexes/shop.greet/fire", headers=ORIGIN)).status_code == 403
    async with holding(OPERATOR_KEY) as client:
        assert "Try again" in (await client.get("/console/reflex-runs/reflex_run_1")).text
        assert "Fire it now" in (await client.get("/console/reflexes/shop.greet")).text
    assert locked.fired == []


async def test_whatever_a_row_holds_is_shown_as_text(
    host: FakeHost, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, Any] = {"intent": HOSTILE, "trigger": HOSTILE, "effect": HOSTILE, "definition": {HOSTILE: HOSTILE}}
    monkeypatch.setattr(fake_reflexes, "REFLEX", replace(fake_reflexes.REFLEX, **told))
    monkeypatch.setattr(fake_reflexes, "RUN", replace(fake_reflexes.RUN, note=HOSTILE, cause=HOSTILE))
    monkeypatch.setattr(fake_reflexes, "TASK", replace(fake_reflexes.TASK, unit=HOSTILE, error=HOSTILE))

    async def explained(id: str, **_: object) -> list[Cause]:
        return [Cause("fact", HOSTILE, fake_reflexes.AT, HOSTILE, {HOSTILE: HOSTILE})]

    async def previewed(id: str, **_: object) -> Preview:
        tasks = (PreviewTask(HOSTILE, {HOSTILE: [HOSTILE]}, HOSTILE), PreviewTask(HOSTILE, None, None, HOSTILE))
        return Preview(id, HOSTILE, (), tasks, ())

    monkeypatch.setattr(host, "reflex_explain", explained)
    monkeypatch.setattr(host, "reflex_preview", previewed)
    greet = "reflexes/shop.greet"
    for path in ("reflexes", greet, f"{greet}/preview", "reflex-runs/reflex_run_1", "explain/reflex_run_1"):
        check_all_is_text(await client.get(f"/console/{path}"))
