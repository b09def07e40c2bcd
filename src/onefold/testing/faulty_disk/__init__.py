"""testing.faulty_disk - a disk for SQLite's files that remembers, fails, lies and loses its power, as a test says.

For: `SqliteWorld(folder, clock=..., disk=FaultyDisk())`; then `Platter`, for what a power cut at any place leaves.
Never: is used by the product; needs root.
Was wrong once: one run for each place of a cut. One tape holds them all.
"""

from __future__ import annotations

from onefold.testing.faulty_disk.disk import CHANGES, EVERYTHING, FaultyDisk
from onefold.testing.faulty_disk.tape import Platter, Tape

__all__ = ["CHANGES", "EVERYTHING", "FaultyDisk", "Platter", "Tape"]
