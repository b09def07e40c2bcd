"""bench.wrk - the HTTP client of the rates: one thread of wrk, its script, its report.

For: requests that differ in their id, and reading what wrk prints.
Never: counts an answer that is no 2xx.
"""

from __future__ import annotations

import re
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench.measures import Sample

ACTORS = 64
_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}
_SCRIPT = """\
local headers = {{ {headers} }}
local n = 0
request = function()
  n = n + 1
  local who = n % {actors}
  return wrk.format("POST", ({path}), headers, ({body}))
end
"""


class Unread(Exception):
    """wrk said something else than expected, or the server answered something else than 2xx."""


def script(path: str, body: str, headers: Mapping[str, str] | None = None) -> Path:
    """A script in which `path` and `body` are expressions of Lua that may use `n` and `who`."""
    given = {"content-type": "application/json", **(headers or {})}
    lines = ", ".join(f'["{name}"] = "{value}"' for name, value in given.items())
    with tempfile.NamedTemporaryFile("w", suffix=".lua", delete=False) as file:
        file.write(_SCRIPT.format(headers=lines, actors=ACTORS, path=path, body=body))
    return Path(file.name)


def load(program: str, url: str, callers: int, seconds: float, lua: Path) -> Sample:
    """Drive `url` with so many connections. Raises: Unread."""
    for_s = max(1, round(seconds))
    command = [program, "-t1", f"-c{callers}", f"-d{for_s}s", "--latency", "-s", str(lua), url]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    return read(said.stdout + said.stderr)


def read(report: str) -> Sample:
    """A report of wrk as a sample. Raises: Unread."""
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", report)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", report)
    count = re.search(r"(\d+) requests in", report)
    half, most = (re.search(rf"(?m)^\s+{share}%\s+([\d.]+)(us|ms|s|m)", report) for share in (50, 99))
    if bad is not None or rate is None or count is None or half is None or most is None:
        raise Unread(report.strip()[-400:] or "wrk said nothing")
    return Sample(float(rate[1]), _ms(half), _ms(most), int(count[1]))


def _ms(found: re.Match[str]) -> float:
    return float(found[1]) * _MS[found[2]]


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port: int = made.getsockname()[1]
        return port


def listening(port: int, process: subprocess.Popen[bytes], within_s: float = 60.0) -> None:
    """Wait until somebody listens. Raises: Unread when the server ended before."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Unread(f"the server ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
        except OSError:
            time.sleep(0.005)
        else:
            return
    raise Unread("the server did not listen in time")
