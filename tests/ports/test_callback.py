"""Where a caller may have a receipt posted: the open internet, and this machine only where everybody is on it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC

import pytest
from msgspec import Raw
from standardwebhooks.webhooks import Webhook

from onefold.actuators.carried import Callback
from onefold.kernel.port import Port, Step
from onefold.ports import webhook
from onefold.ports.callback import callback_port, refusal
from onefold.ports.notify import Memo, Unsent
from onefold.ports.webhook import key_of, signature, webhook_way
from onefold.terms.errors import PortFailed
from onefold.terms.instant import moment
from tests.ports.conftest import NOON, Web

STEP = Step("k", moment(NOON), 1, None)


async def calling(port: Port[Callback, None], body: Callback) -> None:
    called = port.function(STEP, body)
    assert called is not None
    await called


INSIDE = (
    "http://127.0.0.1:8600/x",
    "http://localhost/x",
    "https://[::1]/x",
    "https://169.254.169.254/latest",
    "https://10.1.2.3/x",
    "http://tools.example.com/x",
    "ftp://tools.example.com/x",
    "https://user:pass@tools.example.com/x",
    "https://tools.example.com\\@10.1.2.3/x",
    "https://intranet/x",
    "https://tools.example.com/x y",
    "",
)


@pytest.mark.parametrize("url", INSIDE)
def test_a_server_with_keys_calls_nothing_but_the_open_internet(url: str) -> None:
    assert refusal(url, here=False) is not None


def test_a_server_without_keys_calls_this_machine_as_well() -> None:
    assert [url for url in INSIDE if refusal(url, here=True) is None] == list(INSIDE[:3])
    assert refusal("https://tools.example.com/x?y=1", here=False) is None


async def test_a_name_that_leads_inside_by_then_is_not_connected_to(web: Web) -> None:
    asked: list[tuple[str, int]] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append((host, port))
        return ["93.184.216.34", "10.0.0.1"]

    port = callback_port(signature((b"s" * 32,)), lambda: NOON, here=False, resolve=resolve)
    with pytest.raises(PortFailed, match="not public") as caught:
        await calling(port, Callback("https://tools.example.com/T0K3N", "run_1/0", Raw(b"{}")))
    assert "T0K3N" not in str(caught.value.why)
    assert asked == [("tools.example.com", 443)]


async def test_what_was_taken_without_keys_is_not_posted_inside_once_there_are_keys(web: Web) -> None:
    port = callback_port(signature((b"s" * 32,)), lambda: NOON, here=False)
    with pytest.raises(PortFailed, match="https://"):
        await calling(port, Callback(web.url, "run_1/0", Raw(b"{}")))
    assert web.posted == []


async def test_an_address_that_answers_a_byte_at_a_time_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "WHOLE_S", 0.2)
    gone = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
        with suppress(OSError):
            while not writer.is_closing():
                writer.write(b"a")
                await writer.drain()
                await asyncio.sleep(0.01)
        gone.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
    sign = signature((b"s" * 32,))
    port = callback_port(sign, lambda: NOON, here=True)
    memo = Memo("subject", "message", ())
    async with asyncio.timeout(60):
        with pytest.raises(PortFailed, match="TimeoutError"):
            await calling(port, Callback(url, "run_1/0", Raw(b"{}")))
        await gone.wait()
        gone.clear()
        with pytest.raises(Unsent, match="TimeoutError"):
            await webhook_way(sign, lambda: NOON)(url, memo, None, "m1", moment(NOON))
        await gone.wait()
    server.close()
    await server.wait_closed()


def test_a_secret_written_as_libraries_write_it_is_the_one_they_read() -> None:
    """Was wrong once: `whsec_…` signed as its letters. No library's receiver took what it signed."""
    written = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
    assert key_of(written.encode()) == b"0123456789abcdef0123456789abcdef"
    assert key_of(b"whsec_!") == b"whsec_!"
    assert key_of(b"plain") == b"plain"
    from datetime import datetime

    at = int(datetime.now(UTC).timestamp())
    signed = signature((written.encode(),))("id1", at, b"{}")
    headers = {"webhook-id": "id1", "webhook-timestamp": str(at), "webhook-signature": signed}
    assert Webhook(written).verify(b"{}", headers) == {}
