"""A store's life on a real filesystem that is shut down under it, as by a power cut: `python -m tests.store.power`.

    python -m tests.store.power FOLDER MOUNT PLACE [lying]

The filesystem at MOUNT stops at the PLACE-th change that is made to a file of the store. What was tried, told and
seen is printed, a line each, as it happens.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import sys
from pathlib import Path
from typing import Any

from onefold.store.contract import Done
from onefold.store.sqlite import chain, wal
from onefold.terms.errors import StoreUnavailable
from onefold.testing.faulty_disk import CHANGES, FaultyDisk
from tests.store.life import LATER, LATER_NOTES, SCHEMA, Life

SHUT_DOWN, AND_LOSE_THE_LOG = 0x8004587D, 2  # ext4's own request, and its flag for "as if the power went"


class Cutting(FaultyDisk):
    """The real disk, with the power cut at one place."""

    def __init__(self, mount: str, place: int) -> None:
        super().__init__()
        self._mount = mount
        self._left = place
        self.off = False

    def judge(self, kind: Any, path: str) -> Any:
        self._left -= kind in CHANGES
        if self._left == 0 and not self.off:
            self.off = True
            handle = os.open(self._mount, os.O_RDONLY)
            fcntl.ioctl(handle, SHUT_DOWN, struct.pack("I", AND_LOSE_THE_LOG))
            os.close(handle)
            say("off", 0)
        return super().judge(kind, path)

    def note(self, said: Any) -> None:
        what, which = said
        for number in sorted(which) if what == "seen" else [which]:
            say(what, number)


def say(what: str, number: int) -> None:
    os.write(1, f"{what} {number}\n".encode())


async def live(folder: Path, disk: Cutting) -> None:
    life = Life(folder, disk)
    try:
        while not disk.off:
            await life.opens(SCHEMA if life.number < 30 else LATER)
            await life.migrates()
            for width in (1, 3, 1, 7, 2):
                if not all(isinstance(outcome, Done) for outcome in await life.writes(width)):
                    return
            if not isinstance(await life.steps(), Done):
                return
            life.checks_in()
            await life.writes(5)
            await life.looks()
            if life.number > 30:
                await life.migrates(LATER_NOTES)
            if life.number % 2:
                await life.closes()
            else:
                life.dies()
    except StoreUnavailable:
        assert disk.off
    finally:
        life.dies()


if __name__ == "__main__":
    where, mount, place, *lying = sys.argv[1:]
    wal.FROM, wal.AHEAD, wal.LONGEST, chain.GENERATION, chain.LUMP = 3, 60_000, 60, 8, 2
    one = Cutting(mount, int(place))
    one.lies = bool(lying)
    asyncio.run(live(Path(where), one))
