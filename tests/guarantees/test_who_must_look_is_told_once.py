"""Promise 6: what parks is seen, told once to the people named in `alerts`, and has a way out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP
from pydantic import BaseModel

from onefold import Actuator, Decision, Module, Run, Step, actuator, port
from onefold.terms.errors import LoadRefused, NotFound
from onefold.testing import Stage
from tests.guarantees import shop
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import Account, Deposit, PayOut, Provider, Released, bank

PEOPLE = {"shop_manager": {"notify": ["mailto:manager@example.com"]}}
TOLD: Mapping[str, Any] = {"alerts": ["shop_manager"], "people": PEOPLE}


@pytest.fixture
async def alerted(stages: Stages, provider: Provider) -> Stage:
    return await stages(bank, provider.dedupes(), settings=TOLD)


async def pay(stage: Stage, account: str = "a", minutes: int = 100_000) -> None:
    await stage.host.deliver(bank, Deposit("d1", account, 100), caller=stage.caller())
    await stage.host.deliver(bank, PayOut("p1", account, 40, minutes=minutes), caller=stage.caller())


async def kinds(stage: Stage) -> list[str]:
    return [item.kind for item in await stage.host.parked_list(caller=stage.caller())]


async def test_one_parked_item_is_one_alert_over_any_number_of_lives(alerted: Stage, provider: Provider) -> None:
    provider.failing = [ConnectionError("down")] * 20
    await pay(alerted)
    await alerted.advance("11m")
    assert alerted.said == []
    await alerted.advance("12h")
    (item,) = await alerted.host.parked_list(caller=alerted.caller())
    (line,) = alerted.said
    assert line.splitlines() == [
        "Something owed of bank a has stopped and waits for a person",
        "  transfer: ConnectionError: down",
        f"  look: onefold parked show {item.id}",
    ]
    for _ in range(3):
        await alerted.crash()
        await alerted.advance("1d")
    assert len(alerted.said) == 1

    provider.failing = [ConnectionError("still down")] * 20
    await alerted.host.parked_retry(item.id, caller=alerted.caller())
    await alerted.advance("1d")
    assert len(alerted.said) == 2  # it parked a second time, and that is news
    await alerted.host.parked_drop(item.id, reason="by hand", caller=alerted.caller())
    await alerted.advance("1d")
    assert (await kinds(alerted), len(alerted.said)) == ([], 2)


async def test_an_alert_cut_off_before_it_left_is_still_told(alerted: Stage, provider: Provider) -> None:
    provider.failing = [ConnectionError("down")] * 20
    await pay(alerted)
    while len(provider.failing) > 1:
        await alerted.advance("1m")
    alerted.kill_at("before-send", hit=2)  # the last try of the payment, then the alert
    alerted.clock.step_to(alerted.clock.now() + 15 * 60_000)
    await alerted.let_die()
    alerted.live_on()
    await alerted.open()
    assert alerted.said == []
    await alerted.advance("1h")
    assert len(alerted.said) == 1


async def test_nobody_named_means_no_row_and_no_line(stage: Stage, provider: Provider) -> None:
    provider.failing = [ConnectionError("down")] * 20
    await pay(stage)
    await stage.advance("12h")
    assert (await kinds(stage), stage.said) == (["owed"], [])


def make_sleepy() -> Any:
    def on_alarm(account: Account, now: datetime) -> Decision[shop.Fact, None]:
        raise RuntimeError("the module is broken")

    return Module(
        "sleepy",
        initial=Account(),
        key=lambda event: event.account,
        decide=shop.decide,
        evolve=shop.evolve,
        view=shop.view,
        on_answer=shop.on_answer,
        on_alarm=on_alarm,
        wake=shop.wake,
    )


@pytest.mark.parametrize("told", [False, True])
async def test_a_wake_that_was_given_up_is_seen_also_while_something_is_owed(
    stages: Stages, provider: Provider, told: bool
) -> None:
    sleepy = make_sleepy()
    provider.failing = [ConnectionError("down")] * 1000
    stage = await stages(sleepy, provider.dedupes(), settings=TOLD if told else {})
    caller = stage.caller()
    await stage.host.deliver(sleepy, Deposit("d1", "a", 100), caller=caller)
    await stage.host.deliver(sleepy, PayOut("p1", "a", 40, minutes=1), caller=caller)
    await stage.advance("2h 30m")  # the wake is given up after 12 tries, the payment after 20
    assert await kinds(stage) == ["alarm"]
    (item,) = await stage.host.parked_list(caller=caller)
    assert "RuntimeError: the module is broken" in item.cause
    assert await stage.host.parked_count() == 1
    await stage.crash()
    assert await kinds(stage) == ["alarm"]
    await stage.advance("1d")
    assert sorted(await kinds(stage)) == ["alarm", "owed"]
    assert len(stage.said) == (2 if told else 0)

    calls = len(provider.calls)
    await stage.host.parked_drop(item.id, reason="it may sleep", caller=caller)
    assert await kinds(stage) == ["owed"]
    (owed,) = await stage.host.parked_list(caller=caller)
    provider.failing = [ConnectionError("down")] * 2
    await stage.host.parked_retry(owed.id, caller=caller)
    await stage.advance("1h")
    assert (await kinds(stage), len(provider.calls)) == ([], calls + 3)


async def test_a_dropped_wake_lets_what_is_owed_beside_it_leave(stages: Stages, provider: Provider) -> None:
    sleepy = make_sleepy()
    provider.failing = [ConnectionError("down")] * 19
    stage = await stages(sleepy, provider.dedupes())
    caller = stage.caller()
    await stage.host.deliver(sleepy, Deposit("d1", "a", 100), caller=caller)
    await stage.host.deliver(sleepy, PayOut("p1", "a", 40, minutes=1), caller=caller)
    await stage.advance("2h 30m")
    (item,) = await stage.host.parked_list(caller=caller)
    await stage.host.parked_drop(item.id, reason="it may sleep", caller=caller)
    assert await kinds(stage) == []
    await stage.advance("3h")
    assert list(provider.paid.values()) == [40]
    assert await kinds(stage) == []


async def test_a_row_whose_port_is_missing_waits_is_told_of_once_and_leaves_when_the_port_is_there(
    stages: Stages, provider: Provider
) -> None:
    stage = await stages(bank, settings=TOLD)
    await pay(stage)
    await stage.settle()
    assert await kinds(stage) == ["port"]
    (item,) = await stage.host.parked_list(caller=stage.caller())
    assert item.cause == "transfer: no part of this app provides the port 'transfer'"
    await stage.advance("2 days")
    assert (await kinds(stage), len(stage.said)) == (["port"], 1)
    stage.parts = (bank, provider.dedupes())
    await stage.restart()
    await stage.advance("20m")
    assert (list(provider.paid.values()), await kinds(stage)) == ([40], [])


class Order(BaseModel):
    order_id: str


calls: list[str] = []


async def first(order_id: str) -> str:
    calls.append("first")
    return order_id


async def second(order_id: str) -> str:
    calls.append("second")
    return order_id


def make_ship(changed: bool) -> Actuator[Any, Any]:
    @actuator(name="ship")
    async def ship(run: Run, order: Order) -> str:
        """Ship."""
        step = second if changed else first
        await run.step(step)(order.order_id)
        await run.sleep("1 hour")
        return "done"

    return ship


async def test_a_run_that_diverged_is_told_of_shown_and_goes_on_when_its_code_is_back(stages: Stages) -> None:
    stage = await stages(make_ship(False), settings=TOLD)
    caller = stage.caller()
    run = (await stage.host.start("ship", {"order_id": "7"}, caller=caller)).receipt.run_id
    await stage.settle()
    stage.parts = (make_ship(True),)
    await stage.restart()
    await stage.advance("2h")
    (item,) = await stage.host.parked_list(caller=caller)
    assert (item.id, item.kind) == (run, "run")
    shown = await stage.host.parked_show(run, caller=caller)
    assert "no longer does what its journal holds" in shown.cause
    assert shown.retry == "goes on from its journal"
    (line,) = stage.said
    assert line.startswith(f"A run of ship {run} has stopped")
    stage.parts = (make_ship(False),)
    await stage.restart()
    await stage.host.parked_retry(run, caller=caller)
    await stage.advance("2h")
    assert (await stage.host.receipt(run, caller=caller)).status == "done"
    assert len(stage.said) == 1


async def test_an_item_is_shown_with_all_that_is_known_of_it(alerted: Stage, provider: Provider) -> None:
    provider.failing = [ConnectionError("down")] * 20
    await pay(alerted)
    await alerted.advance("12h")
    (item,) = await alerted.host.parked_list(caller=alerted.caller())
    shown = await alerted.host.parked_show(item.id, caller=alerted.caller())
    assert (shown.key, shown.port, shown.owed, shown.tries, shown.body) == ("a", "transfer", "p1", 20, {"amount": 40})
    for who, id in (("other", item.id), (None, "owed.main.99"), (None, "run_x")):
        with pytest.raises(NotFound):
            await alerted.host.parked_show(id, caller=alerted.caller(who, rights=("read",)))


async def test_a_notice_that_does_not_get_through_is_seen_before_it_parks(stages: Stages, provider: Provider) -> None:
    provider.failing = [ConnectionError("down")] * 20
    people = {"shop_manager": {"notify": ["https://127.0.0.1:9/nobody"]}}
    stage = await stages(bank, provider.dedupes(), settings={"alerts": ["shop_manager"], "people": people})
    await pay(stage)
    await stage.advance("4h")
    items = await stage.host.parked_list(caller=stage.caller())
    assert sorted(item.kind for item in items) == ["notice", "owed"]
    (notice,) = [item for item in items if item.kind == "notice"]
    assert "was not told: ConnectError (tried " in notice.cause
    await stage.advance("12h")
    assert sorted(await kinds(stage)) == ["owed", "owed"]  # parked itself, and nobody is told of that
    assert len(stage.said) == 1
    for item in await stage.host.parked_list(caller=stage.caller()):
        await stage.host.parked_drop(item.id, reason="seen", caller=stage.caller())
    await stage.advance("1d")
    facts = [row.fact for row in await stage.host.history(bank, "a", caller=stage.caller())]
    assert await kinds(stage) == []
    assert facts[-1] == Released("p1", "seen")


@dataclass
class Post:
    """A mail server that keeps what it is sent."""

    port: int
    letters: list[str]
    closed: bool = False

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.closed:
            return "451 later"
        self.letters.append(envelope.content.decode())
        return "250 taken"


@pytest.fixture
async def post() -> AsyncIterator[Post]:
    post = Post(0, [])
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(post), "127.0.0.1", 0)
    post.port = server.sockets[0].getsockname()[1]
    yield post
    server.close()
    await server.wait_closed()


async def test_an_alert_is_one_mail_that_says_what_and_why(
    stages: Stages, provider: Provider, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.failing = [ConnectionError("down")] * 20
    monkeypatch.setattr(
        "onefold.host.config.Config.secret", lambda self, name, asks, least=16: f"smtp://127.0.0.1:{post.port}"
    )
    smtp = {"url_env": "SMTP_URL", "from": "onefold@example.com"}
    stage = await stages(bank, provider.dedupes(), settings={**TOLD, "smtp": smtp})
    post.closed = True
    await pay(stage)
    await stage.advance("3h 45m")
    assert sorted(await kinds(stage)) == ["notice", "owed"]
    post.closed = False
    await stage.advance("1h")
    await stage.crash()
    await stage.advance("1d")
    (letter,) = post.letters
    assert "Subject: Something owed of bank a has stopped and waits for a person" in letter
    assert "transfer: ConnectionError: down" in letter
    assert "approve" not in letter


async def test_probes_cost_one_count_and_wake_nobody(alerted: Stage, provider: Provider) -> None:
    provider.failing = [ConnectionError("down")] * 20
    await pay(alerted)
    await alerted.advance("12h")
    await alerted.crash()
    for _ in range(3):
        assert (await alerted.host.ready())["parked"] == 1
    assert alerted.host.resident_count == 0


async def test_a_part_with_the_name_of_the_alerts_port_is_refused_where_alerts_are_set(stages: Stages) -> None:
    @port.dedupes("alert")
    async def alert(step: Step, body: shop.Transfer) -> None: ...

    await stages(bank, alert)
    with pytest.raises(LoadRefused, match="give this port another name"):
        await stages(bank, alert, store_name="other", settings=TOLD)
