"""A task is one engine's at a time, for as long as its lease, and never for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from onefold.reflex import claim, parking
from onefold.reflex.claim import CLAIMS_AT_MOST, EFFECTS_AT_MOST, GRACE_MS, SUSPECT_FROM, policy_of
from onefold.reflex.tables import TASK
from onefold.store.contract import Append, Put
from onefold.terms import codec
from onefold.terms.instant import Instant
from onefold.testing.broken.reflexes import LEASE_MS as LEASE
from tests.reflex.ledger import RAISED, START, STORES, Ledger, ledger_on, number_of, task_row, unit_of


async def prepare(ledger: Ledger) -> None:
    await ledger.arm("r", "s")


@pytest.fixture(params=STORES)
async def ledger(request: pytest.FixtureRequest, place: Path) -> AsyncIterator[Ledger]:
    async with ledger_on(request.param, place) as ledger:
        await prepare(ledger)
        yield ledger


async def test_a_claim_takes_what_is_due_and_no_more_than_it_may(ledger: Ledger) -> None:
    await ledger.fan("abc")
    ledger.now += 1
    await ledger.fan("de")
    ledger.now -= 1
    assert [unit_of(task) for task in (await ledger.claim(2)).run] == ["a", "b"]
    assert [unit_of(task) for task in (await ledger.claim()).run] == ["c"]
    assert (await ledger.claim()).run == ()


async def test_a_claim_counts_the_attempt_and_gives_one_token(ledger: Ledger) -> None:
    await ledger.fan("ab")
    claimed = (await ledger.claim()).run
    assert {task[TASK.at["token"]] for task in claimed} == {claimed[0][TASK.at["token"]]} != {None}
    assert [(t["state"], t["attempt"], t["claims"], t["ready_at"]) for t in await ledger.tasks()] == [
        ("claimed", 1, 1, ledger.now + LEASE)
    ] * 2


async def test_claims_at_once_never_share_a_task(ledger: Ledger) -> None:
    await ledger.fan([str(i) for i in range(40)])
    claims = await asyncio.gather(*(ledger.claim(7) for _ in range(8)))
    taken = [number_of(task) for claimed in claims for task in claimed.run]
    assert len(taken) == len(set(taken)) == 40


async def test_a_claim_takes_only_effects_that_are_known_here(ledger: Ledger) -> None:
    await ledger.fan("a")
    assert (await ledger.claim(effects=("other",))).run == ()
    assert (await ledger.claim(effects=())).run == ()
    assert [t["claims"] for t in await ledger.tasks()] == [0]
    assert len((await ledger.claim(effects=("other", "do"))).run) == 1


async def test_a_lapsed_lease_is_the_whole_recovery(ledger: Ledger) -> None:
    await ledger.fan("a")
    await ledger.claim()
    ledger.now += LEASE - 1
    assert (await ledger.claim()).run == ()
    ledger.now += 1
    (again,) = (await ledger.claim()).run
    assert (again[TASK.at["attempt"]], again[TASK.at["claims"]]) == (2, 2)


async def test_a_lease_covers_the_longest_timeout_of_its_tasks(ledger: Ledger) -> None:
    """Also of a definition that this engine does not hold."""
    await ledger.fan("a", reflex="s", serial=True)  # its timeout of 90 s stands only in its text
    await ledger.fan("b")
    await ledger.claim()
    leases = {task["unit"]: task["ready_at"] - ledger.now for task in await ledger.tasks()}
    assert leases == {"a": 90_000 + GRACE_MS, "b": LEASE}


async def test_serial_order_is_honoured_inside_the_claim(ledger: Ledger) -> None:
    await ledger.fan("abc", serial=True)
    assert [unit_of(task) for task in (await ledger.claim()).run] == ["a"]
    assert (await ledger.claim()).run == ()
    assert [t["state"] for t in await ledger.tasks()] == ["claimed", "queued", "queued"]


async def test_a_task_that_kills_whoever_runs_it_is_parked_after_its_claims_with_its_last_words(ledger: Ledger) -> None:
    run = await ledger.fan("ab")
    await ledger.work(1, RAISED)  # a raises once and says so; from then on it kills
    ledger.now += 1_000
    await ledger.work(1)  # b is done
    for _ in range(CLAIMS_AT_MOST):
        assert len((await ledger.claim()).run) == 1
        ledger.now += LEASE
    assert await ledger.work() == []
    (a,) = await ledger.tasks(unit="a")
    assert (a["state"], a["ready_at"], a["token"]) == ("parked", None, None)
    assert a["error"].startswith(f"It was started {CLAIMS_AT_MOST} times and never answered")
    assert a["error"].endswith("ValueError: no")
    settled = await ledger.run(run)
    assert (settled["state"], settled["done"], settled["failed"]) == ("settled", 1, 1)
    assert (await ledger.claim()).run == ()


async def test_an_answer_ends_the_count_of_claims(ledger: Ledger) -> None:
    ledger.policy = ledger.policy.__class__(retry_max=20, backoff="fixed", base_ms=0)
    await ledger.fan("a")
    for _ in range(CLAIMS_AT_MOST + 2):
        assert await ledger.work(1, RAISED) == ["a"]
    assert [t["state"] for t in await ledger.tasks()] == ["ready"]


async def test_a_suspect_runs_alone_so_that_the_innocent_do_not_count_with_it(ledger: Ledger) -> None:
    """`poison` kills the process with whatever else is in flight. Only it is parked in the end."""
    await ledger.fan(["a", "poison", "b", "c"])
    crashes = 0
    for _ in range(60):
        claimed = await ledger.claim()
        spent = [ledger.landing(task) for task in claimed.spent]
        if any(unit_of(task) == "poison" for task in claimed.run):
            crashes += 1
            ledger.now += LEASE  # dead with all it had; whoever comes next finds the leases lapsed
            continue
        await ledger.record(*(ledger.landing(task) for task in claimed.run))
        if claimed.spent:
            assert [unit_of(task) for task in claimed.spent] == ["poison"]
            break
        assert spent == []
    assert crashes == CLAIMS_AT_MOST
    assert [t["state"] for t in await ledger.tasks()] == ["done", "claimed", "done", "done"]


async def test_what_is_given_back_was_never_claimed(ledger: Ledger) -> None:
    await ledger.fan(["fresh", "suspect"])
    suspect = {**(await ledger.tasks(unit="suspect"))[0], "claims": SUSPECT_FROM - 1, "attempt": SUSPECT_FROM - 1}
    await ledger.write(Put(TASK, [task_row(**suspect)]))
    assert [unit_of(task) for task in (await ledger.claim()).run] == ["fresh"]
    (back,) = await ledger.tasks(unit="suspect")
    assert back == {**suspect, "ready_at": ledger.now}


def test_a_text_that_is_silent_means_the_defaults() -> None:
    text = codec.canonical({"policy": {"retry": {"max": 7}, "timeoutMs": 5}})
    policy = policy_of(text)
    assert (policy.retry_max, policy.timeout_ms, policy.backoff, policy.order) == (7, 5, "exponential", "any")
    assert policy_of(b"{}") == policy.__class__()


async def test_a_claim_in_a_fleet_says_whose_it_is_and_only_the_deads_are_let_go(ledger: Ledger) -> None:
    await ledger.fan("abc")
    held = {}
    for token, life in ((90, "1 a"), (91, "2 a"), (92, None)):
        (held[life],) = (await ledger.commit(claim.claiming(ledger.at, 1, ("do",), token, LEASE, life=life))).run
    (rows,) = await ledger.space.look(parking.claimed(ledger.at))
    assert [claim.holder_of(row) for row in rows] == ["1 a", "2 a"]
    dead = parking.of_the_dead(rows, lambda life: life == "1 a")
    assert dead == [held["1 a"]]
    await ledger.write(*parking.let_go(dead, ledger.at))
    assert (await ledger.record(ledger.landing(held["1 a"]))).late == (number_of(held["1 a"]),)
    (again,) = (await ledger.claim()).run
    assert (number_of(again), again[TASK.at["attempt"]], again[TASK.at["claims"]]) == (number_of(held["1 a"]), 2, 2)
    assert (await ledger.record(ledger.landing(held["2 a"]))).kept == (number_of(held["2 a"]),)
    assert [task["holder"] for task in await ledger.tasks()] == [None, None, None]


def test_a_claim_of_code_that_names_nobody_is_nobodys_whatever_the_row_said_before() -> None:
    theirs = task_row(state="claimed", token=7, holder=claim.held_by(7, "1 a b"))
    assert claim.holder_of(theirs) == "1 a b"
    for cells in ({"token": 8}, {"token": None}, {"state": "ready"}, {"holder": None}, {"holder": ""}):
        assert claim.holder_of(task_row(**{"state": "claimed", "token": 7, "holder": "7 1 a", **cells})) is None


async def test_a_suspect_waits_where_others_are_under_way(ledger: Ledger) -> None:
    await ledger.fan(["suspect", "fresh"])
    suspect = {**(await ledger.tasks(unit="suspect"))[0], "claims": SUSPECT_FROM - 1}
    await ledger.write(Put(TASK, [task_row(**suspect)]))
    claimed = await ledger.commit(claim.claiming(ledger.at, 10, ("do",), 99, LEASE, beside=True))
    assert [unit_of(task) for task in claimed.run] == ["fresh"]
    assert (claimed.suspect, claimed.waits) == (False, True)
    (back,) = await ledger.tasks(unit="suspect")
    assert back == suspect
    alone = await ledger.claim()
    assert (alone.suspect, alone.waits) == (True, False)


async def test_the_effects_to_claim_for_are_those_of_which_something_is_due(ledger: Ledger) -> None:
    """The longest waiting first, so that one of very many has its turn too."""
    names = [f"e{n:02}" for n in range(EFFECTS_AT_MOST + 8)]
    rows = [task_row(n=n + 1, run=n, effect=name, ready_at=START + n % 7) for n, name in enumerate(names)]
    await ledger.write(Append(TASK, rows))
    assert claim.wanted((await ledger.space.look(claim.due(Instant(START - 1), names)))[0]) == ()
    (due,) = await ledger.space.look(claim.due(ledger.at, ["none", *names]))
    assert claim.wanted(due) == ("e00", "e07", "e14", "e21", "e28", "e35")
    ledger.now += 10
    (due,) = await ledger.space.look(claim.due(ledger.at, names))
    assert len(claim.wanted(due)) == EFFECTS_AT_MOST
    assert claim.wanted(due)[:6] == ("e00", "e07", "e14", "e21", "e28", "e35")
