"""Everybody asks and decides before the transaction begins, and it begins only for those who write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from onefold.store.batch import Unusable, commit
from onefold.store.contract import Answer, Body, Done, Outcome, Put, Query, Refused, Unknown, Verb
from onefold.store.memory import Held, MemoryEngine
from onefold.terms.errors import Broken, StoreUnavailable
from onefold.testing.store_suite.ground import Member, asking, writing
from onefold.testing.store_suite.tables import SCHEMA, TASK, task

DEAD = Unusable(StoreUnavailable("main", "the test says so"))


class Noted(MemoryEngine):
    """Notes what is called, and raises where it is told to."""

    def __init__(self, log: list[tuple[str, str]], fails_at: str, fault: Exception) -> None:
        held = Held("main")
        held.migrate([SCHEMA])
        super().__init__(held, lambda: 0, None)
        self.log = log
        self.fails_at = fails_at
        self.fault = fault

    def ready(self) -> None:
        self._note("ready")
        super().ready()

    def begin(self) -> None:
        self._note("begin")
        super().begin()

    def commit(self, beside: Callable[[], object] | None = None) -> None:
        self._note("commit")
        super().commit(beside)

    def run(self, verb: Verb) -> Answer:
        self._note(type(verb).__name__.lower())
        return super().run(verb)

    def _note(self, what: str) -> None:
        self.log.append((what, ""))
        if what == self.fails_at:
            raise self.fault


def committed(
    *given: Body[Any] | None, fails_at: str = "", fault: Exception = DEAD
) -> tuple[list[str], list[Outcome[Any]]]:
    """What happened, in order, and what became of each party; every party asks one question."""

    async def run() -> tuple[list[str], list[Outcome[Any]]]:
        log: list[tuple[str, str]] = []
        parties = [Member(str(i), body, asks=(Query(TASK),), log=log) for i, body in enumerate(given)]
        told = {id(party): outcome for party, outcome in commit(Noted(log, fails_at, fault), parties)}
        return [f"{what} {who}".rstrip() for what, who in log], [told[id(party)] for party in parties]

    return asyncio.run(run())


PUTS = writing(Put(TASK, [task(1)]))
ASKED = ["ready", "ask 0", "query", "ask 1", "query", "body 0", "body 1"]


def test_the_transaction_begins_when_everybody_has_decided() -> None:
    happened, outcomes = committed(PUTS, asking(Query(TASK)))
    assert happened == [*ASKED, "begin", "run 0", "put", "run 1", "query", "commit"]
    assert [type(outcome) for outcome in outcomes] == [Done, Done]


def test_no_transaction_begins_for_nobody() -> None:
    happened, outcomes = committed(None, None)
    assert happened == ASKED
    assert outcomes == [Done(None), Done(None)]


def test_a_store_that_cannot_be_asked_refuses_everybody_unasked() -> None:
    happened, outcomes = committed(PUTS, None, fails_at="ready")
    assert happened == ["ready"]
    assert all(isinstance(o, Refused) and isinstance(o.error, StoreUnavailable) for o in outcomes)


def test_a_transaction_that_cannot_begin_refuses_those_who_write() -> None:
    happened, outcomes = committed(PUTS, None, fails_at="begin")
    assert happened == [*ASKED, "begin"]
    assert [type(outcome) for outcome in outcomes] == [Refused, Done]


@pytest.mark.parametrize("point,outcome", [("ready", Refused), ("begin", Refused), ("commit", Unknown)])
def test_a_fault_of_the_engine_itself_is_told_to_everybody(point: str, outcome: type[Refused | Unknown]) -> None:
    """Nobody is left waiting, and nobody is told more than is known."""
    fault = ZeroDivisionError("by nought")
    _, outcomes = committed(PUTS, asking(Query(TASK)), fails_at=point, fault=fault)
    for told in outcomes:
        assert isinstance(told, outcome)
        assert isinstance(told.error, Broken)
        assert told.error.__cause__ is fault
