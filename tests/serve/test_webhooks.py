"""Four ways to sign: what is signed is taken, and nothing else is, whatever comes."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from onefold.serve.webhooks import SCHEMES, TOLERANCE_S, Signed, sign_standard, standard_key, verify
from onefold.terms.errors import BadSignature

NOW_S = 1_780_000_000
SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
BODY = b'{"order_id":"7","amount":40}'
Headers = list[tuple[bytes, bytes]]


def mac(secret: bytes, signed: bytes) -> bytes:
    return hmac.new(secret, signed, hashlib.sha256).digest()


def signed(scheme: str, body: bytes = BODY, at: bytes = b"%d" % NOW_S, secret: str = SECRET) -> Headers:
    """The headers that scheme's sender would send."""
    raw = secret.encode()
    match scheme:
        case "standard":
            value = base64.b64encode(mac(standard_key(secret), b"msg_1." + at + b"." + body))
            return [(b"webhook-id", b"msg_1"), (b"webhook-timestamp", at), (b"webhook-signature", b"v1," + value)]
        case "stripe":
            value = mac(raw, at + b"." + body).hex().encode()
            return [(b"stripe-signature", b"t=" + at + b",v1=" + value)]
        case "github":
            value = mac(raw, body).hex().encode()
            return [(b"x-hub-signature-256", b"sha256=" + value), (b"x-github-delivery", b"72d3162e")]
        case _:
            value = mac(raw, b"v0:" + at + b":" + body).hex().encode()
            return [(b"x-slack-request-timestamp", at), (b"x-slack-signature", b"v0=" + value)]


def check(scheme: str, headers: Headers, body: bytes = BODY, secrets: Sequence[str] = (SECRET,)) -> Signed:
    return verify(scheme, headers, body, secrets, now_ms=NOW_S * 1000, door="/hooks/x")


ALL = pytest.mark.parametrize("scheme", SCHEMES)
TIMED = pytest.mark.parametrize("scheme", ["standard", "stripe", "slack"])


@ALL
def test_what_is_signed_is_taken(scheme: str) -> None:
    ids = {"standard": "msg_1", "github": "72d3162e", "stripe": None, "slack": None}
    assert check(scheme, signed(scheme)) == Signed(scheme, ids[scheme])


@ALL
@pytest.mark.parametrize("body", [BODY + b" ", b'{"amount":40,"order_id":"7"}', b"", BODY.replace(b"40", b"41")])
def test_another_body_is_refused_the_same_json_included(scheme: str, body: bytes) -> None:
    with pytest.raises(BadSignature):
        check(scheme, signed(scheme), body)


@ALL
def test_another_secret_is_refused_and_one_of_several_is_taken(scheme: str) -> None:
    other = "whsec_" + base64.b64encode(b"another secret of thirty-two b..").decode()
    with pytest.raises(BadSignature):
        check(scheme, signed(scheme), secrets=[other])
    assert check(scheme, signed(scheme), secrets=[other, SECRET]).scheme == scheme


@ALL
@pytest.mark.parametrize("secrets", [[], [""], ["", ""]])
def test_an_empty_secret_signs_nothing(scheme: str, secrets: list[str]) -> None:
    with pytest.raises(BadSignature):
        check(scheme, signed(scheme, secret=""), secrets=secrets)


def test_a_broken_secret_signs_nothing() -> None:
    with pytest.raises(BadSignature):
        check("standard", signed("standard", secret="whsec_!"), secrets=["whsec_!"])


@TIMED
@pytest.mark.parametrize("off", [-TOLERANCE_S, 0, TOLERANCE_S])
def test_five_minutes_either_way_are_fresh(scheme: str, off: int) -> None:
    assert check(scheme, signed(scheme, at=b"%d" % (NOW_S + off))).scheme == scheme


