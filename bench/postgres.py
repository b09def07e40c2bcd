"""bench.postgres - a Postgres of our own on the disk that is measured, for the peers that need one.

For: initdb, start, stop. With fsync, as it comes.
Never: touches a cluster that was there; runs the server as root (it refuses that: it runs as `postgres`).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.places import Missing
from bench.wrk import free_port, listening

DEBIAN = Path("/usr/lib/postgresql")
SETTINGS = ("-c", "shared_buffers=512MB", "-c", "max_wal_size=4GB", "-c", "listen_addresses=127.0.0.1")


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """The address of a running server whose data is below `folder`. Raises: Missing.

    It is a child of this process, so that whoever ends this one's group ends it too.
    """
    programs, user = _programs(), _user(folder)
    data, port = str(folder / "data"), free_port()
    made = [str(programs / "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"]
    said = subprocess.run(made, capture_output=True, text=True, check=False, cwd="/", user=user, group=user)
    if said.returncode:
        raise Missing(f"Postgres could not be set up: {said.stderr.strip()[-200:]}")
    command = [str(programs / "postgres"), "-D", data, "-p", str(port), "-k", str(folder), *SETTINGS]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(command, cwd="/", user=user, group=user, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        listening(port, server)
        _answering(programs, port)
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait()


def _answering(programs: Path, port: int) -> None:
    """It listens before it lets anybody in. Raises: Missing."""
    asked = [str(programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    for _ in range(600):
        if subprocess.run(asked, check=False).returncode == 0:
            return
        time.sleep(0.05)
    raise Missing("Postgres was started and lets nobody in; its log says why.")


def _programs() -> Path:
    named = shutil.which("initdb")
    found = sorted(DEBIAN.glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    if named is None:
        raise Missing("Postgres is not installed, and some peers need it: install postgresql to measure them too.")
    return Path(named).resolve().parent


def _user(folder: Path) -> str | None:
    """Whom the server runs as; None: as we do."""
    if os.geteuid() != 0:
        return None
    try:
        shutil.chown(folder, "postgres", "postgres")
    except LookupError:
        raise Missing("Postgres does not run as root, and there is no user `postgres` here.") from None
    return "postgres"
