"""A link shows, a form decides, once; and every dead link has a page that says why."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any, Literal

import pytest
from httpx2 import AsyncClient, Response

from onefold.serve import Front
from onefold.terms.instant import moment
from tests.serve.conftest import OPERATOR_KEY, Keyed
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import DAY, NOW, LinkPage, OpenApproval
from tests.serve.raw import Asgi

TOKEN = "eyJydW4iOiJydW5fMSJ9.c2lnbmVk"
PATH = f"/approve/{TOKEN}"
ORIGIN = {"origin": "http://127.0.0.1:8600"}
HOSTILE = '<img src=x onerror="alert(1)"></script><script>alert(2)</script> javascript:alert(3) \u202e001'

OPEN = LinkPage(
    "open",
    "approve",
    "run_1",
    "refund_order",
    "manager",
    "Pay back 150 for order 8?",
    {"order_id": "8", "amount": "150", "lines": [{"sku": "a"}]},
    moment(NOW - 60_000),
    moment(NOW + DAY),
)


@pytest.fixture
def links(host: FakeHost) -> FakeHost:
    host.links = {TOKEN: OPEN, "reject-token": replace(OPEN, choice="reject")}
    return host


def nonce(page: Response) -> str:
    found = re.search(r'name="nonce" value="([0-9a-f]{64})"', page.text)
    assert found is not None, page.text
    return found[1]


async def tap(client: AsyncClient, token: str, choice: str, given: str, **more: str) -> Response:
    data = {"choice": choice, "nonce": given, **more}
    return await client.post(f"/approve/{token}", data=data, headers=ORIGIN)


async def test_the_page_shows_what_will_happen(links: FakeHost, client: AsyncClient) -> None:
    page = await client.get(PATH)
    assert page.status_code == 200
    for shown in ("Pay back 150 for order 8?", "order_id", "150", "29 May 2026, 20:26 UTC", "in 1 day", "1 minute ago"):
        assert shown in page.text


async def test_opening_head_and_previews_decide_nothing(links: FakeHost, client: AsyncClient) -> None:
    for _ in range(20):
        await client.get(PATH, headers={"user-agent": "Slackbot-LinkExpanding 1.0", "purpose": "prefetch"})
        head = await client.head(PATH)
        assert (head.status_code, head.content) == (200, b"")
    assert (links.acted, links.links[TOKEN].state) == ([], "open")
    page = await client.get(PATH)
    assert (await tap(client, TOKEN, "approve", nonce(page))).status_code == 200


async def test_a_link_page_tells_nobody_about_its_link(links: FakeHost, client: AsyncClient) -> None:
    for page in (await client.get(PATH), await client.get("/approve/forged"), await client.post(PATH, data={"a": "b"})):
        headers = page.headers
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-robots-tag"] == "noindex, nofollow"
        assert headers["x-frame-options"] == "DENY"
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "frame-ancestors 'none'" in policy
        assert "script-src" not in policy
        assert "unsafe" not in policy
        assert TOKEN not in page.text
        assert "<script" not in page.text
        assert "noindex" in page.text


async def test_one_tap_decides_and_the_page_says_so(links: FakeHost, client: AsyncClient) -> None:
    page = await client.get(PATH)
    done = await tap(client, TOKEN, "approve", nonce(page), reason=" checked \r\n twice ")
    assert (done.status_code, "You approved this" in done.text) == (200, True)
    assert links.acted == [("link", "run_1", "approve", "checked \n twice")]


async def test_a_rejection_carries_its_reason(links: FakeHost, client: AsyncClient) -> None:
    page = await client.get("/approve/reject-token")
    assert "Reject" in page.text
    done = await tap(client, "reject-token", "reject", nonce(page), reason="no receipt")
    assert (done.status_code, "You rejected this" in done.text) == (200, True)
    assert links.acted == [("link", "run_1", "reject", "no receipt")]


async def test_a_second_tap_decides_nothing_and_names_who_did(links: FakeHost, client: AsyncClient) -> None:
    given = nonce(await client.get(PATH))
    await tap(client, TOKEN, "approve", given)
    again = await tap(client, TOKEN, "approve", given)
    assert again.status_code == 410
    for shown in ("already decided", "whoever held the link", "approved it", "28 May 2026, 20:26 UTC"):
        assert shown in again.text
    assert len(links.acted) == 1


async def test_approve_and_reject_at_once_decide_once(links: FakeHost, client: AsyncClient) -> None:
    yes, no = nonce(await client.get(PATH)), nonce(await client.get("/approve/reject-token"))
    taps = [tap(client, *one) for _ in range(5) for one in ((TOKEN, "approve", yes), ("reject-token", "reject", no))]
    statuses = [page.status_code for page in await asyncio.gather(*taps)]
    assert sorted(statuses) == [200] + [410] * 9
    assert len(links.acted) == 1


@pytest.mark.parametrize("given", ["", "0" * 64, "x", "ä"])
async def test_without_the_pages_own_token_nothing_is_decided(links: FakeHost, client: AsyncClient, given: str) -> None:
    page = await tap(client, TOKEN, "approve", given)
    assert (page.status_code, links.acted) == (403, [])


async def test_the_form_of_one_link_does_not_fit_another(links: FakeHost, client: AsyncClient) -> None:
    other = nonce(await client.get("/approve/reject-token"))
    refused = await tap(client, TOKEN, "approve", other)
    assert (refused.status_code, "Open the link again" in refused.text, "key" in refused.text) == (403, True, False)
    links.links["another-run"] = replace(OPEN, run_id="run_2")
    assert (await tap(client, "another-run", "approve", nonce(await client.get(PATH)))).status_code == 403
    assert links.acted == []


@pytest.mark.parametrize("choice", ["reject", "", "Approve", "approve\n", "true"])
async def test_a_link_decides_only_what_it_is_for(links: FakeHost, client: AsyncClient, choice: str) -> None:
    page = await tap(client, TOKEN, choice, nonce(await client.get(PATH)))
    assert (page.status_code, links.acted) == (400, [])


async def test_a_form_without_a_choice_decides_nothing(links: FakeHost, client: AsyncClient) -> None:
    given = nonce(await client.get(PATH))
    page = await client.post(PATH, data={"nonce": given}, headers=ORIGIN)
    assert (page.status_code, links.acted) == (400, [])


@pytest.mark.parametrize(
    "headers,status",
    [
        ([], 200),
        ([(b"origin", b"http://127.0.0.1:8600")], 200),
        ([(b"origin", b"null")], 200),  # what a page without referrer sends in a form
        ([(b"origin", b"null"), (b"sec-fetch-site", b"same-origin")], 200),
        ([(b"origin", b"null"), (b"sec-fetch-site", b"cross-site")], 403),
        ([(b"origin", b"null"), (b"sec-fetch-site", b"same-site")], 403),
        ([(b"origin", b"http://evil.test")], 403),
        ([(b"origin", b"http://evil.test"), (b"sec-fetch-site", b"same-origin")], 403),
    ],
)
async def test_a_form_from_a_foreign_page_decides_nothing(
    links: FakeHost, front: Front, client: AsyncClient, headers: list[tuple[bytes, bytes]], status: int
) -> None:
    body = f"choice=approve&nonce={nonce(await client.get(PATH))}".encode()
    call = await Asgi(front, "POST", PATH, body=body, headers=headers).ended()
    assert (call.status, len(links.acted)) == (status, 1 if status == 200 else 0)


async def test_a_reason_beyond_2000_characters_is_refused(links: FakeHost, client: AsyncClient) -> None:
    page = await tap(client, TOKEN, "approve", nonce(await client.get(PATH)), reason="x" * 2001)
    assert (page.status_code, links.acted) == (422, [])


State = Literal["decided", "expired", "cancelled", "unknown", "changed"]
DEAD: dict[State, tuple[int, str]] = {
    "decided": (410, "already decided"),
    "expired": (410, "The time to decide is over"),
    "cancelled": (410, "This was withdrawn"),
    "changed": (410, "What you were asked has changed"),
    "unknown": (404, "This link is not known here"),
}


@pytest.mark.parametrize("state", DEAD)
async def test_every_dead_link_has_its_page(links: FakeHost, client: AsyncClient, state: State) -> None:
    given = nonce(await client.get(PATH))
    links.links[TOKEN] = replace(OPEN, state=state, by="Ada", at=moment(NOW), outcome="rejected")
    for page in (await client.get(PATH), await tap(client, TOKEN, "approve", given)):
        assert page.status_code == DEAD[state][0]
        assert DEAD[state][1] in page.text
        assert "<form" not in page.text
        assert "order_id" not in page.text  # the arguments are for whoever may still decide
    assert links.acted == []


async def test_who_and_what_stand_on_the_decided_page(links: FakeHost, client: AsyncClient) -> None:
    links.links[TOKEN] = replace(OPEN, state="decided", by="Ada", at=moment(NOW), outcome="rejected")
    assert "Ada rejected it on" in (await client.get(PATH)).text
    links.links[TOKEN] = replace(OPEN, state="decided", by=("Ada", "Bo"), at=None, outcome=None)  # type: ignore[arg-type]
    assert "Ada, Bo decided" in (await client.get(PATH)).text


async def test_a_forged_or_cut_token_is_a_page_and_not_a_fault(client: AsyncClient) -> None:
    for token in ("x", "a" * 5000, "%00", "a.b.c", "%F0%9F%92%B8"):
        page = await client.get(f"/approve/{token}")
        assert page.status_code == 404
    assert (await client.get("/approve/%FF")).status_code == 400


async def test_no_answer_to_a_link_holds_its_token(
    host: FakeHost, front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(token: str) -> Any:
        raise RuntimeError(token)

    monkeypatch.setattr(host, "link_page", broken)
    for method in ("GET", "POST", "PUT"):
        call = await Asgi(front, method, PATH, body=b"choice=approve").ended()
        assert call.status in (405, 500)
        assert TOKEN.encode() not in call.body


@pytest.mark.parametrize("field", ["message", "program", "name", "by", "shown"])
async def test_every_value_of_a_link_page_is_text(links: FakeHost, client: AsyncClient, field: str) -> None:
    value: Any = {HOSTILE: HOSTILE, "list": [HOSTILE], "n": None} if field == "shown" else HOSTILE
    for state in ("open", "decided", "expired", "cancelled", "changed"):
        links.links[TOKEN] = replace(OPEN, **{"state": state, field: value, "at": moment(NOW)})
        page = await client.get(PATH)
        check_all_is_text(page)


def check_all_is_text(page: Response) -> None:
    """Nothing of HOSTILE is markup, a link or a direction."""
    assert page.status_code in (200, 410)
    assert "<img" not in page.text
    assert "<script>" not in page.text
    assert "</script>a" not in page.text.replace("defer></script>", "")
    assert "\u202e" not in page.text
    assert 'href="javascript' not in page.text


# --- the inbox -------------------------------------------------------------------------------------


@pytest.fixture
def inbox(host: FakeHost) -> FakeHost:
    one = OpenApproval("run_1", "refund_order", "manager", "Pay back 150?", moment(NOW), moment(NOW + DAY), {"a": "1"})
    host.approvals["run_1", "manager"] = one
    return host


def seen(page: Response) -> str:
    found = re.search(r'name="shown" value="([0-9a-f]{64})"', page.text)
    assert found is not None
    return found[1]


async def decide(client: AsyncClient, shown: str, choice: str, origin: dict[str, str] | None = None) -> Response:
    data = {"choice": choice, "shown": shown, "reason": "because"}
    return await client.post(
        "/console/approvals/run_1/manager", data=data, headers=ORIGIN if origin is None else origin
    )


async def test_the_inbox_shows_and_decides(inbox: FakeHost, client: AsyncClient) -> None:
    page = await client.get("/approve")
    assert "Pay back 150?" in page.text
    assert (await client.head("/approve")).status_code == 200
    assert inbox.acted == []
    done = await decide(client, seen(page), "approve")
    assert (done.status_code, "You approved this" in done.text) == (200, True)
    assert inbox.acted == [("decided", "run_1", "manager", True, "local", None, "because", None)]
    again = await decide(client, seen(page), "reject")
    assert (again.status_code, "already decided" in again.text) == (410, True)
    assert len(inbox.acted) == 1


async def test_a_rejection_in_the_inbox_has_a_reason_and_no_comment(inbox: FakeHost, client: AsyncClient) -> None:
    await decide(client, seen(await client.get("/approve")), "reject")
    assert inbox.acted == [("decided", "run_1", "manager", False, "local", "because", None, None)]


async def test_what_changed_since_it_was_read_is_not_decided(inbox: FakeHost, client: AsyncClient) -> None:
    shown = seen(await client.get("/approve"))
    inbox.approvals["run_1", "manager"] = replace(inbox.approvals["run_1", "manager"], shown={"a": "1000"})
    for given in (shown, "", "ä"):
        page = await decide(client, given, "approve")
        assert (page.status_code, "has changed" in page.text, inbox.acted) == (410, True, [])


async def test_an_approval_that_is_none_is_a_page(client: AsyncClient) -> None:
    assert (await decide(client, "", "approve")).status_code == 404


@pytest.mark.parametrize(
    "headers,status",
    [
        ({}, 403),
        ({"origin": "http://evil.test"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
    ],
)
async def test_the_inbox_takes_forms_of_its_own_page_only(
    inbox: FakeHost, client: AsyncClient, headers: dict[str, str], status: int
) -> None:
    page = await decide(client, seen(await client.get("/approve")), "approve", headers)
    assert (page.status_code, len(inbox.acted)) == (status, 1 if status == 200 else 0)


async def test_every_value_of_the_inbox_is_text(inbox: FakeHost, client: AsyncClient) -> None:
    hostile = OpenApproval(HOSTILE, HOSTILE, HOSTILE, HOSTILE, moment(NOW), None, {HOSTILE: [HOSTILE]})
    inbox.approvals = {("x", "y"): hostile}
    check_all_is_text(await client.get("/approve"))


async def test_an_operator_decides_under_the_keys_name(locked: FakeHost, holding: Keyed) -> None:
    locked.approvals["run_1", "manager"] = OpenApproval("run_1", "refund_order", "manager", "?", moment(NOW), None, {})
    async with holding(OPERATOR_KEY) as client:
        await decide(client, seen(await client.get("/approve")), "approve")
    assert locked.acted[0][4] == "operator_key"
