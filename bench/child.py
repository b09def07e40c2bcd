"""bench.child - one contender as a process: started, asked, stood still, ended.

For: the asking side of the pipe, and SIGSTOP for whoever is not measured.
Never: ends a process that it did not start.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.places import ROOT

READY_S = 120.0
WORDS = 300  # of the last line of a log
SLACK_S = 90.0  # beyond the seconds asked for: a queue may still drain


def surroundings() -> dict[str, str]:
    """The environment of every process of the run: this package can be imported, also by the peers' Python.

    Bytecode is kept, as an installed package has it: compiling everything at each start is nobody's start.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    inherited = kept.get("PYTHONPATH")
    return {**kept, "PYTHONPATH": f"{ROOT}{os.pathsep}{inherited}" if inherited else str(ROOT)}


class Failed(Exception):
    """A contender ended, or said that it could not."""


class Child:
    """A contender in a session of its own, so that whatever it starts stands still with it."""

    def __init__(self, name: str, command: Sequence[str], log: Path, *, wait: bool = True) -> None:
        self.name = name
        self._log = log.open("ab")
        self._began = self._log.tell()
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=surroundings(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        self._rest = b""
        if wait:
            try:
                self.hear(READY_S)
            except Failed:
                self.kill()
                raise

    def tell(self, workload: str, callers: int, seconds: float) -> None:
        """Ask without waiting."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{workload} {callers} {seconds}\n".encode())
        self.process.stdin.flush()

    def ask(self, workload: str, callers: int, seconds: float) -> dict[str, Any]:
        """One turn. Raises: Failed."""
        self.tell(workload, callers, seconds)
        told = self.hear(seconds + SLACK_S)
        if "failed" in told:
            raise Failed(f"{self.name} {workload}: {told['failed']}")
        return told

    def hear(self, within_s: float) -> dict[str, Any]:
        """The next line. Raises: Failed when none comes in time, or the process ended."""
        assert self.process.stdout is not None
        end = time.monotonic() + within_s
        while b"\n" not in self._rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Failed(f"{self.name} said nothing for {within_s:.0f} s")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                raise Failed(f"{self.name} ended: {self._last_words()}")
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        return told

    def _last_words(self) -> str:
        """The last line that it wrote to its log."""
        with open(self._log.name, "rb") as log:
            log.seek(self._began)
            said = log.read().decode(errors="replace").strip().splitlines()
        return said[-1][-WORDS:] if said else "it said nothing"

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def stand(self) -> None:
        self.signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """As a power cut would for the process: nothing is flushed, nobody is told."""
        self.signal(signal.SIGKILL)
        self.process.wait()
        self._close()

    def close(self) -> None:
        """Close the pipe, which ends a contender cleanly; end it by force when it does not."""
        self.go_on()
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(15)
        self.signal(signal.SIGKILL)  # whatever it started and left behind
        self.process.wait()
        self._close()

    def _close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self._log):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
