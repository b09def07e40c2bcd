"""bench.contenders.restate_runs - Restate's server with its Python SDK: runs of ten steps, and a counter, driven by wrk.

For: `ten|count callers seconds` at its ingress, the counter a virtual object for each of 64 keys; `read` tells each
count. Runs in the peers' environment.
Never: weakens its log; four partitions and not 24, to suit few cores.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.answering import answer
from bench.measures import Sample
from bench.wrk import ACTORS, Unread, free_port, listening, load, script

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """\
disable-telemetry = true
default-num-partitions = 4
base-dir = "{folder}/data"
bind-address = "127.0.0.1:{node}"
node-name = "bench"
[ingress]
bind-address = "127.0.0.1:{ingress}"
[admin]
bind-address = "127.0.0.1:{admin}"
"""
SERVED = "bench.contenders.restate_service:app"


def post(port: int, path: str, value: object) -> int:
    return said(port, path, value)[0]


def said(port: int, path: str, value: object) -> tuple[int, bytes]:
    """The status and the body of one call."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    line.request("POST", path, json.dumps(value), {"content-type": "application/json"})
    answered = line.getresponse()
    body = answered.read()
    line.close()
    return answered.status, body


def until_ok(port: int, path: str, value: object, within_s: float = 60.0) -> None:
    """Ask until it is answered with 2xx. Raises: Unread."""
    end = time.monotonic() + within_s
    status: object = "nothing"
    while time.monotonic() < end:
        try:
            status = post(port, path, value)
        except OSError as fault:
            status = fault
        if isinstance(status, int) and status < 300:
            return
        time.sleep(0.1)
    raise Unread(f"{path} answered {status}")


def main(program: str, server: str, folder: Path) -> None:
    ports = {name: free_port() for name in ("ingress", "admin", "node", "service")}
    written = folder / "config.toml"
    written.write_text(CONFIG.format(folder=folder, **ports), encoding="utf-8")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    serving = subprocess.Popen(
        [server, "-c", str(written), "--no-logo"],
        env={**os.environ, "RESTATE_LISTEN_MODE": "tcp"},
        **quiet,  # type: ignore[call-overload]
    )
    hypercorn = str(Path(sys.executable).with_name("hypercorn"))
    bound = f"127.0.0.1:{ports['service']}"
    service = subprocess.Popen([hypercorn, SERVED, "-b", bound, "-k", "uvloop"], cwd=ROOT, **quiet)  # type: ignore[call-overload]
    scripts = {"ten": script("'/Numbers/ten'", "'1'"), "count": script("'/Tally/c' .. who .. '/add'", "'1'")}

    def driven(workload: str) -> Callable[[int, float], Sample]:
        url = f"http://127.0.0.1:{ports['ingress']}"
        return lambda callers, seconds: load(program, url, callers, seconds, scripts[workload])

    def read(callers: int, seconds: float) -> dict[str, Any]:
        told = [said(ports["ingress"], f"/Tally/c{who}/add", 0)[1] for who in range(ACTORS)]
        return {"counts": [int(each) for each in told]}

    try:
        listening(ports["service"], service)
        until_ok(ports["admin"], "/deployments", {"uri": f"http://127.0.0.1:{ports['service']}"})
        until_ok(ports["ingress"], "/Numbers/ten", 1)
        answer({**{name: driven(name) for name in scripts}, "read": read})
    finally:
        for process in (service, serving):
            process.terminate()
            process.wait()
        for lua in scripts.values():
            lua.unlink()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
