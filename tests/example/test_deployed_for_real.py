"""`onefold deploy` from end to end: a served app, the command over a socket, the real box, a kill in between."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.host.deployable import source

PATIENCE_S = 60.0
ONEFOLD = "from onefold.cli import main; main()"
APP = '''
import onefold
from onefold import Run, actuator

@actuator
async def trusted(run: Run) -> str:
    """The app's own."""
    return "own"

app = onefold.App(trusted)
'''
TOML = """
keys = [
    { secret_env = "DEPLOY_KEY", may = ["deploy"], principal = "anna" },
    { secret_env = "CALL_KEY", may = ["call"], principal = "shop" },
    { secret_env = "OPERATE_KEY", may = ["operate"] },
]
people.ann = { notify = [] }
"""
KEYS = {name: f"{name.lower()}-0123456789" for name in ("DEPLOY_KEY", "CALL_KEY", "OPERATE_KEY")}
NOSY = '''
from onefold import Run, actuator

def seen() -> str:
    import os
    found = [name for name in ("/etc/passwd", "/proc/self/environ", STORE) if os.path.exists(name)]
    return f"{found} {sorted(name for name in os.environ if 'KEY' in name)}"

@actuator
async def nosy(run: Run) -> str:
    """Looks around."""
    return await run.step(seen)()
'''


class Served:
    """The app, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.url = f"http://{self.address}"
        self.environ = {**os.environ, **KEYS}
        self.process: subprocess.Popen[bytes] | None = None

    def opens(self) -> None:
        line = [sys.executable, "-c", ONEFOLD, "serve", "app.py", "--listen", self.address, "--store", "data"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(line, cwd=self.folder, env=self.environ, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        with self.process.stdout as said:
            assert any(self.url.encode() in one for one in said), (self.folder / "log").read_text()

    def ends(self, by: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(by)
        return self.process.wait(PATIENCE_S)

    def deploy(self, *arguments: str, key: str = "DEPLOY_KEY") -> tuple[int, str, str]:
        """The command, as it is typed."""
        line = [sys.executable, "-c", ONEFOLD, "deploy", *arguments, "--to", self.url]
        environ = {**os.environ, "ONEFOLD_KEY": KEYS[key]}
        ran = subprocess.run(
            line, cwd=self.folder, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        return ran.returncode, ran.stdout, ran.stderr

    def asked(self, method: str, path: str, body: Any = None, *, key: str = "CALL_KEY") -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {KEYS[key]}", "prefer": "wait=20"}
        told = httpx2.request(
            method, f"{self.url}{path}", json=body, headers=headers, timeout=PATIENCE_S, trust_env=False
        )
        return told.status_code, told.json()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "onefold.toml").write_text(TOML)
    one = Served(tmp_path)
    one.opens()
    yield one
    if one.process is not None and one.process.poll() is None:
        assert one.ends(signal.SIGTERM) == 0, (tmp_path / "log").read_text()


def test_a_file_is_deployed_called_redeployed_killed_and_rolled_back(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "notes.py"
    file.write_text(source())
    ended, out, err = served.deploy("notes.py")
    assert (ended, out.splitlines()[0], err) == (0, f"Deployed version 1 of notes to {served.url}.", "")
    assert served.asked("POST", "/tools/keep", {"said": "x"})[1]["result"] == "first 1"
    status, waiting = served.asked("POST", "/tools/keep", {"said": "ask"})
    assert (status, waiting["waits"][0]["name"]) == (202, "manager")

    file.write_text(source("other"))
    ended, out, _ = served.deploy("notes.py", "--json")
    assert (ended, json.loads(out)["version"], json.loads(out)["by"]) == (0, 2, "anna")
    assert served.ends(signal.SIGKILL) == -signal.SIGKILL
    served.opens()
    served.asked("POST", f"/runs/{waiting['run_id']}/approvals/manager", {"approve": True}, key="OPERATE_KEY")
    assert served.asked("GET", f"/runs/{waiting['run_id']}?wait=20")[1]["result"] == "other 2"

    assert served.deploy("notes.py", "--rollback")[:2] == (
        0,
        f"Deployed version 3 of notes (version 1 again) to {served.url}.\n  {served.url}/tools/keep\n",
    )
    assert served.asked("POST", "/tools/keep", {"said": "y"})[1]["result"] == "first 3"
    assert served.asked("POST", "/tools/trusted", {})[1]["result"] == "own"


def test_it_is_refused_as_the_check_says_and_without_the_right(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "notes.py"
    file.write_text(source().replace("    if note", "    import time\n    time.time()\n    if note"))
    ended, out, err = served.deploy("notes.py")
    assert (ended, out, err.splitlines()[0]) == (2, "", "Nothing was loaded.")
    assert ": clock: " in err.splitlines()[1]
    file.write_text("raise RuntimeError('no')\n")
    assert served.deploy("notes.py")[0] == 2
    file.write_text(source())
    assert served.deploy("notes.py", key="CALL_KEY")[0] == 3
    assert served.asked("POST", "/tools/keep", {"said": "x"})[0] == 404


def test_what_was_deployed_sees_nothing_of_its_host(served: Served, tmp_path: Path) -> None:
    (tmp_path / "nosy.py").write_text(NOSY.replace("STORE", repr(str(tmp_path / "data"))))
    ended, _, err = served.deploy("nosy.py")
    assert (ended, err) == (0, "")
    assert served.asked("POST", "/tools/nosy", {})[1]["result"] == "[] []"
