"""A process that is killed in the middle of a hand-over of many letters: each of them is a turn once, in order."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
from pathlib import Path

import pytest

from tests.cell.mail_child import SENDERS
from tests.contracts.backends import store_of

LETTERS = 150
LIVES = 7


async def child(store: str, *given: str) -> tuple[int, str]:
    """One life, how it ended, and what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.cell.mail_child", store, *given, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, told.decode()


async def emptied(store: str, seed: int, twin: str = "") -> tuple[list[str], int]:
    """Post, kill, and kill again; then let it end. The names in the room, and how many lives were killed."""
    chance = random.Random(seed)
    assert (await child(store, "fill", str(LETTERS)))[0] == 0
    killed = 0
    for _ in range(LIVES):
        ended, _ = await child(store, chance.choice(("before", "flight", "after")), str(chance.randint(1, 2)), twin)
        killed += ended == -signal.SIGKILL
    ended, told = await child(store, "rest", "0", twin)
    assert ended == 0
    return json.loads(told), killed


def of(names: list[str], who: str) -> list[str]:
    return [name for name in names if name.startswith(who)]


POSTED = {who: [f"{who}-{n}" for n in range(LETTERS)] for who in SENDERS}


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEFOLD_SECRET", "known to every test, and of no use")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_letters_count_once_and_in_order_when_their_process_is_killed_in_a_hand_over(
    kind: str, tmp_path: Path
) -> None:
    names, killed = await emptied(store_of(kind, tmp_path), seed=1)
    assert {who: of(names, who) for who in SENDERS} == POSTED
    assert killed > LIVES // 2


async def test_a_drain_that_takes_letters_away_before_their_turn_loses_some_to_a_kill(tmp_path: Path) -> None:
    names, killed = await emptied(str(tmp_path), seed=1, twin="early")
    assert killed
    assert {who: of(names, who) for who in SENDERS} != POSTED
