"""The effect `http`, to a real server over TLS that stands for one of the open internet."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from standardwebhooks.webhooks import Webhook

from onefold.ports.egress import is_public, origins_of
from onefold.ports.http import HttpEffect
from onefold.ports.webhook import signature
from onefold.reflex.seams import Task
from onefold.terms.errors import BadArguments, PortFailed
from onefold.terms.limits import MAX_BODY_BYTES

SECRET = b"s" * 32
NOW = datetime.now(UTC)
HOST = "api.example.com"


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    built = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    built = built.serial_number(1).not_valid_before(NOW - timedelta(days=1)).not_valid_after(NOW + timedelta(days=1))
    built = built.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    chain, private = folder / f"{name}.pem", folder / f"{name}.key"
    chain.write_bytes(built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    private.write_bytes(key.private_bytes(*form))
    return chain, private


@dataclass
class Provider:
    """A server: what it was asked, and the bytes that it answers."""

    port: int = 0
    answer: bytes = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 12\r\n\r\n{"ok": true}'
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    trust: ssl.SSLContext = field(default_factory=ssl.create_default_context)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.asked.append((head[0], headers, body))
        writer.write(self.answer)
        writer.close()


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[Provider]:
    chain, private = certificate(tmp_path, HOST)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(chain, private)
    provider = Provider()
    provider.trust = ssl.create_default_context(cafile=str(chain))
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0, ssl=served)
    provider.port = server.sockets[0].getsockname()[1]
    yield provider
    server.close()


def now_ms() -> int:
    """Now, and not when this file was read: whoever checks a signature gives it five minutes."""
    return int(datetime.now(UTC).timestamp() * 1000)


def at_home(
    provider: Provider, host: str = HOST, *, public: Callable[[str], bool] = lambda _: True, **more: Any
) -> HttpEffect:
    async def here(name: str, port: int) -> Sequence[str]:
        assert name == host
        return ["127.0.0.1"]

    origins = origins_of([f"https://{host}:{provider.port}"], "egress")
    return HttpEffect(origins, signature([SECRET]), now_ms, resolve=here, public=public, trust=provider.trust, **more)


def attempt(key: str = "studio_42/reflex/billing/1") -> Task:
    return Task(key, NOW, 1, "studio_42", lambda fact: None)


def url(provider: Provider, path: str = "/v1/refunds?dry=1&token=T0K3N") -> str:
    return f"https://{HOST}:{provider.port}{path}"


async def test_a_request_is_signed_and_keyed_by_the_task(provider: Provider) -> None:
    given = {"url": url(provider), "headers": {"X-Kind": "refund"}, "body": {"b": 1, "a": "é"}}
    assert await at_home(provider).run(attempt(), given) == {"status": 200, "body": {"ok": True}}
    ((line, headers, body),) = provider.asked
    assert line == "POST /v1/refunds?dry=1&token=T0K3N HTTP/1.1"
    assert body == '{"a":"é","b":1}'.encode()
    assert headers["host"] == f"{HOST}:{provider.port}"
    assert headers["idempotency-key"] == "studio_42/reflex/billing/1"
    assert headers["x-kind"] == "refund"
    assert headers["content-type"] == "application/json"
    assert "authorization" not in headers
    assert Webhook(base64.b64encode(SECRET).decode()).verify(body, headers) == {"a": "é", "b": 1}


async def test_a_retry_has_the_same_key_and_a_key_that_no_header_holds_is_told_by_its_hash(provider: Provider) -> None:
    effect = at_home(provider)
    for key in ("k", "k", "é\n"):
        await effect.run(attempt(key), {"url": url(provider)})
    keys = [headers["idempotency-key"] for _, headers, _ in provider.asked]
    assert keys[:2] == ["k", "k"]
    assert len(keys[2]) == 40
    assert provider.asked[0][1]["webhook-id"] == provider.asked[1][1]["webhook-id"]


async def test_the_app_gives_the_token_of_an_origin(provider: Provider) -> None:
    effect = at_home(provider, bearer=lambda origin: "T0PS3CRET" if origin.startswith(f"https://{HOST}") else None)
    await effect.run(attempt(), {"url": url(provider), "method": "GET"})
    assert provider.asked[0][1]["authorization"] == "Bearer T0PS3CRET"
    provider.answer = b"HTTP/1.1 500 T0PS3CRET\r\n\r\nT0PS3CRET"
    with pytest.raises(PortFailed) as told:
        await effect.run(attempt(), {"url": url(provider)})
    assert "S3CRET" not in str(told.value)
    assert "T0K3N" not in str(told.value)
    assert told.value.why == f"https://{HOST}:{provider.port}/…: it answered 500"


async def test_no_redirect_is_followed(provider: Provider) -> None:
    place = f"location: https://{HOST}:{provider.port}/other\r\n".encode()
    provider.answer = b"HTTP/1.1 302 Found\r\n" + place + b"content-length: 0\r\n\r\n"
    with pytest.raises(PortFailed, match="it answered 302"):
        await at_home(provider).run(attempt(), {"url": url(provider)})
    assert len(provider.asked) == 1


async def test_a_status_that_is_accepted_is_an_outcome(provider: Provider) -> None:
    provider.answer = b"HTTP/1.1 409 Conflict\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\ngone"
    effect = at_home(provider)
    with pytest.raises(PortFailed, match="it answered 409"):
        await effect.run(attempt(), {"url": url(provider)})
    assert await effect.run(attempt(), {"url": url(provider), "accept": [404, 409]}) == {"status": 409, "body": "gone"}


@pytest.mark.parametrize(
    "kind, body, read",
    [
        (b"application/json", b"{", "{"),
        (b"application/problem+json; charset=utf-8", b"[1]", [1]),
        (b"text/html", b"<p>", "<p>"),
        (b"image/png", b"\xff\xfe", None),
        (b"application/json\r\ncontent-encoding: gzip", b"{}", None),
        (b"application/json", b'{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        (b"text/plain", b"", None),
    ],
)
async def test_what_comes_back_is_json_or_text(provider: Provider, kind: bytes, body: bytes, read: Any) -> None:
    provider.answer = b"HTTP/1.1 200 OK\r\ncontent-type: " + kind + b"\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    assert (await at_home(provider).run(attempt(), {"url": url(provider)}))["body"] == read


async def test_an_endless_answer_is_left(provider: Provider) -> None:
    provider.answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + b"x" * (MAX_BODY_BYTES + 100_000)
    with pytest.raises(PortFailed, match="answered more than"):
        await at_home(provider).run(attempt(), {"url": url(provider)})


async def test_an_address_that_is_not_public_is_not_connected_to(provider: Provider) -> None:
    with pytest.raises(PortFailed, match="not public"):
        await at_home(provider, public=is_public).run(attempt(), {"url": url(provider)})
    assert provider.asked == []


async def test_a_certificate_of_another_name_is_refused(provider: Provider) -> None:
    effect = at_home(provider, "other.example.com")
    with pytest.raises(PortFailed, match="ConnectError"):
        await effect.run(attempt(), {"url": f"https://other.example.com:{provider.port}/"})
    assert provider.asked == []


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nx"])
async def test_an_answer_that_is_none_is_a_failure(provider: Provider, answer: bytes) -> None:
    provider.answer = answer
    with pytest.raises(PortFailed, match="Error"):
        await at_home(provider).run(attempt(), {"url": url(provider)})


@pytest.mark.parametrize(
    "change, field, problem",
    [
        ({"url": "https://evil.example.com/"}, "url", "not on the list"),
        ({"url": f"https://{HOST}/"}, "url", "did you mean"),
        ({"url": None}, "url", "plain ASCII"),
        ({"method": "TRACE"}, "method", "must be one of"),
        ({"method": "GET", "body": 1}, "body", "cannot be sent with GET"),
        ({"body": 1, "text": "x"}, "text", "leave one"),
        ({"text": 5}, "text", "must be text"),
        ({"text": "x" * (MAX_BODY_BYTES + 1)}, "body", "at most"),
        ({"heads": {}}, "heads", "did you mean 'headers'?"),
        ({"headers": []}, "headers", "an object"),
        ({"headers": {"Authorization": "Bearer x"}}, "headers.Authorization", "egress="),
        ({"headers": {"Cookie": "x"}}, "headers.Cookie", "no definition may"),
        ({"headers": {"Host": "x"}}, "headers.Host", "set by the sender"),
        ({"headers": {"Webhook-Id": "x"}}, "headers.Webhook-Id", "set by the sender"),
        ({"headers": {"Idempotency-Key": "x"}}, "headers.Idempotency-Key", "set by the sender"),
        ({"headers": {"X": "a\r\nEvil: b"}}, "headers.X", "on one line"),
        ({"headers": {"X\r\n": "a"}}, "headers.X\r\n", "header's name"),
        ({"headers": {"X": 1}}, "headers.X", "plain text"),
        ({"headers": {"X": "1", "x": "2"}}, "headers.x", "stands twice"),
        ({"accept": [True]}, "accept", "list of statuses"),
        ({"accept": 404}, "accept", "list of statuses"),
    ],
)
async def test_what_may_not_be_sent_is_told_before_anything_leaves(
    provider: Provider, change: Any, field: str, problem: str
) -> None:
    effect = at_home(provider)
    sent = {"url": url(provider), **change}
    with pytest.raises(BadArguments) as told:
        await effect.run(attempt(), sent)
    assert [fault.field for fault in told.value.faults] == [field]
    assert problem in told.value.faults[0].problem
    with pytest.raises(BadArguments):
        effect.show(sent)
    assert provider.asked == []


def test_what_it_would_do_is_said_without_what_may_be_secret() -> None:
    provider = Provider(port=8443)
    assert at_home(provider).show({"url": url(provider), "method": "PUT"}) == f"PUT https://{HOST}:8443/v1/refunds"
    with pytest.raises(BadArguments, match="must be an object"):
        at_home(provider).show([])
