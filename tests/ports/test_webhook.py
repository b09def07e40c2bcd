"""A notice as a signed POST, to a real web server."""

from __future__ import annotations

import base64
import time

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from onefold.ports.notify import Unsent
from onefold.ports.webhook import signature, webhook_way
from onefold.terms.codec import parse
from onefold.terms.instant import moment
from tests.ports.conftest import NOON, PAIR, Web, asked

SECRET = b"s" * 32


async def told(url: str, secrets: tuple[bytes, ...] = (SECRET,)) -> None:
    way = webhook_way(signature(secrets), lambda: NOON + 7_200_000)
    await way(url, asked(), PAIR, "id1", moment(NOON))


async def test_it_says_what_is_asked_and_how_to_decide(web: Web) -> None:
    await told(web.url)
    ((headers, body),) = web.posted
    sent = parse(body)
    assert headers["content-type"] == "application/json"
    assert sent["type"] == "approval.requested"
    assert sent["data"]["approve_url"] == PAIR.approve
    assert sent["data"]["shown"] == {"amount": "150", "order_id": "8"}
    assert (sent["timestamp"], sent["data"]["until"]) == ("2027-01-15T08:00:00Z", "2027-01-16T08:00:00Z")


async def test_any_standard_webhooks_receiver_accepts_its_signature(web: Web) -> None:
    """Also while a secret is rotated: the receiver that still has the old one finds its signature."""
    at = int(time.time() * 1000)
    sign = signature((b"n" * 32, SECRET))
    await webhook_way(sign, lambda: at)(web.url, asked(), PAIR, "id1", moment(NOON))
    ((headers, body),) = web.posted
    for secret in (SECRET, b"n" * 32):
        receiver = Webhook(base64.b64encode(secret).decode())
        assert receiver.verify(body, headers)["type"] == "approval.requested"
    with pytest.raises(WebhookVerificationError):
        Webhook(base64.b64encode(b"x" * 32).decode()).verify(body, headers)


async def test_a_late_repeat_is_signed_with_the_time_it_leaves(web: Web) -> None:
    await told(web.url)
    assert web.posted[0][0]["webhook-timestamp"] == str((NOON + 7_200_000) // 1000)


@pytest.mark.parametrize("status", [301, 307, 400, 500])
async def test_only_2xx_counts_as_told_and_nothing_is_followed(web: Web, status: int) -> None:
    web.status = status
    web.location = web.url if status in (301, 307) else None
    with pytest.raises(Unsent) as caught:
        await told(web.url)
    assert caught.value.why == f"was not told: the address answered {status}"
    assert len(web.posted) == 1


async def test_links_do_not_travel_in_the_open() -> None:
    with pytest.raises(Unsent, match="Use https"):
        await told("http://hooks.example.com/x")


async def test_an_address_that_does_not_answer_is_told_without_its_path() -> None:
    with pytest.raises(Unsent) as caught:
        await told("http://127.0.0.1:1/T0K3N")
    assert caught.value.why == "was not told: ConnectError"
