"""Promise 6: what a port confirmed, and its actor cannot fold, stays owed until a person has looked at it."""

from __future__ import annotations

from datetime import datetime

from onefold import Answer, Decision, Module
from onefold.kernel.words import Dropped
from tests.guarantees.conftest import Stages
from tests.guarantees.shop import (
    Account,
    Deposit,
    Event,
    Fact,
    PaidOut,
    PayOut,
    Provider,
    Reply,
    Sent,
    decide,
    evolve,
    on_answer,
    view,
)


def module(*, broken: bool) -> Module[Account, Event, Fact, Reply, Account]:
    def raises(account: Account, answer: Answer[Sent | Dropped], now: datetime) -> Decision[Fact, None]:
        raise RuntimeError("the module cannot take it")

    return Module(
        "bank",
        initial=Account(),
        key=lambda event: event.account,
        decide=decide,
        evolve=evolve,
        view=view,
        on_answer=raises if broken else on_answer,
    )


async def test_it_is_parked_with_the_reason_and_folded_once_the_module_is_mended(
    stages: Stages, provider: Provider
) -> None:
    broken = module(broken=True)
    stage = await stages(broken, provider.dedupes())
    caller = stage.caller()
    await stage.host.deliver(broken, Deposit("d1", "a", 100), caller=caller)
    await stage.host.deliver(broken, PayOut("p1", "a", 40), caller=caller)
    await stage.advance("12h")
    (item,) = await stage.host.parked_list(caller=caller)
    assert item.kind == "owed"
    assert "the module cannot take it" in item.cause

    mended = module(broken=False)
    stage.parts = (mended, provider.dedupes())
    await stage.restart()
    await stage.host.parked_retry(item.id, caller=caller)
    await stage.settle()

    facts = [row.fact for row in await stage.host.history(mended, "a", caller=caller)]
    assert facts.count(PaidOut("p1", "ref 1")) == 1
    assert list(provider.paid.values()) == [40]
    assert await stage.host.parked_list(caller=caller) == []
