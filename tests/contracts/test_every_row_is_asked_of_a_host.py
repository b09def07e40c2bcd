"""Each row of what the kernel must do, and each invariant, that a host can be asked about is asked by a check of its suite.

Left out: what is no host's to answer. That one line takes the kernel away again is a build's, that two hosts run one
suite is the suite's own, and that three tables were enough was decided otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from onefold.testing import HOST_SUITE

# By the beginning of the check's name.
ROWS: Mapping[str, tuple[str, ...]] = {
    "AW1": ("a repeat gets the first reply", "all parts of a fold are there after a crash", "an actor that made room"),
    "AW2": ("a fold that fails leaves every row as it was", "wherever the process ends, an event is wholly there"),
    "AW3": ("an alarm is a fold like any other", "a read folds nothing and writes nothing"),
    "AW4": ("a repeat gets the first reply", "a repeat of an event owes nothing more"),
    "AW5": ("now is an argument", "a history replays"),
    "AW6": ("no answer leaves before its commit", "a decline counts", "a decline is not told from a fold"),
    "AW7": ("who is meant and what it is called are read at the door", "an event as JSON is the same event"),
    "AW8": (
        "each retry sends the bytes",
        "a row goes only with its confirmation",
        "a key the module named is owed once",
    ),
    "AW9": ("what is owed leaves after its fold", "a fold that is not committed sends nothing"),
    "AW10": ("the key that leaves is one actor's only", "a port that can neither dedupe nor be asked"),
    "AW11": (
        "a row goes only with its confirmation",
        "a send that fails each time is parked",
        "a person drops what is",
    ),
    "AW12": (
        "the first answer of an owed key counts",
        "an answer may owe the next thing",
        "a confirmation, its answer",
    ),
    "AW13": (
        "after any folds, sends, rings and crashes",
        "a fold writes the row only to tighten it",
        "what an actor owes",
    ),
    "AW14": ("state rebuilt from the latest snapshot", "new code reads the rows of older code"),
    "AW15": ("state rebuilt from the latest snapshot", "a fact, once written, is never changed"),
    "AW16": ("a snapshot frees no id", "a prune takes facts behind the latest snapshot"),
    "AW17": ("a blob is named by its content", "what is long lies beside a row"),
    "AW18": ("a fact, a reply and an owed body over the ceiling",),
    "AW19": ("the alarm is armed in the commit of the fold",),
    "AW21": ("an event is folded once", "the alarm verb folds what is due", "a name that no store could hold"),
    "AW22": ("a host serves the modules it was given",),
    "AW24": ("a fork begins with a prefix",),
    "AW38": ("after any folds, sends, rings and crashes", "an actor that is not in memory wakes", "when faults stop"),
}
INVARIANTS: Mapping[int, tuple[str, ...]] = {
    1: ("a fold that fails leaves every row as it was", "all parts of a fold are there after a crash"),
    2: ("what is owed leaves after its fold", "a history replays"),
    3: ("a repeat in flight waits for the first", "the same id with other content is a conflict"),
    4: ("each retry sends the bytes",),
    5: ("after any folds, sends, rings and crashes", "a wake that was taken back", "a wake that fails, or changes"),
    6: ("state rebuilt from the latest snapshot", "an actor with a fact this code does not know"),
    7: ("a wake is folded at its instant",),
    8: ("a send that fails each time is parked", "a person retries what is parked"),
    9: ("an event from outside whose id is an owed key", "what is owed leaves after its fold"),
    10: ("a fact, a reply and an owed body over the ceiling", "what is long lies beside a row"),
}
ELSEWHERE = {"AW20", "AW23"}


@pytest.mark.parametrize("names", [*ROWS.values(), *INVARIANTS.values()], ids=[*ROWS, *map(str, INVARIANTS)])
def test_it_is_asked_by_name(names: tuple[str, ...]) -> None:
    for name in names:
        assert len([check.name for check in HOST_SUITE if check.name.startswith(name)]) == 1, name


def test_no_row_and_no_invariant_is_left_out() -> None:
    wanted = {f"AW{n}" for n in (*range(1, 23), 24, 38)} | {"AW23"}
    assert set(ROWS) | ELSEWHERE == wanted
    assert sorted(INVARIANTS) == list(range(1, 11))
