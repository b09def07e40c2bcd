"""Where this process connects on somebody's word, and where never."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.ports.egress import NotAllowed, address_of, allowed, is_public, looked_up, origins_of, target_of
from onefold.terms.errors import LoadRefused

LISTED = origins_of(["https://api.example.com", "https://api.example.com:8443"], "egress")


@pytest.mark.parametrize(
    "url, path",
    [
        ("https://api.example.com", "/"),
        ("https://api.example.com/", "/"),
        ("https://api.example.com:443/a/b?c=d&e=%20", "/a/b?c=d&e=%20"),
        ("https://api.example.com:8443/x@y:z", "/x@y:z"),
    ],
)
def test_a_listed_origin_is_allowed_with_any_path(url: str, path: str) -> None:
    target = target_of(url)
    allowed(target, LISTED)
    assert target.path == path
    assert target.shown in ("https://api.example.com/…", "https://api.example.com:8443/…")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://api.example.com/",
        "HTTPS://api.example.com.evil.com/",
        "https://API.example.com/",
        "https://api.example.com./",
        "https://api.example.com.evil.com/",
        "https://evil.com/https://api.example.com",
        "https://api.example.com@evil.com/",
        "https://user:hunter2@api.example.com/",
        "https://api.example.com:80/",
        "https://api.example.com:0443/",
        "https://api.example.com:99999999/",
        "https://api.example.com:/",
        "https://api.example.com\\@evil.com/",
        "https://api.example.com\t.evil.com/",
        "https://api.example.com/\n",
        "https://api.example.com/ x",
        "https://api.example.com/#x",
        "https://api.example.com/#",
        "https://api%2eexample.com/",
        "https://\u0430pi.example.com/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://localhost/",
        "https:///api.example.com/",
        "//api.example.com/",
        "file:///etc/passwd",
        "https://api.example.com/" + "a" * 9_000,
    ],
)
def test_anything_else_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(NotAllowed) as told:
        allowed(target_of(url), LISTED)
    assert "hunter2" not in told.value.why
    assert "passwd" not in told.value.why


@pytest.mark.parametrize(
    "address",
    """127.0.0.1 127.8.8.8 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 0.0.0.0 255.255.255.255 100.64.0.1 192.0.2.1
    198.18.0.1 224.0.0.1 240.0.0.1 ::1 :: fe80::1 fe80::1%eth0 fc00::1 fd00:ec2::254 ff02::1 ::ffff:127.0.0.1 ::ffff:8.8.8.8
    ::127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::1 2002:7f00:1:: 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:db8::1 x 1.2.3
    127.1""".split(),
)
def test_an_address_that_is_not_public_is_never_connected_to(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_public(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if is_public(str(ip)):
        assert ip.is_global
        assert not (ip.is_private)
        assert not (ip.is_loopback)
        assert not (ip.is_link_local)
        assert not (ip.is_multicast)


async def test_one_bad_address_spoils_the_name() -> None:
    target = target_of("https://api.example.com/")

    async def both(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "10.0.0.1"]

    async def none(host: str, port: int) -> list[str]:
        return []

    with pytest.raises(NotAllowed, match="not public"):
        await address_of(target, both)
    with pytest.raises(NotAllowed, match="looked up"):
        await address_of(target, none)


async def test_a_name_of_this_machine_is_refused_after_its_look_up() -> None:
    target = target_of("https://localhost.localdomain/")

    async def here(host: str, port: int) -> list[str]:
        return list(await looked_up("localhost", port))

    with pytest.raises(NotAllowed, match="not public"):
        await address_of(target, here)


@pytest.mark.parametrize(
    "item",
    [
        "api.example.com",
        "http://api.example.com",
        "https://*.example.com",
        "https://api.example.com/v1",
        "https://10.0.0.1",
        "https://x",
        "",
        5,
    ],
)
def test_a_list_holds_exact_origins(item: str) -> None:
    with pytest.raises(LoadRefused, match="no exact origin"):
        origins_of([item], "egress")


async def test_a_name_that_is_slow_to_look_up_keeps_no_step_from_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    free, found = threading.Event(), [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 443))]

    def slow(*_: object, **__: object) -> object:
        free.wait(20)
        return found

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    looking = [asyncio.ensure_future(looked_up(f"n{n}.example.com", 443)) for n in range(64)]
    try:
        async with asyncio.timeout(10):
            assert await asyncio.to_thread(lambda: "run") == "run"
    finally:
        free.set()
    assert await asyncio.gather(*looking) == [["93.184.216.34"]] * 64
