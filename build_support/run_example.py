"""run_example - what `make run` does: the payment provider and `onefold dev` on the refund tool, side by side.

For: starting both, passing the provider's address as PAY_URL, stopping both when either ends or a person says so.
Never: retries, restarts or reads what the two say, beyond the one address.
Was wrong once: leaving both in the terminal's process group. Ctrl-C then reached the provider first, and the
example's last refund met a closed door.
"""

from __future__ import annotations

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
PROVIDER = (
    "examples/provider.py",
    "--ledger",
    "examples/provider-refunds.jsonl",
)  # beside the store: both are there tomorrow
ADDRESS = re.compile(r"https?://[\w.:\[\]-]+")
ADDRESS_WITHIN_S = 15.0
STOP_WITHIN_S = 20.0  # why: longer than the grace in which serve drains what it accepted


def start(*command: str, env: dict[str, str], stdout: int | None = None) -> subprocess.Popen[str]:
    """Start a child in a session of its own, so that only this process decides when it stops."""
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=stdout, text=True, start_new_session=True)


def address_of(provider: subprocess.Popen[str]) -> str | None:
    """The first address the provider prints, or None when it ends or says none in time. Its lines are passed on."""
    assert provider.stdout is not None
    found: list[str] = []
    told = threading.Event()

    def read(lines: TextIO) -> None:
        for line in lines:
            print(line, end="", flush=True)
            if not found and (match := ADDRESS.search(line)):
                found.append(match.group())
                told.set()
        told.set()

    threading.Thread(target=read, args=(provider.stdout,), daemon=True).start()
    told.wait(ADDRESS_WITHIN_S)
    return found[0] if found else None


def stop(children: list[subprocess.Popen[str]]) -> None:
    """Ask each child to end, the newest first, and end those that do not. No signal interrupts this."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for child in reversed(children):
        if child.poll() is None:
            child.terminate()
        try:
            child.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def asked_to_stop(*_: object) -> None:
    raise SystemExit(0)


def main() -> int:
    """Run both until one ends (its exit code is ours) or a signal comes (0)."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, asked_to_stop)
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    ended: queue.SimpleQueue[int] = queue.SimpleQueue()
    children: list[subprocess.Popen[str]] = []
    try:
        provider = start(sys.executable, *PROVIDER, env=env, stdout=subprocess.PIPE)
        children.append(provider)
        if (address := address_of(provider)) is None:
            print(
                "The provider (examples/provider.py) did not say where it listens. Is this running already? Nothing else was started."
            )
            return 1
        command = str(Path(sys.executable).with_name("onefold"))
        children.append(start(command, "dev", "examples/refund.py", *sys.argv[1:], env={**env, "PAY_URL": address}))
        for child in children:
            threading.Thread(target=lambda child=child: ended.put(child.wait()), daemon=True).start()
        return ended.get()
    finally:
        stop(children)


if __name__ == "__main__":
    raise SystemExit(main())
