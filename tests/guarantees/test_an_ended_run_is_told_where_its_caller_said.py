"""`Onefold-Callback`: the receipt of a run that has ended is posted where its caller said, once an end, whatever crashes."""

from __future__ import annotations

import asyncio
import base64
import time
from typing import Any

import pytest
from pydantic import BaseModel
from standardwebhooks.webhooks import Webhook

from onefold import Run, actuator
from onefold.errors import BadArguments
from onefold.serve import asgi_app
from onefold.terms.codec import parse
from onefold.testing import Stage
from tests.guarantees.conftest import Stages
from tests.ports.conftest import Web
from tests.ports.conftest import web as web
from tests.serve.conftest import client_of


class Order(BaseModel):
    number: str = "7"
    long: int = 0


fails: list[str] = []


async def work(number: str) -> str:
    if number in fails:
        raise ValueError("the provider is closed")
    return f"done {number}"


@actuator
async def quick(run: Run, order: Order) -> str:
    """Ends in the commit that starts it."""
    return order.number * order.long or "at once"


@actuator(dedupe_by=["number"])
async def slow(run: Run, order: Order) -> str:
    """Sleeps an hour, then works."""
    await run.sleep("1h")
    return await run.step(work)(order.number) + "x" * order.long


async def start(stage: Stage, name: str, url: str, key: str | None = None, **order: Any) -> str:
    started = await stage.host.start(name, order, key=key, caller=stage.caller(), callback=url)
    return started.receipt.run_id


def killing(stage: Stage, point: str, *, hit: int) -> asyncio.Event:
    """Kill there; set once it has."""
    met = asyncio.Event()
    stage.kill_at(point, hit=hit)
    kill = stage.failpoint

    def fail(name: str) -> None:
        try:
            kill(name)
        finally:
            if stage.killed:
                met.set()

    stage.failpoint = fail
    return met


def told(web: Web) -> list[dict[str, Any]]:
    return [parse(body) for _, body in web.posted]


@pytest.mark.parametrize("long", [0, 20_000])
async def test_what_ends_in_its_first_commit_is_told(stages: Stages, web: Web, long: int) -> None:
    stage = await stages(quick)
    run = await start(stage, "quick", web.url, long=long)
    await stage.settle()
    (receipt,) = told(web)
    assert (receipt["run_id"], receipt["status"], receipt["program"]) == (run, "done", "quick")
    assert receipt["result"] == ("7" * long or "at once")
    assert receipt == (await stage.host.receipt(run, caller=stage.caller())).to_json()


@pytest.mark.parametrize("long", [0, 20_000])
async def test_a_run_that_waited_is_told_when_it_has_ended_and_not_before(stages: Stages, web: Web, long: int) -> None:
    stage = await stages(slow)
    run = await start(stage, "slow", web.url, long=long)
    await stage.advance("59m")
    assert web.posted == []
    await stage.crash()
    await stage.advance("2m")
    (receipt,) = told(web)
    assert receipt["result"] == "done 7" + "x" * long
    assert receipt == (await stage.host.receipt(run, caller=stage.caller())).to_json()


async def test_any_standard_webhooks_receiver_takes_it(stages: Stages, web: Web) -> None:
    stage = await stages(quick)
    stage.clock.step_to(int(time.time() * 1000))
    await start(stage, "quick", web.url)
    await stage.settle()
    ((headers, body),) = web.posted
    receiver = Webhook(base64.b64encode(stage.host.signing[0]).decode())
    assert receiver.verify(body, headers)["status"] == "done"


async def test_a_cancelled_and_a_failed_run_are_told_too(stages: Stages, web: Web) -> None:
    stage = await stages(slow)
    run = await start(stage, "slow", web.url)
    await stage.host.run_cancel(run, "no longer wanted", caller=stage.caller())
    await stage.settle()
    assert [receipt["status"] for receipt in told(web)] == ["cancelled"]


async def test_a_kill_between_loses_nothing_and_a_repeat_has_the_same_id(stages: Stages, web: Web) -> None:
    """Killed when the address has taken it and nobody here knows: it is posted again, under its id."""
    stage = await stages(slow)
    await start(stage, "slow", web.url)
    await stage.settle()
    killed = killing(stage, "after-send", hit=2)  # the last pass, then the callback
    stage.clock.step_to(stage.clock.now() + 3_660_000)
    await asyncio.wait_for(killed.wait(), 60)
    assert len(web.posted) == 1
    await stage.let_die()
    stage.live_on()
    await stage.open()
    await stage.advance("1m")
    assert len(web.posted) == 2
    assert len({headers["webhook-id"] for headers, _ in web.posted}) == 1
    assert len({body for _, body in web.posted}) == 1
    await stage.advance("5h")
    assert len(web.posted) == 2