@TIMED
@pytest.mark.parametrize(
    "at",
    [
        b"%d" % (NOW_S - TOLERANCE_S - 1),
        b"%d" % (NOW_S + TOLERANCE_S + 1),
        b"nan",
        b"inf",
        b"-1",
        b"1_780_000_000",
        b"1780000000.0",
        b"1e9",
        b"",
        b" ",
        "１７８００００００００".encode(),  # noqa: RUF001 - int() would take these
        b"0x6a17f0c0",
        b"9" * 400,
    ],
)
def test_a_time_that_is_none_is_never_fresh_however_well_it_is_signed(scheme: str, at: bytes) -> None:
    with pytest.raises(BadSignature):
        check(scheme, signed(scheme, at=at))


@ALL
def test_a_header_that_is_missing_or_stands_twice_is_refused(scheme: str) -> None:
    headers = signed(scheme)
    for at in range(len(headers)):
        for changed in (headers[:at] + headers[at + 1 :], [*headers, headers[at]]):
            with pytest.raises(BadSignature):
                check(scheme, changed)


def test_of_several_signatures_one_right_is_enough() -> None:
    headers = dict(signed("standard"))
    headers[b"webhook-signature"] = b"v1,AAAA v1a,ZZZZ junk v2,xx " + headers[b"webhook-signature"]
    assert check("standard", list(headers.items())).id == "msg_1"
    stripe = signed("stripe")[0][1]
    assert check("stripe", [(b"stripe-signature", stripe + b",v1=00,v0=11,v1=zz")]).id is None


def test_a_thousand_signatures_are_not_all_looked_at() -> None:
    headers = dict(signed("standard"))
    headers[b"webhook-signature"] = b"v1,AAAA " * 1000 + headers[b"webhook-signature"]
    with pytest.raises(BadSignature):
        check("standard", list(headers.items()))


HOSTILE = [b"\xff\xfe", "v1,ä".encode(), b"v1", b"v1,", b",", b"=", b"sha256=", b"t=,v1=", b"v0=" + b"0" * 63, b"\0"]


@ALL
@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_is_refused_and_never_a_fault(scheme: str, value: bytes) -> None:
    for name, _ in signed(scheme):
        if name == b"x-github-delivery" and all(0x20 < byte < 0x7F for byte in value):
            continue  # GitHub signs the body alone, so any printable id is one
        headers = [(known, value if known == name else other) for known, other in signed(scheme)]
        with pytest.raises(BadSignature):
            check(scheme, headers)


@ALL
@given(data=st.data())
def test_no_headers_at_all_raise_anything_else(scheme: str, data: st.DataObject) -> None:
    names = [name for name, _ in signed(scheme)]
    pairs = st.tuples(st.sampled_from(names), st.binary(max_size=200))
    headers = data.draw(st.lists(pairs, max_size=6))
    body = data.draw(st.binary(max_size=50))
    with pytest.raises(BadSignature):
        check(scheme, headers, body)


@given(body=st.binary(max_size=300), id=st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True))
def test_the_library_of_the_standard_signs_what_we_take(body: bytes, id: str) -> None:
    at = datetime.fromtimestamp(NOW_S, UTC)
    value = Webhook(SECRET).sign(id, at, body.decode("latin-1"))
    sent = body.decode("latin-1").encode()
    headers = [
        (b"webhook-id", id.encode()),
        (b"webhook-timestamp", b"%d" % NOW_S),
        (b"webhook-signature", value.encode()),
    ]
    assert check("standard", headers, sent).id == id


def test_the_library_of_the_standard_takes_what_we_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = sign_standard("msg_9", int(datetime.now(UTC).timestamp()), BODY, SECRET)
    assert Webhook(SECRET).verify(BODY, headers) == {"order_id": "7", "amount": 40}


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(BadSignature):
        check("md5", [])


def test_a_refusal_never_says_what_would_have_been_right() -> None:
    with pytest.raises(BadSignature) as refused:
        check("stripe", [(b"stripe-signature", b"t=%d,v1=00" % NOW_S)])
    right = mac(SECRET.encode(), b"%d." % NOW_S + BODY).hex()
    assert right not in str(refused.value)
    assert SECRET not in str(refused.value)
