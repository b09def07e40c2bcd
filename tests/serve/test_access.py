"""Who is let in: by name, by origin, by key, by right."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from httpx2 import AsyncClient

from onefold.serve import Front, asgi_app
from onefold.serve.access import LOCAL, SESSION, SESSION_MS, Access, Names, local_address, named
from onefold.terms.errors import LoadRefused
from tests.serve.conftest import AGENT_KEY, OPERATOR_KEY, READER_KEY, Keyed, client_of, keyed
from tests.serve.fake_host import FakeHost
from tests.serve.fake_values import Config
from tests.serve.raw import Asgi

EVERYWHERE = "0.0.0.0"  # noqa: S104 - compared, not bound
EVENT = b'{"id":"e","counter":"c"}'

# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host_name",
    [
        "127.0.0.1:8600",
        "localhost:8600",
        "LOCALHOST:9999",
        "[::1]:8600",
        "127.0.0.1",
        "tools.example.com",
        "tools.example.com:443",
        "localhost.",
    ],
)
async def test_our_own_names_are_known(front: Front, host_name: str) -> None:
    call = await Asgi(front, "GET", "/healthz", host=(b"host", host_name.encode())).ended()
    assert call.status == 200


@pytest.mark.parametrize(
    "host_name",
    [
        "evil.test",
        "evil.test:8600",
        "127.0.0.1.evil.test",
        "localhost.evil.test:8600",
        "tools.example.com:8600",
        "tools.example.com.evil.test",
        "169.254.169.254",
        "0.0.0.0:8600",
        "",
        "127.0.0.1:8600@evil.test",
        "127.0.0.1:8600:1",
        "xn--localhost-x",
    ],
)
@pytest.mark.parametrize("path", ["/healthz", "/runs", "/mcp", "/modules/counter/events", "/approve/x", "/nowhere"])
async def test_a_foreign_host_is_421_whatever_it_asks(host: FakeHost, front: Front, host_name: str, path: str) -> None:
    for method in ("GET", "POST"):
        call = await Asgi(front, method, path, body=EVENT, host=(b"host", host_name.encode())).ended()
        assert (call.status, b"host_refused" in call.body) == (421, True)
    assert host.counters == {}


async def test_a_request_without_a_host_is_421(front: Front) -> None:
    assert (await Asgi(front, "GET", "/healthz", host=None).ended()).status == 421


async def test_two_hosts_are_400(front: Front) -> None:
    call = Asgi(front, "GET", "/healthz", headers=[(b"host", b"evil.test")])
    assert (await call.ended()).status == 400


def test_a_wildcard_listener_knows_addresses_and_no_foreign_name() -> None:
    names = Names((EVERYWHERE, 8600), "https://tools.example.com")
    assert [names.knows(host) for host in (b"10.0.0.5:8600", b"[fd00::1]:8600", b"localhost:8600", b"evil.test")] == [
        True,
        True,
        True,
        False,
    ]


def test_a_listener_at_one_address_knows_that_one() -> None:
    names = Names(("10.0.0.5", 8600), "http://tools.internal:8600")
    known = [b"10.0.0.5:8600", b"tools.internal:8600"]
    assert [names.knows(host) for host in (*known, b"10.0.0.6:8600", b"localhost:8600", b"tools.internal")] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_configured_names_are_known_with_and_without_port() -> None:
    names = Names(("127.0.0.1", 8600), "https://a.test", ("b.test", "c.test:81"))
    assert [names.knows(h) for h in (b"b.test", b"b.test:443", b"c.test:81", b"c.test", b"b.test:82")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_a_flood_of_hosts_fills_nothing() -> None:
    names = Names((EVERYWHERE, 8600), "https://a.test")
    for number in range(1000):
        names.knows(b"10.0.%d.%d" % divmod(number, 250))
    assert len(names.known) <= 64


@pytest.mark.parametrize(
    "origin,status",
    [
        ("http://127.0.0.1:8600", 200),
        ("http://localhost:3000", 200),
        ("https://tools.example.com", 200),
        ("http://evil.test", 403),
        ("https://tools.example.com.evil.test", 403),
        ("null", 403),
        ("", 403),
        ("file://", 403),
        ("127.0.0.1:8600", 403),
        ("javascript://127.0.0.1:8600", 403),
    ],
)
async def test_a_page_of_another_origin_is_403(front: Front, host: FakeHost, origin: str, status: int) -> None:
    for path in ("/modules/counter/events", "/runs/run_x/events/Paid"):
        call = await Asgi(front, "POST", path, body=EVENT, headers=[(b"origin", origin.encode())]).ended()
        assert call.status == (404 if status == 200 and path.startswith("/runs") else status)
    assert bool(host.counters) == (status == 200)


# --- without keys ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address,local",
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.5", False),
        ("::ffff:10.0.0.5", False),
        ("192.168.0.1", False),
        ("8.8.8.8", False),
    ],
)
async def test_without_keys_only_this_machine_is_let_in(front: Front, address: str, local: bool) -> None:
    assert local_address((address, 1)) is local
    for path in ("/runs", "/console", "/metrics", "/openapi.json"):
        assert (await Asgi(front, "GET", path, client=(address, 1)).ended()).status == (200 if local else 401)
    event = await Asgi(front, "POST", "/modules/counter/events", body=EVENT, client=(address, 1)).ended()
    assert event.status == (200 if local else 401)


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "x-real-ip", "via", "x-forwarded-host"])
async def test_a_proxy_on_this_machine_lends_nobody_its_place(front: Front, host: FakeHost, header: str) -> None:
    for path in ("/modules/counter/events", "/tools/refund_order"):
        call = Asgi(front, "POST", path, body=EVENT, headers=[(header.encode(), b"8.8.8.8")])
        assert (await call.ended()).status == 401
    assert (host.counters, host.acted) == ({}, [])


async def test_without_keys_a_request_may_say_for_whom_it_acts(front: Front, host: FakeHost) -> None:
    said = [(b"onefold-as", "studio 42 \u00fc".encode("latin-1"))]
    assert (await Asgi(front, "POST", "/modules/counter/events", body=EVENT, headers=said).ended()).status == 200
    said = [(b"onefold-as", b"studio%2042%20%C3%BC")]
    assert (await Asgi(front, "POST", "/modules/counter/events", body=EVENT, headers=said).ended()).status == 200
    assert set(host.counters) == {("studio 42 \u00fc", "c")}


@pytest.mark.parametrize("said", [b"", b"%00", b"x" * 4000])
@pytest.mark.parametrize("name", [b"onefold-as", b"onefold-by"])
async def test_what_is_no_name_is_a_bad_argument(front: Front, host: FakeHost, name: bytes, said: bytes) -> None:
    answer = await Asgi(front, "POST", "/modules/counter/events", body=EVENT, headers=[(name, said)]).ended()
    assert answer.status in (400, 422)
    assert host.counters == {}


def test_who_decides_is_said_apart_from_for_whom() -> None:
    acts, by, both = {b"onefold-as": b"studio"}, {b"onefold-by": b"anna"}, {b"onefold-as": b"s", b"onefold-by": b"b"}
    assert [(one.principal, one.name, one.rights) for one in (named(LOCAL, told) for told in (acts, by, both))] == [
        ("studio", "studio", LOCAL.rights),
        (None, "anna", LOCAL.rights),
        ("s", "b", LOCAL.rights),
    ]


async def test_with_keys_the_key_alone_says_who_speaks(holding: Keyed, locked: FakeHost) -> None:
    said = {"onefold-as": "somebody", "onefold-by": "somebody"}
    async with holding(AGENT_KEY) as client:
        assert (await client.post("/modules/counter/events", content=EVENT, headers=said)).status_code == 200
    assert locked.counters
    assert "somebody" not in {who for who, _ in locked.counters}


async def test_the_public_name_without_keys_opens_nothing_but_links(front: Front) -> None:
    name = (b"host", b"tools.example.com")
    assert (await Asgi(front, "GET", "/runs", host=name).ended()).status == 401
    assert (await Asgi(front, "GET", "/approve", host=name).ended()).status == 401
    assert (await Asgi(front, "GET", "/approve/forged", host=name).ended()).status == 404
    assert (await Asgi(front, "GET", "/healthz", host=name).ended()).status == 200


async def test_a_first_good_answer_does_not_let_the_next_peer_in(front: Front) -> None:
    assert (await Asgi(front, "GET", "/runs").ended()).status == 200
    assert (await Asgi(front, "GET", "/runs", client=("10.0.0.5", 1)).ended()).status == 401
    assert (await Asgi(front, "GET", "/runs", headers=[(b"x-forwarded-for", b"::1")]).ended()).status == 401


@pytest.mark.parametrize("origin", [b"http://[::1", b"http://[]", b"http://]", b"//", b"\xff", b"http://[v1.x]"])
async def test_an_origin_that_is_no_address_is_refused_like_a_foreign_one(front: Front, origin: bytes) -> None:
    assert (await Asgi(front, "GET", "/runs", headers=[(b"origin", origin)]).ended()).status == 403


# --- keys and rights ---------------------------------------------------------------------------------

CALL, READ, OPERATE = "call", "read", "operate"
RIGHTS: dict[tuple[str, str], set[str]] = {
    ("POST", "/tools/refund_order"): {CALL},
    ("POST", "/modules/counter/events"): {CALL},
    ("POST", "/runs/run_x/events/Paid"): {CALL},
    ("POST", "/runs/run_x/cancel"): {CALL, OPERATE},
    ("POST", "/runs/run_x/retry"): {OPERATE},
    ("POST", "/runs/run_x/fork"): {CALL},
    ("POST", "/runs/run_x/approvals/manager"): {OPERATE},
    ("GET", "/runs"): {READ, OPERATE},
    ("GET", "/fleet"): {READ, OPERATE},
    ("GET", "/runs/run_x"): {CALL, READ, OPERATE},
    ("GET", "/runs/run_x/journal"): {READ, OPERATE},
    ("GET", "/modules/counter"): {READ, OPERATE},
    ("GET", "/modules/counter/c"): {READ, OPERATE},
    ("GET", "/modules/counter/c/facts"): {READ, OPERATE},
    ("GET", "/cells/Room"): {READ, OPERATE},
    ("PUT", "/cells/Room/lobby"): {CALL},
    ("GET", "/cells/Room/lobby"): {CALL, READ, OPERATE},
    ("PATCH", "/cells/Room/lobby"): {CALL},
    ("DELETE", "/cells/Room/lobby"): {CALL},
    ("GET", "/cells/Room/lobby/fields/visits"): {CALL, READ, OPERATE},
    ("POST", "/cells/Room/lobby/turns"): {CALL},
    ("POST", "/cells/Room/lobby/evict"): {CALL},
    ("GET", "/tools/refund_order/tables"): {OPERATE},
    ("GET", "/tools/refund_order/tables/refunds"): {OPERATE},
    ("GET", "/tools/refund_order/export"): {OPERATE},
    ("GET", "/parked"): {OPERATE},
    ("GET", "/parked/p"): {OPERATE},
    ("POST", "/parked/p/retry"): {OPERATE},
    ("POST", "/parked/p/drop"): {OPERATE},
    ("GET", "/approve"): {OPERATE},
    ("GET", "/console"): {READ, OPERATE},
    ("GET", "/console/parked"): {OPERATE},
    ("GET", "/console/events"): {OPERATE},
    ("GET", "/metrics"): {READ, OPERATE},
    ("POST", "/sweep"): {OPERATE},
    ("POST", "/modules/counter/c/prune"): {OPERATE},
    ("GET", "/openapi.json"): {CALL, READ, OPERATE},
    ("POST", "/facts"): {CALL, OPERATE},
    ("GET", "/facts"): {READ, OPERATE},
    ("POST", "/facts/fact_1/release"): {OPERATE},
    ("GET", "/reflexes"): {READ, OPERATE},
    ("PUT", "/reflexes"): set(),  # `deploy`, which none of these keys has
    **{(method, "/deployed/refund"): set() for method in ("GET", "PUT", "DELETE")},
    ("GET", "/deployed"): set(),
    ("POST", "/deployed/refund/rollback"): set(),
    ("POST", "/reflexes/draft"): {CALL, READ, OPERATE},
    ("GET", "/reflexes/graph"): {READ, OPERATE},
    ("GET", "/reflexes/overdue"): {READ, OPERATE},
    ("GET", "/reflexes/explain/task_1"): {READ, OPERATE},
    ("GET", "/reflexes/runs"): {READ, OPERATE},
    ("GET", "/reflexes/runs/reflex_run_1/tasks"): {READ, OPERATE},
    ("POST", "/reflexes/tasks/task_1/retry"): {OPERATE},
    ("GET", "/reflexes/shop.greet"): {READ, OPERATE},
    ("GET", "/reflexes/shop.greet/runs"): {READ, OPERATE},
    ("POST", "/reflexes/shop.greet/preview"): {READ, OPERATE},
    ("POST", "/reflexes/shop.greet/fire"): {OPERATE},
    ("POST", "/reflexes/shop.greet/backfill"): {OPERATE},
}


def test_no_route_that_needs_a_right_is_left_out(front: Front) -> None:
    """But for pages, which their own tests read, and those that MCP answers by itself."""
    asked = {(method, front.table.find(method, path.split("/")[1:])[0].path) for method, path in RIGHTS}
    needy = {
        (route.method, route.path)
        for route in front.table.routes
        if route.needs is not None and not route.page and not route.path.endswith("/mcp")
    }
    assert needy - asked == set()


@pytest.mark.parametrize("route", RIGHTS, ids=" ".join)
async def test_a_route_asks_for_its_right(locked: FakeHost, holding: Keyed, route: tuple[str, str]) -> None:
    for right, key in ((CALL, AGENT_KEY), (READ, READER_KEY), (OPERATE, OPERATOR_KEY)):
        if route[1] == "/console/events" and right == OPERATE:
            continue  # it never ends; the console's own test reads it
        async with holding(key) as client:
            told = await client.request(*route, json={"counter": "c", "id": "e"})
        assert (told.status_code == 403) is (right not in RIGHTS[route]), right
        if told.status_code == 403:
            assert "needs the right" in told.text


async def test_only_who_is_let_in_learns_what_the_app_is_called(locked: FakeHost, holding: Keyed) -> None:
    for path in ("/openapi.json", "/runs/run_x"):
        async with holding(AGENT_KEY) as client:
            told = await client.head(path)
        async with holding(None) as client:
            refused = await client.head(path)
        assert (told.headers.get("onefold-app"), refused.status_code) == (quote(locked.catalog.title), 401)
        assert "onefold-app" not in refused.headers


@pytest.mark.parametrize("route", RIGHTS, ids=" ".join)
@pytest.mark.parametrize("key", [None, "wrong-key-0123456789", AGENT_KEY[:-1], f"{AGENT_KEY} x", ""])
async def test_without_one_of_our_keys_nothing_is_answered(
    locked: FakeHost, holding: Keyed, route: tuple[str, str], key: str | None
) -> None:
    async with holding(key) as client:
        told = await client.request(*route, json={})
    if route[1] in ("/approve", "/console", "/console/parked"):  # pages send a person to show a key
        assert (told.status_code, told.headers["location"].startswith("/console/login?next=")) == (303, True)
    else:
        assert told.status_code == 401
        assert told.headers["www-authenticate"] == 'Bearer realm="onefold"'
    assert locked.acted == []


async def test_a_key_in_the_address_is_no_key(holding: Keyed) -> None:
    async with holding(None) as client:
        assert (await client.get("/openapi.json", params={"access_token": AGENT_KEY})).status_code == 401


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
async def test_the_schemes_name_is_read_in_any_case(locked: FakeHost, scheme: str) -> None:
    app = asgi_app(locked)
    async with client_of(app, headers={"authorization": f"{scheme} {AGENT_KEY}"}) as client:
        assert (await client.post("/modules/counter/events", content=EVENT)).status_code == 200
    await app.aclose()


async def test_work_belongs_to_the_keys_principal(locked: FakeHost, holding: Keyed) -> None:
    async with holding(AGENT_KEY) as client:
        id = (await client.post("/tools/refund_order", json={"order_id": "7", "amount": 1})).json()["run_id"]
    assert locked.runs[id].principal == "studio"
    async with holding(OPERATOR_KEY) as client:
        assert (await client.get(f"/runs/{id}")).status_code == 200
    locked.runs[id].principal = "somebody else"
    async with holding(READER_KEY) as client:
        assert (await client.get(f"/runs/{id}")).status_code == 404


def test_a_key_whose_variable_is_unset_is_refused_at_start() -> None:
    config = keyed()
    del config.environ["AGENT_KEY"]
    with pytest.raises(LoadRefused):
        asgi_app(FakeHost(config))


# --- the console's session ---------------------------------------------------------------------------


def test_a_session_ends_by_itself_and_with_its_key() -> None:
    host = FakeHost(keyed())
    access = Access(host)
    given = access.open_session(OPERATOR_KEY)
    assert given is not None
    assert OPERATOR_KEY not in given
    cookie = b"a=b; %b=%b" % (SESSION, given.encode())
    caller = access.session(cookie)
    assert caller is not None
    assert caller.rights == {"operate"}
    host.clock.at += SESSION_MS
    assert access.session(cookie) is None
    host.clock.at -= SESSION_MS
    host.config.environ["OPERATOR_KEY"] = "another-key-0123456789"
    assert Access(host).session(cookie) is None


@pytest.mark.parametrize("value", ["", "0.1.x", "9.99999999999999.", "2.9999999999999." + "0" * 64, "-1.1." + "a" * 64])
def test_a_made_up_session_is_nobodys(value: str) -> None:
    assert Access(FakeHost(keyed())).session(b"%b=%b" % (SESSION, value.encode())) is None


def test_a_session_is_not_moved_to_another_key_or_time() -> None:
    access = Access(FakeHost(keyed()))
    at, ends, mac = (access.open_session(READER_KEY) or "").split(".")
    assert access.session(b"%b=%b" % (SESSION, f"{at}.{ends}.{mac}".encode())) is not None
    for forged in (f"2.{ends}.{mac}", f"{at}.{int(ends) + 1}.{mac}"):
        assert access.session(b"%b=%b" % (SESSION, forged.encode())) is None


async def test_without_keys_a_session_opens_nothing(client: AsyncClient) -> None:
    assert Access(FakeHost(Config())).open_session("x") is None
    assert (await client.get("/console/login")).status_code == 200
