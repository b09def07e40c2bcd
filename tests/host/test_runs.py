"""Runs through the host's verbs: started once per key, met by agreeing calls, looked at, told, ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from onefold import Actuator, Approved, Expired, Rejected, Run, actuator
from onefold.actuators.tables import RUNS
from onefold.kernel.tables import KERNEL
from onefold.store.contract import Query
from onefold.terms.errors import BadArguments, KeyConflict, NotFound, UnknownName
from onefold.testing import Stage, staged
from tests.contracts.backends import store_of

Stages = Callable[..., Awaitable[Stage]]


class Order(BaseModel):
    order_id: str
    amount: int = Field(gt=0, le=500)
    note: str = ""


class Signed(BaseModel):
    by: str


@actuator(dedupe_by=["order_id"])
async def ship(run: Run, order: Order) -> str:
    """Ship an order once it is signed."""
    signed = await run.wait_for_event(Signed)
    return f"{order.order_id} for {signed.by}"


async def explode(left: int) -> int:
    raise ValueError(f"boom {left}")


@actuator
async def fragile(run: Run, order: Order) -> int:
    """Fails in its step."""
    return await run.step(explode)(order.amount)


@actuator
async def asking(run: Run, order: Order) -> str:
    """Ask a person."""
    match await run.wait_for_approval("boss", f"ship {order.order_id}?", notify="boss", timeout="1 day"):
        case Approved(by=by, comment=comment):
            return f"yes {by[0]} {comment}"
        case Rejected(by=who, reason=reason):
            return f"no {who} {reason}"
        case Expired():
            return "nobody"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def stages(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stages]:
    store = store_of(request.param, tmp_path / "store")
    async with AsyncExitStack() as stack:

        async def make(*parts: object, **values: Any) -> Stage:
            return await stack.enter_async_context(staged(*parts, store=store, **values))

        yield make


@pytest.fixture
async def stage(stages: Stages) -> Stage:
    return await stages(ship, fragile, asking)


ORDER = {"order_id": "7", "amount": 40}


async def start(stage: Stage, name: str, arguments: Any, key: str | None = None, who: str | None = None) -> Any:
    return await stage.host.start(name, arguments, key=key, caller=stage.caller(who))


async def test_one_key_is_one_run(stage: Stage) -> None:
    first = await start(stage, "fragile", ORDER, "k")
    again = await start(stage, "fragile", ORDER, "k")

    assert (first.replayed, again.replayed) == (False, True)
    assert first.receipt.run_id == again.receipt.run_id


async def test_one_key_at_the_same_moment_is_one_run(stage: Stage) -> None:
    begun = await asyncio.gather(*(start(stage, "fragile", ORDER, "k") for _ in range(10)))

    assert len({each.receipt.run_id for each in begun}) == 1
    assert sum(not each.replayed for each in begun) == 1


async def test_a_key_with_other_content_is_a_conflict(stage: Stage) -> None:
    await start(stage, "fragile", ORDER, "k")
    with pytest.raises(KeyConflict):
        await start(stage, "fragile", {"order_id": "7", "amount": 41}, "k")


async def test_a_default_spelled_out_is_the_same_content(stage: Stage) -> None:
    first = await start(stage, "fragile", ORDER, "k")
    again = await start(stage, "fragile", {**ORDER, "note": ""}, "k")

    assert first.receipt.run_id == again.receipt.run_id


async def test_bad_arguments_make_no_row(stage: Stage) -> None:
    with pytest.raises(BadArguments) as refused:
        await start(stage, "fragile", {"order_id": "7", "amount": 900}, "k")

    assert str(refused.value).startswith("Nothing was started.")
    assert (await stage.host.runs_list(caller=stage.caller())).items == []
    await start(stage, "fragile", ORDER, "k")


async def test_an_unknown_tool_names_the_nearest(stage: Stage) -> None:
    with pytest.raises(UnknownName) as refused:
        await start(stage, "fragil", ORDER)
    assert refused.value.nearest == "fragile"


async def test_calls_that_agree_meet_the_unfinished_run(stage: Stage) -> None:
    first = await start(stage, "ship", ORDER)
    again = await start(stage, "ship", ORDER, "another key")
    assert (again.receipt.run_id, again.replayed) == (first.receipt.run_id, True)

    with pytest.raises(KeyConflict):
        await start(stage, "ship", {"order_id": "7", "amount": 1})
    other = await start(stage, "ship", {"order_id": "8", "amount": 1})
    assert other.receipt.run_id != first.receipt.run_id


async def test_agreeing_calls_at_the_same_moment_make_one_run(stage: Stage) -> None:
    begun = await asyncio.gather(*(start(stage, "ship", ORDER) for _ in range(8)))
    assert len({each.receipt.run_id for each in begun}) == 1


async def test_after_it_ended_an_agreeing_call_starts_anew(stage: Stage) -> None:
    first = await start(stage, "ship", ORDER)
    await stage.host.run_send(first.receipt.run_id, "Signed", {"by": "anna"}, caller=stage.caller())
    await stage.settle()
    second = await start(stage, "ship", ORDER)

    assert second.receipt.run_id != first.receipt.run_id


async def test_principals_share_neither_keys_nor_agreement_nor_runs(stage: Stage) -> None:
    mine = await start(stage, "ship", ORDER, "k", "anna")
    theirs = await start(stage, "ship", ORDER, "k", "bert")
    assert mine.receipt.run_id != theirs.receipt.run_id

    only_reads = stage.caller("bert", rights=("read", "call"))
    with pytest.raises(NotFound):
        await stage.host.receipt(mine.receipt.run_id, caller=only_reads)
    with pytest.raises(NotFound):
        await stage.host.run_cancel(mine.receipt.run_id, caller=only_reads)
    listed = (await stage.host.runs_list(caller=only_reads)).items
    assert [each.run_id for each in listed] == [theirs.receipt.run_id]


async def test_an_event_sent_before_its_wait_is_kept(stage: Stage) -> None:
    begun = await start(stage, "ship", ORDER)
    run = begun.receipt.run_id
    await stage.host.run_send(run, "Signed", {"by": "anna"}, key="s1", caller=stage.caller())
    await stage.host.run_send(run, "Signed", {"by": "anna"}, key="s1", caller=stage.caller())
    await stage.settle()

    receipt = await stage.host.receipt(run, caller=stage.caller())
    assert receipt.to_json()["result"] == "7 for anna"


async def test_cancel_is_terminal_and_idempotent_in_any_state(stage: Stage) -> None:
    caller = stage.caller()
    waiting = (await start(stage, "ship", ORDER)).receipt.run_id
    await stage.settle()
    for _ in range(2):
        assert (await stage.host.run_cancel(waiting, "no longer", caller=caller)).status == "cancelled"
    fresh = (await start(stage, "ship", {"order_id": "9", "amount": 1})).receipt.run_id
    assert (await stage.host.run_cancel(fresh, caller=caller)).status == "cancelled"
    await stage.settle()
    await stage.crash()

    assert (await stage.host.receipt(waiting, caller=caller)).status == "cancelled"
    assert (await stage.host.receipt(fresh, caller=caller)).status == "cancelled"
    done = await start(stage, "ship", {"order_id": "10", "amount": 1})
    await stage.host.run_send(done.receipt.run_id, "Signed", {"by": "a"}, caller=caller)
    await stage.settle()
    assert (await stage.host.run_cancel(done.receipt.run_id, caller=caller)).status == "done"


async def test_a_failed_run_names_its_step_and_can_be_retried(stage: Stage) -> None:
    begun = await start(stage, "fragile", ORDER)
    await stage.advance("1h")
    failed = (await stage.host.receipt(begun.receipt.run_id, caller=stage.caller())).to_json()
    assert failed["status"] == "failed"
    assert failed["error"]["step"] == "explode"
    assert "boom 40" in failed["error"]["message"]

    await stage.host.run_retry(begun.receipt.run_id, caller=stage.caller())
    await stage.advance("1h")
    journal = await stage.host.run_journal(begun.receipt.run_id, caller=stage.caller())
    assert sum(row.kind in ("failed", "retry") for row in journal) >= 5


async def test_a_decision_counts_once_and_a_late_one_says_so(stage: Stage) -> None:
    caller = stage.caller()
    run = (await start(stage, "asking", ORDER)).receipt.run_id
    await stage.settle()
    (open_one,) = await stage.host.approvals_list(caller=caller)
    assert (open_one.run_id, open_one.name, open_one.message) == (run, "boss", "ship 7?")

    verdicts = await asyncio.gather(
        *(
            stage.host.approvals_decide(run, "boss", approve=yes, by=by, comment="fine", caller=caller)
            for yes, by in ((True, "a"), (False, "b"), (True, "c"))
        )
    )
    await stage.settle()

    assert [verdict.outcome for verdict in verdicts] == ["decided", "already_decided", "already_decided"]
    assert {(verdict.by, verdict.way) for verdict in verdicts} == {("a", "approved")}
    assert (await stage.host.receipt(run, caller=caller)).to_json()["result"] == "yes a fine"
    assert await stage.host.approvals_list(caller=caller) == []


async def test_a_decision_after_the_timeout_changes_nothing(stage: Stage) -> None:
    caller = stage.caller()
    run = (await start(stage, "asking", ORDER)).receipt.run_id
    await stage.advance("25h")
    verdict = await stage.host.approvals_decide(run, "boss", approve=True, by="late", caller=caller)

    assert (verdict.outcome, verdict.by, verdict.way) == ("expired", None, None)
    assert (await stage.host.receipt(run, caller=caller)).to_json()["result"] == "nobody"


async def test_a_link_decides_once_and_is_dead_afterwards(stage: Stage) -> None:
    caller = stage.caller()
    run = (await start(stage, "asking", ORDER)).receipt.run_id
    await stage.settle()
    tokens = [line.rsplit("/", 1)[1] for line in stage.said[0].splitlines()[1:]]
    approve, reject = tokens
    for token in tokens:
        assert (await stage.host.link_page(token)).state == "open"
    assert (await stage.host.link_decide(approve, choice="reject", reason=None)).state == "unknown"

    first = await stage.host.link_decide(approve, choice="approve", reason=None)
    second = await stage.host.link_decide(reject, choice="reject", reason="no")
    await stage.settle()

    assert (first.state, first.outcome) == ("decided", "decided")
    assert (second.state, second.outcome) == ("decided", "approved")
    assert (await stage.host.receipt(run, caller=caller)).status == "done"


async def test_links_of_other_secrets_runs_and_choices_open_nothing(stage: Stage) -> None:
    await start(stage, "asking", ORDER)
    await stage.settle()
    approve = stage.said[0].splitlines()[1].rsplit("/", 1)[1]
    payload, mac = approve.split(".")

    for forged in (approve[:-2], payload, f"{payload}.", f".{mac}", "a.b", "", "é", approve + "x", "x" * 3_000):
        assert (await stage.host.link_page(forged)).state == "unknown"


async def test_an_expired_and_a_cancelled_link_say_which(stage: Stage) -> None:
    first = (await start(stage, "asking", ORDER)).receipt.run_id
    await stage.settle()
    await stage.host.run_cancel(first, caller=stage.caller())
    await start(stage, "asking", {"order_id": "8", "amount": 1})
    await stage.advance("25h")
    states = [
        (await stage.host.link_page(line.splitlines()[1].rsplit("/", 1)[1])).state
        for line in stage.said
        if "asks for" in line
    ]

    assert states == ["cancelled", "expired"]


async def test_no_row_holds_a_token_or_a_secret(stages: Stages, tmp_path: Path) -> None:
    stage = await stages(asking)
    await start(stage, "asking", ORDER)
    await stage.settle()
    tokens = [line.rsplit("/", 1)[1] for line in stage.said[0].splitlines()[1:]]
    told = [*(token.split(".")[1].encode() for token in tokens), *stage.host.signing]
    assert len(told) == 3
    space = await stage.host.space("asking")
    tables = [table for schema in (KERNEL, RUNS) for table in schema.tables]
    rows = repr(await space.look(*(Query(table) for table in tables))).encode()
    assert b"asking" in rows
    assert [secret for secret in told if secret in rows] == []
    await stage.close()

    for path in [path for path in list(tmp_path.rglob("*")) if path.is_file() and path.name != "secret"]:  # noqa: ASYNC240 - nothing else runs in this test
        content = path.read_bytes()
        assert [secret for secret in told if secret in content] == []


async def test_lists_are_paged_newest_first_and_filtered(stage: Stage) -> None:
    caller = stage.caller()
    ids = []
    for n in range(5):
        ids.append((await start(stage, "ship", {"order_id": str(n), "amount": 1})).receipt.run_id)
        await stage.advance("1s")
    seen: list[str] = []
    after = None
    while True:
        page = await stage.host.runs_list(limit=2, after=after, caller=caller)
        seen.extend(receipt.run_id for receipt in page.items)
        after = page.next
        if after is None:
            break
    assert seen == ids[::-1]

    await stage.host.run_cancel(ids[0], caller=caller)
    cancelled = await stage.host.runs_list(status="cancelled", caller=caller)
    assert [receipt.run_id for receipt in cancelled.items] == [ids[0]]
    assert (await stage.host.runs_list(program="fragile", caller=caller)).items == []


async def test_a_wait_for_a_receipt_ends_when_the_run_rests(stage: Stage) -> None:
    begun = await stage.host.start("ship", ORDER, caller=stage.caller(), wait_ms=20_000)
    assert begun.receipt.status == "waiting"

    looking = asyncio.ensure_future(stage.host.receipt(begun.receipt.run_id, wait_ms=20_000, caller=stage.caller()))
    await asyncio.sleep(0)
    assert not looking.done()
    await stage.host.run_send(begun.receipt.run_id, "Signed", {"by": "anna"}, caller=stage.caller())
    assert (await looking).status == "done"


def changed(version: int) -> Actuator[Order, str]:
    async def first() -> int:
        return 1

    async def second() -> int:
        return 2

    @actuator(name="versioned")
    async def program(run: Run, order: Order) -> str:
        """Waits in the middle."""
        await run.step(first if version == 1 else second)()
        await run.sleep("1h")
        return "done"

    return program


async def test_a_changed_program_is_parked_by_name_and_goes_on_when_mended(stages: Stages) -> None:
    stage = await stages(changed(1))
    caller = stage.caller()
    run = (await start(stage, "versioned", ORDER)).receipt.run_id
    await stage.settle()
    stage.parts = (changed(2),)
    await stage.restart()
    await stage.advance("2h")

    receipt = (await stage.host.receipt(run, caller=caller)).to_json()
    assert receipt["status"] == "parked"
    assert receipt["error"]["code"] == "diverged"
    assert "first" in receipt["error"]["message"]
    assert "second" in receipt["error"]["message"]
    assert [item.id for item in await stage.host.parked_list(caller=caller)] == [run]

    stage.parts = (changed(1),)
    await stage.restart()
    await stage.host.run_retry(run, caller=caller)
    await stage.advance("2h")
    assert (await stage.host.receipt(run, caller=caller)).status == "done"


async def test_a_page_that_is_none_is_not_the_first_one(stage: Stage) -> None:
    for after in ("x", "\u00b2.run_x", "", "9" * 30 + ".run_x"):
        with pytest.raises(NotFound):
            await stage.host.runs_list(after=after, caller=stage.caller())
