"""bench.contenders.workerd - a durable object on workerd, its storage in SQLite on this disk, driven by wrk.

For: `post callers seconds` over 64 objects; `read` tells each counter.
Never: asks less than durability of it: its output gate holds each answer until the write is synced.
"""

from __future__ import annotations

import http.client
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.answering import answer
from bench.measures import Sample
from bench.wrk import ACTORS, free_port, listening, load, script

HERE = Path(__file__).parent / "durable_object"


def start(binary: str, folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """workerd on a free port with its store below `folder`."""
    port = free_port()
    store = folder / "store"
    store.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "counter.js", folder)
    config = (HERE / "config.capnp").read_text(encoding="utf-8")
    (folder / "config.capnp").write_text(config.replace("STORE", str(store)).replace("PORT", str(port)))
    process = subprocess.Popen(
        [binary, "serve", str(folder / "config.capnp"), "--experimental"], stdout=subprocess.DEVNULL
    )
    listening(port, process)
    return process, port


def main(program: str, binary: str, folder: Path) -> None:
    process, port = start(binary, folder)
    base = f"http://127.0.0.1:{port}"
    lua = script("'/c' .. who", "'1'")

    def post(callers: int, seconds: float) -> Sample:
        return load(program, base, callers, seconds, lua)

    def read(callers: int, seconds: float) -> dict[str, Any]:
        counts = []
        line = http.client.HTTPConnection("127.0.0.1", port)
        for who in range(ACTORS):
            line.request("GET", f"/c{who}")
            counts.append(int(line.getresponse().read()))
        line.close()
        return {"counts": counts}

    try:
        answer({"post": post, "read": read, "pid": lambda callers, seconds: {"pid": process.pid}})
    finally:
        process.terminate()
        process.wait()
        lua.unlink()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