async def test_an_address_that_refuses_is_asked_again_then_parked_and_a_person_can_go_on(
    stages: Stages, web: Web
) -> None:
    stage = await stages(quick)
    web.status = 500
    run = await start(stage, "quick", web.url)
    await stage.advance("9h")
    tried = len(web.posted)
    assert tried > 5
    assert len({headers["webhook-id"] for headers, _ in web.posted}) == 1
    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert "the address answered 500" in item.cause
    assert "T0K3N" not in item.cause
    assert (await stage.host.receipt(run, caller=stage.caller())).status == "done"
    web.status = 204
    await stage.host.parked_retry(item.id, caller=stage.caller())
    await stage.settle()
    assert len(web.posted) == tried + 1
    assert await stage.host.parked_list(caller=stage.caller()) == []


async def test_a_sweep_takes_no_run_away_that_is_still_to_be_told(stages: Stages, web: Web) -> None:
    stage = await stages(quick)
    web.status = 500
    await start(stage, "quick", web.url)
    await stage.advance("10s")
    assert (await stage.host.sweep(runs=1_000, caller=stage.caller())).runs == 0
    web.status = 204
    await stage.advance("1h")
    assert told(web)[-1]["status"] == "done"
    assert (await stage.host.sweep(runs=1_000, caller=stage.caller())).runs == 1


async def test_nothing_is_followed(stages: Stages, web: Web) -> None:
    stage = await stages(quick)
    web.status, web.location = 307, web.url
    await start(stage, "quick", web.url)
    await stage.settle()
    assert len(web.posted) == 1


async def test_a_repeat_of_the_call_is_told_once_and_another_address_as_well(stages: Stages, web: Web) -> None:
    """The same key, or the same fields to dedupe by, meets the run: whoever asked to be called back is."""
    stage = await stages(slow)
    first = await start(stage, "slow", web.url, key="k")
    assert await start(stage, "slow", web.url, key="k") == first
    assert await start(stage, "slow", f"{web.url}/other", key="k") == first
    assert await start(stage, "slow", f"{web.url}/third") == first
    await stage.advance("2h")
    assert len(web.posted) == 3
    await stage.crash()
    assert await start(stage, "slow", f"{web.url}/late", key="k") == first
    await start(stage, "slow", web.url, key="k")
    await stage.settle()
    assert len(web.posted) == 4
    assert len({body for _, body in web.posted}) == 1
    assert len({headers["webhook-id"] for headers, _ in web.posted}) == 1


async def test_who_comes_late_gets_the_whole_of_a_long_result(stages: Stages, web: Web) -> None:
    stage = await stages(quick)
    run = await start(stage, "quick", web.url, key="k", long=20_000)
    await stage.settle()
    await stage.crash()
    assert await start(stage, "quick", f"{web.url}/late", key="k", long=20_000) == run
    await stage.settle()
    assert [receipt["result"] for receipt in told(web)] == ["7" * 20_000] * 2


async def test_a_run_has_so_many_addresses_and_no_more(stages: Stages, web: Web) -> None:
    stage = await stages(slow)
    for n in range(8):
        await start(stage, "slow", f"{web.url}/{n}", key="k")
    with pytest.raises(BadArguments, match="one too many"):
        await start(stage, "slow", f"{web.url}/8", key="k")
    await start(stage, "slow", f"{web.url}/3", key="k")
    await stage.host.run_cancel(
        (await stage.host.runs_list(caller=stage.caller())).items[0].run_id, caller=stage.caller()
    )
    await stage.settle()
    assert len(web.posted) == 8


async def test_a_run_that_is_tried_again_tells_its_second_end_under_another_id(stages: Stages, web: Web) -> None:
    stage = await stages(slow)
    fails.append("9")
    run = await start(stage, "slow", web.url, number="9")
    await stage.advance("2h")
    assert [receipt["status"] for receipt in told(web)] == ["failed"]
    assert told(web)[0]["error"]["code"] == "step_failed"
    fails.remove("9")
    await stage.host.run_retry(run, caller=stage.caller())
    await stage.settle()
    assert [receipt["status"] for receipt in told(web)] == ["failed", "done"]
    assert len({headers["webhook-id"] for headers, _ in web.posted}) == 2


async def test_over_http_it_is_a_header(stages: Stages, web: Web) -> None:
    stage = await stages(slow)
    app = asgi_app(stage.host)
    async with client_of(app) as client:
        call = await client.post("/tools/slow", json={}, headers={"onefold-callback": web.url, "prefer": "wait=0"})
        assert call.status_code == 202
        await stage.advance("2h")
        assert told(web) == [(await client.get(f"/runs/{call.json()['run_id']}")).json()]
    await app.aclose()
