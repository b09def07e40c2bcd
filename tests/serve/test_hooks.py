"""Signed deliveries start a run each, once, and are answered at once."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

import pytest
from httpx2 import AsyncClient

from onefold.actuators.declare import actuator
from onefold.actuators.run import Run
from onefold.host.config import Hook
from onefold.serve import asgi_app
from onefold.serve.webhooks import sign_standard
from tests.serve.conftest import HOOK_SECRET, client_of
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import NOW, Config, Outcome, Refund, paid, refund_order
from tests.serve.raw import Asgi

BODY = b'{"order_id":"7","amount":40}'


def sent(id: str = "msg_1", body: bytes = BODY, at_s: int = NOW // 1000) -> dict[str, str]:
    return sign_standard(id, at_s, body, HOOK_SECRET)


async def test_a_signed_delivery_is_202_and_never_waits(host: FakeHost, client: AsyncClient) -> None:
    host.outcomes["refund_order"] = lambda _: Outcome("running")
    told = await client.post("/hooks/refund_order", content=BODY, headers=sent())
    assert (told.status_code, told.json()["status"], host.waiting) == (202, "running", 0)


async def test_a_replay_is_answered_again_without_acting(host: FakeHost, client: AsyncClient) -> None:
    first = await client.post("/hooks/refund_order", content=BODY, headers=sent())
    host.clock.at += 3_600_000
    again = await client.post("/hooks/refund_order", content=BODY, headers=sent(at_s=host.clock.at // 1000))
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert again.headers["onefold-replayed"] == "true"
    assert len(host.acted) == 1


async def test_the_deliverys_own_id_is_the_key(host: FakeHost, client: AsyncClient) -> None:
    await client.post("/hooks/refund_order", content=BODY, headers=sent("msg_42"))
    assert host.acted[0][2] == "msg_42"


async def test_an_id_with_another_body_is_a_conflict(host: FakeHost, client: AsyncClient) -> None:
    await client.post("/hooks/refund_order", content=BODY, headers=sent())
    other = BODY.replace(b"40", b"41")
    told = await client.post("/hooks/refund_order", content=other, headers=sent(body=other))
    assert (told.status_code, told.json()["code"], len(host.acted)) == (422, "key_conflict", 1)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"webhook-id": "msg_1"},
        sent() | {"webhook-signature": "v1,AAAA"},
        sent() | {"webhook-timestamp": "nan"},
        sent(body=b"{}"),
        sent(at_s=NOW // 1000 - 301),
        sent() | {"webhook-signature": "no comma"},
        {"authorization": f"Bearer {HOOK_SECRET}"},
    ],
)
async def test_what_is_not_signed_is_401_and_starts_nothing(
    host: FakeHost, client: AsyncClient, headers: dict[str, str]
) -> None:
    told = await client.post("/hooks/refund_order", content=BODY, headers=headers)
    assert (told.status_code, told.json()["code"], host.acted) == (401, "bad_signature", [])


async def test_a_signature_with_foreign_letters_is_401(host: FakeHost, client: AsyncClient) -> None:
    headers = [(name.encode(), value.encode()) for name, value in sent().items() if name != "webhook-signature"]
    headers.append((b"webhook-signature", "v1,ä".encode()))
    assert (await client.post("/hooks/refund_order", content=BODY, headers=headers)).status_code == 401


async def test_a_signature_opens_no_other_door(client: AsyncClient) -> None:
    assert (await client.post("/hooks/paid", content=BODY, headers=sent())).status_code == 401
    for name in ("slow_report", "nightly", "nowhere"):
        assert (await client.post(f"/hooks/{name}", content=BODY, headers=sent())).status_code == 404


async def test_a_hook_without_a_secret_is_401(host: FakeHost) -> None:
    for config in (Config(), Config(hooks={"refund_order": Hook("UNSET")})):
        other = FakeHost(config)
        app = asgi_app(other)
        async with client_of(app) as client:
            told = await client.post("/hooks/refund_order", content=BODY, headers=sent())
        await app.aclose()
        assert (told.status_code, other.acted) == (401, [])


async def test_a_signed_body_is_still_checked(host: FakeHost, client: AsyncClient) -> None:
    for body, status in ((b'{"order_id":"7","amount":900}', 422), (b'{"a":1,"a":2}', 400)):
        told = await client.post("/hooks/refund_order", content=body, headers=sent(body=body))
        assert (told.status_code, host.acted) == (status, [])


async def test_a_delivery_runs_as_its_hooks_principal() -> None:
    host = FakeHost(Config(hooks={"refund_order": Hook("HOOK", principal="studio")}, environ={"HOOK": HOOK_SECRET}))
    app = asgi_app(host)
    call = Asgi(app, "POST", "/hooks/refund_order", body=BODY, headers=_raw(sent()), client=("8.8.8.8", 1))
    assert (await call.ended()).status == 202
    assert next(iter(host.runs.values())).principal == "studio"
    assert host.acted[0][3].rights == {"call"}
    await app.aclose()


def _raw(headers: dict[str, str]) -> Sequence[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


async def test_a_stripe_event_is_known_by_its_own_id(host: FakeHost, client: AsyncClient) -> None:
    def stripe(body: bytes) -> dict[str, str]:
        mac = hmac.new(HOOK_SECRET.encode(), b"%d." % (NOW // 1000) + body, hashlib.sha256).hexdigest()
        return {"stripe-signature": f"t={NOW // 1000},v1={mac}"}

    for body, status in ((b'{"id":"evt_1"}', 422), (b'{"order_id":"7","amount":1}', 400)):
        told = await client.post("/hooks/paid", content=body, headers=stripe(body))
        assert told.status_code == status  # the first has an id and wrong fields, the second no id at all
    assert host.acted == []


@actuator(webhook="slack", tool=False)
async def said(run: Run, order: Refund) -> None:
    """A command of a chat."""


@actuator(webhook="github", tool=False)
async def pushed(run: Run, order: Refund) -> None:
    """A delivery of a repository."""


def slack(body: bytes) -> dict[str, str]:
    mac = hmac.new(HOOK_SECRET.encode(), b"v0:%d:" % (NOW // 1000) + body, hashlib.sha256).hexdigest()
    return {"x-slack-request-timestamp": str(NOW // 1000), "x-slack-signature": f"v0={mac}"}


def github(body: bytes, **more: str) -> dict[str, str]:
    mac = hmac.new(HOOK_SECRET.encode(), body, hashlib.sha256).hexdigest()
    return {"x-hub-signature-256": f"sha256={mac}", "x-github-delivery": "d-1", **more}


@pytest.fixture
def chat() -> FakeHost:
    hooks = {name: Hook("HOOK") for name in ("said", "pushed")}
    return FakeHost(Config(hooks=hooks, environ={"HOOK": HOOK_SECRET}), [said, pushed, refund_order, paid])


async def test_slack_is_told_its_challenge_only_when_it_signed(chat: FakeHost) -> None:
    app = asgi_app(chat)
    body = b'{"type":"url_verification","challenge":"c-1"}'
    async with client_of(app) as client:
        assert (await client.post("/hooks/said", content=body)).status_code == 401
        told = await client.post("/hooks/said", content=body, headers=slack(body))
    assert (told.status_code, told.json(), chat.acted) == (200, {"challenge": "c-1"}, [])
    await app.aclose()


async def test_a_slash_command_comes_as_a_form(chat: FakeHost) -> None:
    app = asgi_app(chat)
    form = {"content-type": "application/x-www-form-urlencoded"}
    async with client_of(app) as client:
        body = b"order_id=7&amount=40"
        for _ in range(2):
            told = await client.post("/hooks/said", content=body, headers=slack(body) | form)
            assert told.status_code == 202
        wrapped = b"payload=%7B%22order_id%22%3A%227%22%2C%22amount%22%3A1%7D"
        assert (await client.post("/hooks/said", content=wrapped, headers=slack(wrapped) | form)).status_code == 202
    assert len(chat.acted) == 2
    await app.aclose()


async def test_a_ping_of_github_starts_nothing(chat: FakeHost) -> None:
    app = asgi_app(chat)
    async with client_of(app) as client:
        zen = b'{"zen":"Keep it logically awesome."}'
        headers = github(zen, **{"x-github-event": "ping"})
        told = await client.post("/hooks/pushed", content=zen, headers=headers)
        assert (told.status_code, told.json(), chat.acted) == (200, {"ok": True}, [])
        assert (await client.post("/hooks/pushed", content=BODY, headers=github(BODY))).status_code == 202
    assert chat.acted[0][2] == "d-1"
    await app.aclose()
