"""Where ticks go: a function, a signed webhook, another module's mail."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook

from onefold import App, Decision, Module, Owed, Step, port
from onefold.kernel.port import Posting
from onefold.ports.webhook import posting_port, signature
from onefold.terms.codec import parse
from onefold.terms.errors import LoadRefused
from onefold.terms.instant import moment
from onefold.testing import Check, Stage, staged
from onefold.testing.port_suite import PortUnderTest, calling
from onefold.timers import Ack, At, Supersede, Tick, timers
from onefold.timers.facts import TickSent
from tests.ports.conftest import Web
from tests.ports.conftest import web as web
from tests.timers.conftest import Homes
from tests.timers.home import HOURLY, SCHEDULE, Home, Owner, at, create, tick_id

FIRST = tick_id(at(hours=1))

# --- another module's mail -------------------------------------------------------------------------


@dataclass(frozen=True)
class Note:
    id: str
    owner: str
    text: str


@dataclass(frozen=True)
class Noted:
    text: str


@dataclass(frozen=True)
class Full:
    after: int


Letters = tuple[str, ...]


def take(letters: Letters, event: Note | Tick, now: datetime) -> Decision[Noted, Full | None]:
    if len(letters) >= 3:
        return Decision(reply=Full(3))
    return Decision(facts=[Noted(str(event.id) if isinstance(event, Tick) else event.text)], reply=None)


def add(letters: Letters, fact: Noted) -> Letters:
    return (*letters, fact.text)


def shown(letters: Letters) -> Letters:
    return letters


inbox: Module[Letters, Note | Tick, Noted, Full | None, Letters] = Module(
    "inbox", initial=(), key=lambda event: event.owner, decide=take, evolve=add, view=shown
)


async def letters(stage: Stage, principal: str | None = None) -> Letters:
    return await stage.host.read(inbox, "agent-7", caller=stage.caller(principal))  # type: ignore[no-any-return]


async def mailed(homes: Homes) -> Home:
    return await homes(inbox, to=timers("reminders", to="deliver.inbox"))


async def test_a_tick_is_mail_to_an_actor_once(homes: Homes) -> None:
    home = await mailed(homes)
    await home.say(create())
    await home.later("61m")
    assert await letters(home.stage) == (str(FIRST),)
    assert TickSent(FIRST) in await home.facts()
    await home.say(Ack("a1", FIRST))
    await home.later("1h")
    assert len(await letters(home.stage)) == 2


async def test_mail_goes_to_the_actor_of_the_same_principal(homes: Homes) -> None:
    home = await mailed(homes)
    await home.say(create(), principal="studio_42")
    await home.later("61m")
    assert await letters(home.stage) == ()
    assert await letters(home.stage, "studio_42") == (str(FIRST),)


async def test_what_the_other_actor_answers_does_not_stop_a_schedule(homes: Homes) -> None:
    """A full inbox declines, and that is its reply: the tick arrived, and waits to be acknowledged."""
    home = await mailed(homes)
    for number in range(3):
        note = Note(f"n{number}", "agent-7", "hello")
        await home.stage.host.deliver(inbox, note, caller=home.stage.caller())
    await home.say(create())
    await home.later("61m")
    assert TickSent(FIRST) in await home.facts()
    assert (await home.shown()).held == FIRST


async def test_nobody_outside_can_take_the_place_of_mail(homes: Homes) -> None:
    """An event through the door under any id that can be guessed is another event."""
    home = await mailed(homes)
    for id in (str(FIRST), f"~/reminders/{SCHEDULE}/{str(FIRST).replace('/', '~1')}/owed"):
        await home.stage.host.deliver(inbox, Note(id, "agent-7", "not a tick"), caller=home.stage.caller())
    await home.say(create())
    await home.later("61m")
    assert (await letters(home.stage))[-1] == str(FIRST)


@pytest.mark.parametrize("point", ["before-commit", "after-commit", "before-send", "after-send"])
async def test_mail_that_a_kill_cut_off_counts_once(homes: Homes, point: str) -> None:
    home = await mailed(homes)
    await home.say(create())
    await home.stage.settle()
    for hit in range(1, 4):
        home.stage.kill_at(point, hit=hit)
        home.stage.clock.step_to(home.stage.clock.now() + 3_660_000)
        await home.stage.let_die()
        home.stage.live_on()
        await home.stage.open()
        await home.later("10s")
        held = (await home.shown()).held
        assert held is not None
        assert list(await letters(home.stage)).count(str(held)) == 1
        await home.say(Ack(f"a{hit}", held))


async def test_any_module_may_owe_to_another_and_hears_its_reply(homes: Homes) -> None:
    @dataclass(frozen=True)
    class Say:
        id: str

    def decide(state: int, event: Say, now: datetime) -> Decision[Noted, None]:
        return Decision(owed=[Owed("deliver.inbox", event.id, Note(event.id, "agent-7", "from another"))], reply=None)

    decide.__annotations__["event"] = Say
    sayer: Module[int, Say, Noted, None, int] = Module(
        "sayer", initial=0, key=lambda event: "one", decide=decide, evolve=lambda_evolve, view=lambda_view
    )
    home = await homes(inbox, sayer)
    for _ in range(2):
        await home.stage.host.deliver(sayer, Say("e1"), caller=home.stage.caller())
        await home.stage.settle()
    assert await letters(home.stage) == ("from another",)


def lambda_evolve(state: int, fact: Noted) -> int:
    return state


def lambda_view(state: int) -> int:
    return state


async def refusal(*parts: object) -> str:
    with pytest.raises(LoadRefused) as refused:
        async with staged(*parts):
            pass
    return str(refused.value)


async def test_a_module_that_is_not_there_is_named_when_the_app_is_loaded() -> None:
    told = await refusal(timers("reminders", to="deliver.inbocks"), inbox)
    assert "this app has no module 'inbocks'; did you mean 'deliver.inbox'?" in told


async def test_a_module_that_takes_no_ticks_is_refused_when_the_app_is_loaded() -> None:
    other = timers("calls", to=Owner().port)
    assert "'calls' does not take it; add it to its events" in await refusal(
        timers("reminders", to="deliver.calls"), other
    )


# --- a function --------------------------------------------------------------------------------------


async def test_the_port_need_not_be_given_twice_but_may() -> None:
    owner = Owner()
    module = owner.timers()
    for parts in ((module,), (module, owner.port), (owner.port, module)):
        async with staged(*parts) as stage:
            assert stage.host.catalog.ports["remind"] is owner.port


async def test_two_ports_of_one_name_are_refused() -> None:
    assert "port remind" in await refusal(Owner().timers(), Owner().port)


async def test_through_a_port_that_can_neither_a_doubtful_tick_waits_for_a_person(homes: Homes) -> None:
    rung: list[str] = []

    @port.neither("bell")
    async def bell(step: Step, tick: Tick) -> None:
        rung.append(step.key)

    home = await homes(to=timers("reminders", to=bell))
    await home.say(create())
    await home.stage.settle()
    home.stage.kill_at("after-send")
    home.stage.clock.step_to(home.stage.clock.now() + 3_660_000)
    await home.stage.let_die()
    home.stage.live_on()
    await home.stage.open()
    await home.later("5m")
    caller = home.stage.caller()
    (item,) = await home.stage.host.parked_list(caller=caller)
    assert (item.kind, len(rung)) == ("uncertain", 1)
    await home.say(Supersede("s1", SCHEDULE, HOURLY))
    await home.stage.settle()
    assert await home.stage.host.parked_list(caller=caller) == []
    assert len(rung) == 1


# --- a webhook ---------------------------------------------------------------------------------------


@pytest.fixture
async def hooked(homes: Homes, web: Web) -> Home:
    home = await homes(to=timers("reminders", to=web.url))
    home.stage.clock.step_to(int(time.time() * 1000))  # receivers refuse what is minutes old
    await home.stage.settle()
    return home


async def test_any_standard_webhooks_receiver_takes_a_tick(hooked: Home, web: Web) -> None:
    home = hooked
    due = moment(home.stage.clock.now() // 1000 * 1000 + 60_000)
    await home.say(create(At(due)))
    await home.later("62s")
    ((headers, body),) = web.posted
    told = Webhook(base64.b64encode(home.stage.host.signing[0]).decode()).verify(body, headers)
    assert told["type"] == "timer.tick"
    assert told["data"] == {
        "id": {"schedule": SCHEDULE, "generation": 0, "due_at": due.strftime("%Y-%m-%dT%H:%M:%SZ")},
        "owner": "agent-7",
        "key": "standup",
        "due_at": due.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "payload": {"say": "hi"},
    }
    assert TickSent(tick_id(due)) in await home.facts()


async def test_a_webhook_that_is_down_gets_the_same_message_again(hooked: Home, web: Web) -> None:
    home = hooked
    web.status = 503
    due = moment(home.stage.clock.now() // 1000 * 1000 + 60_000)
    await home.say(create(At(due)))
    await home.later("64s")
    web.status = 204
    await home.later("20m")
    assert len(web.posted) >= 2
    assert len({headers["webhook-id"] for headers, _ in web.posted}) == 1
    assert len({body for _, body in web.posted}) == 1
    assert parse(web.posted[0][1])["data"]["owner"] == "agent-7"
    assert len({headers["webhook-timestamp"] for headers, _ in web.posted}) > 1


async def test_a_failed_post_is_told_without_its_path(hooked: Home, web: Web) -> None:
    home = hooked
    web.status = 500
    await home.say(create(At(home.stage.clock.moment + timedelta(minutes=1))))
    await home.later("9h")
    (item,) = await home.stage.host.parked_list(caller=home.stage.caller())
    assert item.cause == "webhook.reminders: http://127.0.0.1/…: the address answered 500"


# --- an app --------------------------------------------------------------------------------------------


async def test_an_app_is_the_values_it_is_given() -> None:
    owner = Owner()
    module = owner.timers()
    async with App(module, owner.port, store="memory:") as app:
        reply = await app.deliver(module, create())
        assert (await app.read(module, SCHEDULE)) is not None
        assert type(reply).__name__ == "Scheduled"
        assert [item["key"] for item in await app.actors(module)] == [SCHEDULE]


def test_the_blocking_twin_is_the_same() -> None:
    owner = Owner()
    module = owner.timers()
    with App(module, store="memory:") as app:
        assert type(app.deliver(module, create())).__name__ == "Scheduled"
        assert app.read(module, SCHEDULE) is not None


async def test_nothing_leaves_when_it_was_superseded_while_the_other_side_was_asked(homes: Homes) -> None:
    """After a doubtful send the port is asked whether it happened. Meanwhile the schedule moved on."""
    sent: list[str] = []
    homed: list[Home] = []

    async def find(step: Step, tick: Tick) -> str | None:
        await homed[0].say(Supersede("s1", SCHEDULE, At(at(days=9))))
        return None

    @port.lookup("bell", find=find)
    async def bell(step: Step, tick: Tick) -> str:
        sent.append(step.key)
        return "rung"

    home = await homes(to=timers("reminders", to=bell))
    homed.append(home)
    await home.say(create())
    await home.stage.settle()
    home.stage.kill_at("before-send")
    home.stage.clock.step_to(home.stage.clock.now() + 3_660_000)
    await home.stage.let_die()
    home.stage.live_on()
    await home.stage.open()
    await home.later("1h")
    assert sent == []
    assert (await home.told())[-1] == "TickVoid"


def hook(web: Web) -> PortUnderTest:
    """The webhook's port. Its receiver knows a message by its id, as Standard Webhooks says it must."""
    posting = Posting("webhook.reminders", web.url, "timer.tick", Tick)
    sign = signature((b"s" * 32,))
    first, second = (Tick(tick_id(at(hours=n)), "agent-7", "standup", at(hours=n), None) for n in (1, 2))
    return PortUnderTest(
        lambda: posting_port(sign, lambda: 1_800_000_000_000, posting),
        first,
        second,
        effects=lambda: len({headers["webhook-id"] for headers, _ in web.posted}),
    )


@pytest.mark.parametrize("check", calling.CHECKS, ids=lambda check: check.name)
async def test_the_webhook_keeps_what_a_port_that_dedupes_promises(check: Check, web: Web) -> None:
    """Called, not hosted: an app under test posts nothing to anybody."""
    subject = hook(web)
    await check.run(subject)
    assert subject.make().promise == "dedupes"
