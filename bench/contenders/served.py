"""bench.contenders.served - Onefold behind HTTP, as `onefold serve` runs it, driven by wrk.

For: `post` (events of the counter), `mcp` (calls of the tool `add`) and `turn` (turns of a cell), callers, seconds;
`read` tells the count of each cell.
Never: serves otherwise than a person would: the command, uvicorn, its own settings.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.answering import answer
from bench.child import surroundings
from bench.contenders.counting import NOTE
from bench.measures import Sample
from bench.wrk import ACTORS, free_port, listening, load, script

ROOT = Path(__file__).resolve().parents[2]
TARGETS = {
    "post": "bench/contenders/counting.py",
    "mcp": "bench/contenders/adding.py",
    "turn": "bench/contenders/tallying.py",
}
PATHS = {"post": "/modules/counter/events", "mcp": "/mcp"}
TURN = '{"method":"add","arguments":{"by":1}}'
VERSION = "2026-07-28"


class Server:
    """`onefold serve` on a free port."""

    def __init__(self, target: str, store: Path) -> None:
        self.port = free_port()
        command = str(Path(sys.executable).with_name("onefold"))
        serve = ["serve", target, "--listen", f"127.0.0.1:{self.port}", "--store", str(store)]
        self.process = subprocess.Popen(
            [sys.executable, command, *serve], cwd=ROOT, env=surroundings(), stdout=subprocess.DEVNULL
        )
        listening(self.port, self.process)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        self.process.kill()
        self.process.wait()


def mcp_body(number: str) -> tuple[str, dict[str, str]]:
    """A `tools/call` of the newest revision, as an expression of Lua, and its headers."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": meta}
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": VERSION,
        "mcp-method": "tools/call",
        "mcp-name": "add",
    }
    before, after = text.split('"b": 2')
    return f"""'{before}"b": ' .. {number} .. '{after}'""", headers


def call_once(port: int) -> dict[str, Any]:
    """One call of the tool, as JSON."""
    body, headers = mcp_body("n")
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    sent = body[1:-1].replace("' .. n .. '", "2")
    line.request("POST", PATHS["mcp"], sent, {"content-type": "application/json", **headers})
    told: dict[str, Any] = json.loads(line.getresponse().read())
    line.close()
    return told


def requests(workload: str) -> Path:
    """The script of a workload: each event with an id of its own, each call with another argument."""
    if workload == "mcp":
        body, headers = mcp_body("n")
        return script(f"'{PATHS[workload]}'", body, headers)
    if workload == "turn":
        return script("'/cells/Tally/c' .. who .. '/turns'", f"'{TURN}'")
    tag = f"{os.getpid()}-{time.time_ns():x}"
    event = """'{"type":"Add","id":"%s-' .. n .. '","counter":"c' .. who .. '","by":3,"order":"A-' .. n .. '","note":"%s"}'"""
    return script(f"'{PATHS[workload]}'", event % (tag, NOTE))


def read(server: Server) -> dict[str, Any]:
    """The count of each cell."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    counts = []
    for who in range(ACTORS):
        line.request("GET", f"/cells/Tally/c{who}")
        told = json.loads(line.getresponse().read())
        counts.append(int(told["state"]["count"]))
    line.close()
    return {"counts": counts}


def drive(program: str, workload: str, server: Server, callers: int, seconds: float) -> Sample:
    lua = requests(workload)
    try:
        return load(program, f"http://127.0.0.1:{server.port}", callers, seconds, lua)
    finally:
        lua.unlink()


def main(program: str, workload: str, folder: Path) -> None:
    server = Server(TARGETS[workload], folder / "store")
    try:
        if workload == "mcp":
            call_once(server.port)  # the package is loaded by the first call
        answer(
            {
                workload: lambda callers, seconds: drive(program, workload, server, callers, seconds),
                "read": lambda callers, seconds: read(server),
                "pid": lambda callers, seconds: {"pid": server.process.pid},
            }
        )
    finally:
        server.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
