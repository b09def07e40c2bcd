"""The manager's side: looking decides nothing, the first tap decides, every other way is a page that says why not."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from tests.example.caller import Order, agree, ask, look, nonce
from tests.example.ledger import Ledger
from tests.example.shop import Shop, links

BIG = Order("2", "150")
PREVIEWS = 20


async def asked(shop: Shop, ledger: Ledger) -> tuple[str, str]:
    """A refund that waits, and the links of its letter."""
    assert (await ask(shop, ledger, BIG))["status"] == "waiting"
    return links(await shop.post.asks(BIG.id))


async def test_looking_decides_nothing_however_often(open_shop: Shop, ledger: Ledger) -> None:
    approve, reject = await asked(open_shop, ledger)
    http = open_shop.app.http
    seen = [await http.request(verb, link) for link in (approve, reject) for verb in ["GET", "HEAD"] * PREVIEWS]
    assert {answer.status_code for answer in seen} == {200}
    assert all(answer.headers["cache-control"] == "no-store" for answer in seen)
    assert all(answer.headers["referrer-policy"] == "no-referrer" for answer in seen)
    assert {answer.content for answer in seen[1 : 2 * PREVIEWS : 2]} == {b""}
    for shown in ("Pay back 150 for order 2?", "bill-2", "Opening this page has decided nothing"):
        assert shown in seen[0].text
    assert (await look(open_shop, ledger, BIG, wait=0))["status"] == "waiting"
    assert (await open_shop.provider.book())["calls"] == 0


async def test_only_the_pages_own_form_decides(open_shop: Shop, ledger: Ledger) -> None:
    approve, reject = await asked(open_shop, ledger)
    http = open_shop.app.http
    own = {"nonce": nonce((await http.get(approve)).text), "choice": "approve"}
    foreign = {"origin": "http://evil.test"}
    cut = approve[:-1] + ("A" if approve[-1] != "A" else "B")
    answers = [
        await http.post(approve, data={"choice": "approve"}),
        await http.post(approve, data=own | {"nonce": "0" * 64}),
        await http.post(approve, data=own | {"choice": "reject"}),
        await http.post(reject, data=own),
        await http.post(approve, data=own, headers=foreign),
        await http.post(approve, data=own, headers={"host": "evil.test"}),
        await http.post(cut, data=own),
        await http.get(cut),
    ]
    assert [answer.status_code for answer in answers] == [403, 403, 400, 403, 403, 421, 404, 404]
    assert (await look(open_shop, ledger, BIG, wait=0))["status"] == "waiting"
    await agree(open_shop, ledger, BIG)
    assert (await look(open_shop, ledger, BIG))["status"] == "done"


async def test_of_many_taps_at_once_one_decides(open_shop: Shop, ledger: Ledger) -> None:
    approve, reject = await asked(open_shop, ledger)
    http = open_shop.app.http
    yes = {"nonce": nonce((await http.get(approve)).text), "choice": "approve"}
    no = {"nonce": nonce((await http.get(reject)).text), "choice": "reject"}
    taps = [http.post(approve, data=yes) for _ in range(8)] + [http.post(reject, data=no) for _ in range(8)]
    answers = await asyncio.gather(*taps)
    codes = [answer.status_code for answer in answers]
    assert sorted(codes) == [200] + [410] * 15
    word = "approved" if codes.index(200) < 8 else "rejected"
    assert all(word in answer.text and "Pay back 150 for order 2?" in answer.text for answer in answers)
    ended = await look(open_shop, ledger, BIG) if word == "approved" else await rejected(open_shop, ledger)
    assert ended["status"] == "done"
    assert len((await open_shop.provider.book())["refunds"]) == (word == "approved")


async def rejected(shop: Shop, ledger: Ledger) -> dict[str, str]:
    run = ledger.receipts[BIG.key]["run_id"]
    answer: dict[str, str] = (await shop.app.http.get(f"/runs/{run}", params={"wait": "20"})).json()
    return answer


async def test_a_no_with_its_reason_reaches_the_caller_and_pays_nothing(open_shop: Shop, ledger: Ledger) -> None:
    approve, reject = await asked(open_shop, ledger)
    http = open_shop.app.http
    form = {"nonce": nonce((await http.get(reject)).text), "choice": "reject", "reason": "not <b>ours</b>"}
    assert (await http.post(reject, data=form)).status_code == 200
    run = ledger.receipts[BIG.key]["run_id"]
    receipt = (await http.get(f"/runs/{run}", params={"wait": "20"})).json()
    assert receipt["result"] == {"type": "Declined", "reason": "not <b>ours</b>"}
    for link in (approve, reject):
        dead = await http.get(link)
        assert (dead.status_code, "rejected" in dead.text) == (410, True)
        assert "<b>ours" not in dead.text
    assert (await open_shop.provider.book())["calls"] == 0


@pytest.mark.parametrize("how", ["cancelled", "restarted"])
async def test_a_link_outlives_the_process_and_not_its_run(open_shop: Shop, ledger: Ledger, how: str) -> None:
    approve, _ = await asked(open_shop, ledger)
    if how == "cancelled":
        await open_shop.app.http.post(f"/runs/{ledger.receipts[BIG.key]['run_id']}/cancel", json={"reason": "twice"})
    await open_shop.app.kill()
    await open_shop.opens()
    page = await open_shop.app.http.get(approve)
    assert page.status_code == (410 if how == "cancelled" else 200)
    assert "Pay back 150 for order 2?" in page.text
    if how == "restarted":
        await agree(open_shop, ledger, BIG)
        assert (await look(open_shop, ledger, BIG))["status"] == "done"


async def test_no_link_stands_in_any_file_or_line(open_shop: Shop, ledger: Ledger) -> None:
    approve, reject = await asked(open_shop, ledger)
    tokens = [link.removeprefix("/approve/") for link in (approve, reject)]
    await agree(open_shop, ledger, BIG)
    await look(open_shop, ledger, BIG)
    said = "\n".join(open_shop.app.said)
    kept = [path.read_bytes() for path in sorted(open_shop.store.iterdir()) if path.name != "secret"]
    for token in tokens:
        _, _, seal = token.partition(".")
        assert seal not in said
        assert not [raw for raw in kept if seal.encode() in raw]
    secret = (open_shop.store / "secret").read_bytes()
    assert not [raw for raw in kept if secret in raw]


async def test_the_provider_that_loses_its_answer_pays_once(open_shop: Shop, ledger: Ledger) -> None:
    async with httpx2.AsyncClient() as http:
        await http.post(f"{open_shop.provider.url}/faults", json={"lose_answers": 1})
    assert (await ask(open_shop, ledger, Order("1", "40")))["status"] == "done"
    assert (await open_shop.provider.book())["calls"] == 2
    await ledger.agrees(open_shop)
