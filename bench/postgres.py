"""bench.postgres - a Postgres of our own on the disk that is measured, for the peer that needs one.

For: initdb, start, stop. With fsync, as it comes.
Never: touches a cluster that was there; runs the server as root (it refuses that: it runs as `postgres`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.places import Missing
from bench.wrk import free_port

DEBIAN = Path("/usr/lib/postgresql")
SETTINGS = "-c shared_buffers=512MB -c max_wal_size=4GB -c listen_addresses=127.0.0.1"


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The address of a running server whose data is below `folder`. Raises: Missing."""
    programs = _programs()
    data, port = folder / "data", free_port()
    if os.geteuid() == 0:
        _own(folder)
    _run(programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C")
    options = f"{SETTINGS} -p {port} -k {folder}"
    _run(programs / "pg_ctl", "-D", data, "-l", folder / "log", "-o", options, "-w", "start")
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        _run(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")


def _programs() -> Path:
    named = shutil.which("initdb")
    found = sorted(DEBIAN.glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    if named is None:
        raise Missing("Postgres is not installed, and Absurd needs it: install postgresql to measure it too.")
    return Path(named).resolve().parent


def _own(folder: Path) -> None:
    try:
        shutil.chown(folder, "postgres", "postgres")
    except LookupError:
        raise Missing("Postgres does not run as root, and there is no user `postgres` here.") from None


def _run(*command: object) -> None:
    words = [str(word) for word in command]
    if os.geteuid() == 0:
        words = ["runuser", "-u", "postgres", "--", *words]
    said = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, cwd="/")
    if said.returncode:
        raise Missing(f"Postgres could not be started: {said.stderr.strip()[-200:]}")
