"""A filesystem is shut down under the store, as by a power cut, and mounted again: nothing acknowledged is gone.

The control is the same with a disk that lies about syncing, and must lose what was acknowledged.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import apsw
import pytest

from onefold.terms.errors import OnefoldError
from tests.store.life import DEEP, Known, holds
from tests.store.namespace import in_a_namespace

CUTS = 40 if DEEP else 8
SCRIPT = (
    'mkfs.ext4 -q "$2"; mount -o loop "$2" "$1"; cd "$4"; "$0" -m tests.store.power "$1/store" "$1" "$5" $6;'
    ' umount "$1"; mount -o loop "$2" "$1"; if [ -d "$1/store" ]; then cp -r "$1/store" "$3"; fi; umount "$1"'
)


def cut(folder: Path, place: int, *more: str) -> tuple[Path, Known]:
    """One life with the power cut at a place. What is left of it, and what was known in the end."""
    mount, image, left = folder / "mount", folder / "image", folder / f"left-{place}"
    mount.mkdir(exist_ok=True)
    image.write_bytes(b"")
    os.truncate(image, 64 << 20)
    lines = in_a_namespace(SCRIPT, mount, image, left, os.getcwd(), place, *more or [""])
    lines.remove("off 0")
    known = Known()
    for line in lines:
        what, number = line.split()
        known.hear((what, {int(number)} if what == "seen" else int(number)))
    left.mkdir(exist_ok=True)
    return left, known


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onefold.store.sqlite.file.boot", lambda: b"started once more")


@pytest.mark.needs_root
@pytest.mark.usefixtures("machine")
@pytest.mark.timeout(600)
async def test_a_power_cut_takes_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(7)
    sure = 0
    for place in sorted(chance.sample(range(1, 1_500), CUTS)):
        left, known = cut(tmp_path, place)
        await holds(
            left, known
        )  # what was told after the cut as well: it had been synced, or should not have been told
        sure += len(known.sure)
    assert sure > 100


@pytest.mark.needs_root
@pytest.mark.usefixtures("machine")
async def test_a_power_cut_on_a_disk_that_lies_takes_what_was_acknowledged(tmp_path: Path) -> None:
    left, known = cut(tmp_path, 400, "lying")
    assert len(known.sure) > 20
    with pytest.raises((AssertionError, OnefoldError, apsw.Error)):
        await holds(left, known)
