"""Samples and profiles are arithmetic, so they can be held to it."""

from __future__ import annotations

import asyncio

import pytest

from bench.measures import by_tasks, by_threads, percentile, sample
from bench.profiles import place, top


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = list(range(1, 101))
    assert percentile(values, 50) == 51
    assert percentile(values, 99) == 100
    assert percentile(values, 100) == 100
    assert percentile([], 99) == 0


def test_a_sample_counts_and_divides() -> None:
    taken = sample([0.001, 0.002, 0.003], 0.5)
    assert (taken.rate, taken.count, taken.p50) == (6.0, 3, 2.0)


async def test_every_caller_calls_until_the_end() -> None:
    called: set[int] = set()

    async def call(who: int, number: int) -> None:
        called.add(who)
        await asyncio.sleep(0)

    taken = await by_tasks(call, 4, 0.01)
    assert called == {0, 1, 2, 3}
    assert taken.count >= 4


def test_threads_call_as_tasks_do() -> None:
    taken = by_threads(lambda who, number: None, 3, 0.01)
    assert taken.count >= 3


def test_the_line_on_top_gets_the_sample() -> None:
    stacks = [
        "main (run.py:1);fold (/a/b/onefold/kernel/fold.py:9) 30",
        "main (run.py:1);commit (/a/b/onefold/store/engine.py:3) 60",
        "select (/usr/lib/python3.11/selectors.py:468) 500",
    ]
    assert top(stacks, 2.0) == [
        " 66.7%    120.0 us  store/engine.py:3 commit",
        " 33.3%     60.0 us  kernel/fold.py:9 fold",
    ]


@pytest.mark.parametrize(
    "frame,shown",
    [
        ("run (/x/lib/python3.11/site-packages/mcp/server.py:4)", "mcp/server.py:4 run"),
        ("spin (/x/y/bench/measures.py:7)", "bench/measures.py:7 spin"),
        ("native", "native"),
    ],
)
def test_a_place_names_no_folder_of_the_machine(frame: str, shown: str) -> None:
    assert place(frame) == shown
