"""From whatever happened to why it happened, along rows, and never into somebody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from onefold.reflex.tables import INTAKE, REFLEX_RUN
from onefold.reflex.words import Signal, Write
from onefold.store.contract import Append, Cas, Remove
from onefold.terms.errors import NotFound
from onefold.terms.instant import moment
from tests.reflex.ledger import START, STORES, Ledger, fact_row, ledger_on


async def prepare(ledger: Ledger) -> None:
    await ledger.arm("charge", "paid", "receipt", principal="studio")


@pytest.fixture(params=STORES)
async def ledger(request: pytest.FixtureRequest, place: Path) -> AsyncIterator[Ledger]:
    async with ledger_on(request.param, place) as ledger:
        await prepare(ledger)
        yield ledger


async def chain_of_three(ledger: Ledger) -> str:
    """clock → charge → write → paid → signal → receipt. Gives the id of the receipt's task."""
    run = await ledger.fan(["s1"], reflex="charge", principal="studio", cause="occurrence:2026-03", tz="2026a")
    for reflex, emitted in (("paid", Write("charges", "insert", {})), ("receipt", Signal("paid", 1, dedupe_key="k"))):
        ledger.now += 1_000
        await ledger.work(1, None, emitted)
        fact = (await ledger.facts(kind="write" if reflex == "paid" else "signal"))[0]
        cause = f"fact:{fact['n']}"
        run = await ledger.fan(["s1"], reflex=reflex, principal="studio", cause=cause, fact=fact["n"], at=ledger.now)
    return f"task_{(await ledger.tasks(run=run))[0]['n']}"


async def test_every_effect_leads_to_its_first_cause(ledger: Ledger) -> None:
    task = await chain_of_three(ledger)
    links = await ledger.explain(task, "studio")
    assert [link.kind for link in links] == ["task", "run", "fact", "task", "run", "fact", "task", "run", "occurrence"]
    assert links[0].id == task
    assert (links[-1].id, links[-1].at) == ("charge:2026-03", moment(START))
    assert [link.detail["reflex"] for link in links if link.kind == "run"] == ["receipt", "paid", "charge"]
    assert links[2].detail["key"] == "k"
    assert {link.principal for link in links} == {"studio"}
    assert [link.at for link in links] == sorted((link.at for link in links), reverse=True)


async def test_a_chain_can_be_asked_for_from_any_of_its_rows(ledger: Ledger) -> None:
    task = await chain_of_three(ledger)
    whole = await ledger.explain(task)
    for place, link in enumerate(whole[:-1]):
        assert await ledger.explain(link.id) == whole[place:]


async def test_a_settled_run_is_a_cause_too(ledger: Ledger) -> None:
    run = await ledger.fan("a", reflex="charge", principal="studio")
    await ledger.work()
    (fact,) = await ledger.facts()
    assert [link.id for link in await ledger.explain(f"fact_{fact['n']}")] == [
        f"fact_{fact['n']}",
        f"reflex_run_{run}",
        f"charge:{run}",
    ]


async def test_a_person_is_named_in_what_they_fired(ledger: Ledger) -> None:
    body = b'{"at":"2026-01-01T00:00:00Z","by":"manager","kind":"manual","payload":null,"target":"charge"}'
    await ledger.write(Append(INTAKE, [fact_row(n=5, principal="=studio", kind="manual", body=body)]))
    (link,) = await ledger.explain("fact_5")
    assert (link.kind, link.detail["by"]) == ("fact", "manager")


async def test_nobody_is_led_into_somebody_elses_rows(ledger: Ledger) -> None:
    task = await chain_of_three(ledger)
    for stranger in (None, "other"):
        with pytest.raises(NotFound):
            await ledger.explain(task, stranger)
    fact = (await ledger.facts(kind="signal"))[0]["n"]
    await ledger.write(Cas(INTAKE, [((fact,), {}, {"principal": "=other"})]))
    for asked in ((), ("studio",), ("studio", "other")):
        links = await ledger.explain(task, *asked)
        assert [link.kind for link in links] == ["task", "run"]
        assert {link.principal for link in links} == {"studio"}


@pytest.mark.parametrize("id", ["task_99", "fact_99", "reflex_run_99", "run_1", "task_x", "", "task_-1"])
async def test_what_does_not_exist_is_not_found(ledger: Ledger, id: str) -> None:
    with pytest.raises(NotFound):
        await ledger.explain(id)


async def test_a_chain_that_a_sweep_cut_says_where(ledger: Ledger) -> None:
    task = await chain_of_three(ledger)
    (first,) = await ledger.rows(REFLEX_RUN, reflex="charge")
    (charged,) = await ledger.tasks(run=first["n"])
    await ledger.write(Remove(REFLEX_RUN, keys=[(first["n"],)]))
    links = await ledger.explain(task)
    assert links[-1].id == f"task_{charged['n']}"
    assert links[-1].detail["swept"] == f"reflex_run_{first['n']}"


async def test_a_swept_fact_still_leads_on(ledger: Ledger) -> None:
    task = await chain_of_three(ledger)
    whole = [link.id for link in await ledger.explain(task)]
    for fact in await ledger.facts():
        await ledger.write(Cas(INTAKE, [((fact["n"],), {}, {"state": "swept", "body": b"{}"})]))
    links = await ledger.explain(task)
    assert [link.id for link in links] == whole
    assert links[2].detail["state"] == "swept"
