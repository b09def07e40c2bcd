"""What happens here, for a person: pages without script, filters in the address, actions as forms."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from httpx2 import AsyncClient

from onefold.actuators.receipt import Trouble, WaitShown
from onefold.serve import Front, asgi_app
from onefold.terms.instant import moment
from tests.serve.conftest import OPERATOR_KEY, READER_KEY, Keyed, client_of
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import (
    DAY,
    NOW,
    Happening,
    JournalRow,
    OpenApproval,
    Outcome,
    ParkedItem,
    waiting_for_manager,
)
from tests.serve.raw import Asgi
from tests.serve.test_approvals import HOSTILE, check_all_is_text

ORIGIN = {"origin": "http://127.0.0.1:8600"}


async def started(client: AsyncClient, key: str = "k") -> str:
    headers = {"idempotency-key": key}
    await client.post("/tools/refund_order", json={"order_id": key, "amount": 1}, headers=headers)
    found = (await client.get("/runs", params={"key": key})).json()["items"][0]
    return str(found["run_id"])


async def test_the_first_page_lists_runs_and_what_waits_for_a_person(host: FakeHost, client: AsyncClient) -> None:
    host.outcomes["refund_order"] = lambda _: waiting_for_manager()
    id = await started(client)
    host.approvals[id, "manager"] = OpenApproval(id, "refund_order", "manager", "Pay back?", moment(NOW), None, {})
    host.parked["p"] = ParkedItem("p", "owed", "refund_order", "502 for an hour", moment(NOW))
    page = (await client.get("/console")).text
    for shown in (id, "Shop tools", "Pay back?", "502 for an hour", "approval", "manager", 'class="status waiting"'):
        assert shown in page


async def test_filters_stand_in_the_address(client: AsyncClient) -> None:
    ids = {key: await started(client, key) for key in ("a", "b")}
    page = (await client.get("/console?key=a&status=done&program=refund_order")).text
    assert (ids["a"] in page, ids["b"] in page) == (True, False)
    assert '<option value="done" selected>' in page
    assert (await client.get("/console?status=gone")).status_code == 422
    assert "No run fits" in (await client.get("/console?key=zz")).text


async def test_older_runs_are_one_link_away_under_the_same_filter(client: AsyncClient) -> None:
    for number in range(51):
        await started(client, f"k{number}")
    page = (await client.get("/console?program=refund_order")).text
    assert 'href="/console?program=refund_order&amp;after=50"' in page


async def test_a_runs_page_shows_waits_journal_and_outcome(host: FakeHost, client: AsyncClient) -> None:
    retry = WaitShown("retry", "pay_back", NOW, "c2", NOW + 60_000, "HTTPError: 502")
    host.outcomes["refund_order"] = lambda _: Outcome("waiting", waits=(retry,))
    id = await started(client)
    host.journals[id] = [
        JournalRow(1, "", "look_up", "step", 1, moment(NOW), result={"bill": "b7"}),
        JournalRow(2, "t1", "pay_back", "step", 1, moment(NOW + 5000), error={"kind": "HTTPError", "message": "502"}),
    ]
    page = (await client.get(f"/console/runs/{id}")).text
    for shown in ("look_up", "b7", "HTTPError: 502", "next attempt", "in 1 minute", "pay_back", 'width="100.0"', "t1"):
        assert shown in page, shown
    assert f'action="/console/runs/{id}/cancel"' in page


async def test_a_finished_run_shows_its_result_and_a_failed_one_its_error(host: FakeHost, client: AsyncClient) -> None:
    assert "re_1" in (await client.get(f"/console/runs/{await started(client)}")).text
    host.outcomes["refund_order"] = lambda _: Outcome("failed", error=Trouble("step_failed", "X: 502", "pay_back", 5))
    await client.post("/tools/refund_order", json={"order_id": "9", "amount": 1})
    page = (await client.get(f"/console/runs/{list(host.runs)[-1]}")).text
    for shown in ("step_failed", "in step pay_back", "after 5 attempts", "X: 502", "Try again"):
        assert shown in page


async def test_a_run_that_is_none_is_a_page(client: AsyncClient) -> None:
    page = await client.get("/console/runs/run_none")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")


async def test_actions_are_posted_by_our_own_page_and_lead_back(host: FakeHost, client: AsyncClient) -> None:
    host.outcomes["refund_order"] = lambda _: waiting_for_manager()
    id = await started(client)
    for action in ("cancel", "retry"):
        refused = await client.post(f"/console/runs/{id}/{action}", data={"reason": "twice"})
        assert refused.status_code == 403
    assert len(host.acted) == 1
    told = await client.post(f"/console/runs/{id}/cancel", data={"reason": "twice"}, headers=ORIGIN)
    assert (told.status_code, told.headers["location"]) == (303, f"/console/runs/{id}")
    assert host.acted[-1] == ("cancel", id, "twice")
    await client.post(f"/console/runs/{id}/retry", headers=ORIGIN)
    assert host.acted[-1][:2] == ("retry", id)


async def test_looking_never_acts(host: FakeHost, client: AsyncClient) -> None:
    id = await started(client)
    for path in (
        f"/console/runs/{id}/cancel",
        f"/console/runs/{id}/retry",
        "/console/parked/p/drop",
        "/console/logout",
    ):
        assert (await client.get(path)).status_code == 405
    assert len(host.acted) == 1


async def test_parked_items_have_two_ways_out(host: FakeHost, client: AsyncClient) -> None:
    for id in ("p 1", "p2"):
        host.parked[id] = ParkedItem(id, "owed", "refund_order", "502", moment(NOW))
    page = (await client.get("/console/parked")).text
    assert "/console/parked/p%201/retry" in page
    assert (await client.post("/console/parked/p%201/retry", headers=ORIGIN)).status_code == 303
    assert (await client.post("/console/parked/p2/drop", data={"reason": " "}, headers=ORIGIN)).status_code == 422
    told = await client.post("/console/parked/p2/drop", data={"reason": "by hand"}, headers=ORIGIN)
    assert told.status_code == 303
    assert host.acted[0] == ("parked_retry", "p 1")
    assert host.acted[1] == ("parked_drop", "p2", "by hand")


async def test_every_value_of_the_console_is_text(host: FakeHost, client: AsyncClient) -> None:
    wait = WaitShown("approval", HOSTILE, NOW, "c", NOW + DAY, HOSTILE)
    host.outcomes["refund_order"] = lambda _: Outcome("waiting", waits=(wait,))
    id = await started(client)
    run = host.runs[id]
    run.receipt = replace(run.receipt, key=HOSTILE, error=Trouble(HOSTILE, HOSTILE, HOSTILE, 2))
    bad = {"kind": HOSTILE, "message": [HOSTILE]}
    host.journals[id] = [
        JournalRow(1, HOSTILE, HOSTILE, HOSTILE, 1, moment(NOW), result={HOSTILE: HOSTILE}),
        JournalRow(2, "", "s", "step", 1, moment(NOW), error=bad),
        JournalRow(3, "", "s", "step", 1, moment(NOW), result=HOSTILE),
    ]
    host.parked[HOSTILE] = ParkedItem(HOSTILE, HOSTILE, HOSTILE, HOSTILE, moment(NOW))
    host.approvals["x", "y"] = OpenApproval(HOSTILE, HOSTILE, HOSTILE, HOSTILE, moment(NOW), None, HOSTILE)
    for path in ("/console", f"/console/runs/{id}", "/console/parked", "/console?key=%3Cimg%3E"):
        check_all_is_text(await client.get(path))


async def test_pages_load_nothing_from_elsewhere(host: FakeHost, client: AsyncClient) -> None:
    id = await started(client)
    for path in ("/console", f"/console/runs/{id}", "/approve", "/console/parked", "/console/login"):
        page = await client.get(path)
        assert "https://" not in page.text
        assert "http://" not in page.text
        assert " style=" not in page.text
        assert not re.search(r"\son[a-z]+=", page.text)
        assert "script-src 'self'" in page.headers["content-security-policy"]
    for name, kind in (("onefold.css", "text/css"), ("live.js", "text/javascript"), ("icon.svg", "image/svg")):
        file = await client.get(f"/console/static/{name}")
        assert file.headers["content-type"].startswith(kind)
        assert "http" not in file.text.replace("http://www.w3.org/2000/svg", "")
    assert (await client.get("/console/static/..%2Fpages.py")).status_code == 404


async def test_below_a_mounted_path_every_link_stays_below_it(front: Front) -> None:
    for path in ("/console", "/approve", "/console/parked", "/console/login"):
        call = await Asgi(front, "GET", f"/onefold{path}", root_path="/onefold").ended()
        links = re.findall(r'(?:href|src|action|data-events)="([^"]+)"', call.body.decode())
        assert links
        assert [link for link in links if not link.startswith("/onefold/")] == []
    call = await Asgi(front, "GET", "/onefold", root_path="/onefold").ended()
    assert (call.status, call.headers[b"location"]) == (303, b"/onefold/console")


async def test_news_come_as_they_happen_and_say_nothing_but_that(host: FakeHost, front: Front) -> None:
    call = Asgi(front, "GET", "/console/events")
    await call.until(lambda: len(call.sent) == 2)
    assert call.headers[b"content-type"] == b"text/event-stream"
    host.happenings.put_nowait(Happening(moment(NOW), "StepDone", "run_1", "refund_order", "secret text"))
    await call.until(lambda: len(call.sent) == 3)
    assert call.sent[2]["body"] == b"data: changed\n\n"
    call.leave()
    await call.ended()


async def test_news_end_when_the_process_leaves(front: Front) -> None:
    call = Asgi(front, "GET", "/console/events")
    await call.until(lambda: len(call.sent) == 2)
    front.drain()
    await call.ended()
    assert call.sent[-1] == {"type": "http.response.body", "body": b""}


# --- signing in --------------------------------------------------------------------------------------


async def test_a_key_shown_once_opens_a_session_without_it(locked: FakeHost) -> None:
    app = asgi_app(locked)
    async with client_of(app) as client:
        sent = await client.get("/console?status=done")
        assert (sent.status_code, sent.headers["location"]) == (303, "/console/login?next=%2Fconsole%3Fstatus%3Ddone")
        login = await client.get(sent.headers["location"])
        assert 'value="/console?status=done"' in login.text
        data = {"key": OPERATOR_KEY, "next": "/console?status=done"}
        wrong = await client.post("/console/login", data=data | {"key": "nope"}, headers=ORIGIN)
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
        assert (await client.post("/console/login", data=data)).status_code == 403
        done = await client.post("/console/login", data=data, headers=ORIGIN)
        assert (done.status_code, done.headers["location"]) == (303, "/console?status=done")
        cookie = done.headers["set-cookie"]
        for part in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"):
            assert part in cookie
        assert "Secure" not in cookie
        public = {"host": "tools.example.com", "origin": "https://tools.example.com"}
        assert "; Secure" in (await client.post("/console/login", data=data, headers=public)).headers["set-cookie"]
        assert OPERATOR_KEY not in cookie
        value = cookie.partition(";")[0]
        assert (await client.get("/console", headers={"cookie": value})).status_code == 200
        out = await client.post("/console/logout", headers=ORIGIN | {"cookie": value})
        assert "Max-Age=0" in out.headers["set-cookie"]
    await app.aclose()


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.test",
        "//evil.test",
        "/\\evil.test",
        "/console\\@evil.test",
        "javascript:alert(1)",
        "",
        "/runs",
        "/consolex",
    ],
)
async def test_signing_in_leads_nowhere_else(locked: FakeHost, wanted: str) -> None:
    app = asgi_app(locked)
    async with client_of(app) as client:
        told = await client.post("/console/login", data={"key": OPERATOR_KEY, "next": wanted}, headers=ORIGIN)
    assert told.headers["location"] == "/console"
    await app.aclose()


async def test_a_reader_sees_runs_and_nothing_of_operation(locked: FakeHost, holding: Keyed) -> None:
    locked.approvals["x", "y"] = OpenApproval("x", "p", "y", "Pay back?", moment(NOW), None, {})
    async with holding(READER_KEY) as client:
        page = await client.get("/console")
        assert (page.status_code, "Pay back?" in page.text, "Parked" in page.text) == (200, False, False)
