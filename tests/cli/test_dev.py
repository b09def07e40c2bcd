"""`onefold dev` and `onefold serve` as processes: reload, kill, refusals, and a clean end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

FREE = ("--listen", "127.0.0.1:0")
START = "from onefold.cli import main; main()"
APP = '''
from pydantic import BaseModel
from onefold import Run, actuator

class Asked(BaseModel):
    name: str

class Go(BaseModel):
    on: bool = True

@actuator
async def greet(run: Run, asked: Asked) -> str:
    """Say hello."""
    if asked.name == "wait":
        await run.wait_for_event(Go)
    return f"WORD {asked.name}"
'''


class Shell:
    """One command under way, and the lines it says."""

    def __init__(self, folder: Path, *arguments: str, **environ: str) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("ONEFOLD_")} | environ
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", START, *arguments],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.said: list[str] = []

    def until(self, pattern: str) -> re.Match[str]:
        """Read its lines until one has `pattern`; the test's own time limit ends a wait for nothing."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"it ended without saying {pattern!r}:\n{''.join(self.said)}")

    def ended(self) -> int:
        assert self.process.stdout is not None
        self.said += self.process.stdout.readlines()
        return self.process.wait()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Callable[..., Shell]]:
    started: list[Shell] = []

    def start(*arguments: str, **environ: str) -> Shell:
        started.append(Shell(tmp_path, *arguments, **environ))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.terminate()
        assert one.process.stdout is not None
        one.process.wait()
        one.process.stdout.close()


def greeting(url: str, name: str, wait: int = 20) -> dict[str, Any]:
    headers = {"prefer": f"wait={wait}", "idempotency-key": name}
    answer: dict[str, Any] = httpx2.post(f"{url}/tools/greet", json={"name": name}, headers=headers, timeout=60).json()
    return answer


def test_dev_reloads_on_a_change_and_loses_no_run(shell: Any, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(APP.replace("WORD", "hello"))
    dev = shell("dev", "app.py", "--listen", "127.0.0.1:0")
    url = dev.until(r"serves app on (http://\S+)")[1]
    assert dev.until(r"curl (\S+)/tools/greet")[1] == url
    assert greeting(url, "anna")["result"] == "hello anna"
    waiting = greeting(url, "wait", wait=0)["run_id"]

    file.write_text("def broken(:\n")
    dev.until("app.py changed and could not be loaded; the app before it goes on")
    assert greeting(url, "ben")["result"] == "hello ben"

    file.write_text(APP.replace("WORD", "good day"))
    dev.until("app.py changed; reloading")
    dev.until("serves app on")
    assert greeting(url, "carla")["result"] == "good day carla"
    httpx2.post(f"{url}/runs/{waiting}/events/Go", json={})
    ended = httpx2.get(f"{url}/runs/{waiting}", params={"wait": "20"}, timeout=60).json()
    assert (ended["status"], ended["result"]) == ("done", "good day wait")

    dev.process.send_signal(signal.SIGINT)
    assert dev.ended() == 0


WHOLE = """
from dataclasses import dataclass

from pydantic import BaseModel

import onefold
from onefold import Cell, Decision, Module, Run, actuator
from onefold.reflex import Reflexes, Task, effect
from onefold.timers import timers


@dataclass(frozen=True)
class Add:
    id: str


def decide(state: int, event: Add, now: object) -> Decision[Add, int]:
    return Decision(facts=[event], reply=state + 1)


def evolve(state: int, fact: Add) -> int:
    return state + 1


def one(event: Add) -> str:
    return "one"


def shown(state: int) -> int:
    return state


counter: Module[int, Add, Add, int, int] = Module("counter", initial=0, key=one, decide=decide, evolve=evolve, view=shown)


class Room(Cell):
    visits: int = 0

    def tick(self) -> None:
        self.visits += 1


class Asked(BaseModel):
    name: str


@actuator(webhook="github")
async def greet(run: Run, asked: Asked) -> str:
    return asked.name


@effect("mail.thank", writes=[])
async def thank(task: Task) -> str:
    return "thanked"


def when(id: str, on: bool) -> dict:
    trigger, does = {"fact": {"signal": "sale"}}, {"name": "mail.thank"}
    return {"id": id, "intent": "Thank.", "on": trigger, "effect": does, "enabled": on}


reminders = timers("reminders", to="post")
flows = Reflexes([when("thank", True), when("later", False)], effects=[thank])
app = onefold.App(greet, counter, Room, reminders, flows)
"""


def test_the_banner_names_every_part_of_the_app_and_where_the_console_is(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(WHOLE)
    (tmp_path / "onefold.toml").write_text('signals.sale = { scheme = "standard", secret_env = "SALE" }')
    dev = shell("dev", "app.py", "--no-reload", "--listen", "127.0.0.1:0", SALE="s" * 32)
    url = dev.until(r"serves app on (http://\S+)")[1]
    dev.until("/facts/")
    dev.until("sale")
    dev.process.send_signal(signal.SIGTERM)
    dev.ended()
    told = "".join(dev.said)
    assert f"  console   {url}/console\n" in told
    for kind, names in (
        ("modules", "counter"),
        ("timers", "reminders"),
        ("cells", "Room"),
        ("reflexes", "later (disabled), thank"),
        ("hooks", "greet"),
        ("signals", "sale"),
    ):
        assert re.search(rf"^  {kind:<9} {url}/\S+\n            {re.escape(names)}$", told, re.MULTILINE), kind


AUTOMATED = """
from pathlib import Path

import onefold
from onefold.reflex import Reflexes, Task, effect


@effect("mail.thank", writes=[])
async def thank(task: Task) -> str:
    return "thanked"


app = onefold.App(Reflexes(Path(__file__).with_name("shop.json"), effects=[thank]))
"""
DEFINITION = {"id": "thank", "intent": "Thank.", "on": {"fact": {"signal": "sale"}}, "effect": {"name": "mail.thank"}}


def test_dev_reloads_automations_and_shows_what_they_do(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(AUTOMATED)
    file = tmp_path / "shop.json"
    file.write_text(json.dumps(DEFINITION))
    dev = shell("dev", "app.py", "--listen", "127.0.0.1:0")
    url = dev.until(r"serves app on (http://\S+)")[1]
    sale = {"kind": "signal", "name": "sale", "payload": {}}
    assert httpx2.post(f"{url}/facts", json=sale).status_code == 202
    dev.until(r"mail\.thank \S+ attempt 1: done")

    file.write_text(json.dumps({**DEFINITION, "effect": {"name": "mail.thnk"}}))
    dev.until("did you mean 'mail.thank'")
    dev.until("shop.json changed and could not be loaded; the app before it goes on")
    assert httpx2.post(f"{url}/facts", json=sale).status_code == 202

    file.write_text(json.dumps({**DEFINITION, "enabled": False}))
    dev.until("shop.json changed; reloading")
    dev.until("serves app on")
    assert httpx2.get(f"{url}/reflexes/thank").json()["enabled"] is False


def test_dev_starts_an_app_again_that_was_killed(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP.replace("WORD", "hello"))
    dev = shell("dev", "app.py", "--listen", "127.0.0.1:0")
    url = dev.until(r"serves app on (http://\S+)")[1]
    run = greeting(url, "wait", wait=0)["run_id"]
    (child,) = children(dev.process.pid)
    os.kill(child, signal.SIGKILL)
    dev.until("ended .signal 9.; starting it again")
    httpx2.post(f"{url}/runs/{run}/events/Go", json={}, timeout=60)
    assert greeting(url, "wait")["result"] == "hello wait"
    assert greeting(url, "wait")["run_id"] == run


def test_a_child_stops_when_what_keeps_it_is_killed(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    dev = shell("dev", "app.py", "--listen", "127.0.0.1:0")
    url = dev.until(r"serves app on (http://\S+)")[1]
    dev.process.kill()
    dev.ended()  # its output ends with the last process that holds it
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{url}/healthz")


def children(parent: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(stat.parent.name))
    return found


def test_serve_ends_cleanly_on_sigterm_and_prints_no_link(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP.replace("WORD", "hello"))
    serve = shell("serve", "app.py", "--listen", "127.0.0.1:0")
    url = serve.until(r"serves app on (http://\S+)")[1]
    assert greeting(url, "anna")["result"] == "hello anna"
    serve.process.terminate()
    assert serve.ended() == 0
    assert "approve" not in "".join(serve.said)


@pytest.mark.parametrize("command", ["dev", "serve"])
def test_ctrl_c_ends_it_without_a_traceback(shell: Any, tmp_path: Path, command: str) -> None:
    (tmp_path / "app.py").write_text(APP)
    one = shell(command, "app.py", *FREE)
    one.until("serves app on")
    if command == "dev":
        one.until("OpenAPI")
    os.killpg(one.process.pid, signal.SIGINT)
    assert one.ended() == 0
    assert "Traceback" not in "".join(one.said)


def test_a_second_signal_ends_it_sooner_and_without_a_traceback(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    one = shell("serve", "app.py", *FREE)
    one.until("serves app on")
    one.process.terminate()
    one.process.send_signal(signal.SIGINT)
    assert one.ended() == 0
    assert "Traceback" not in "".join(one.said)


@pytest.mark.parametrize(
    "arguments, toml, code, told",
    [
        (("serve", "missing.py", *FREE), "", 2, "there is no such file"),
        (("dev", "missing.py", *FREE), "", 2, "there is no such file"),
        (("serve", "app.py", "--listen", "0.0.0.0:0"), "", 2, "anybody could call"),
        (("dev", "app.py", "--listen", "0.0.0.0:0"), "", 2, "anybody could call"),
        (("serve", "app.py", *FREE), 'keys = [{ secret_env = "AGENT_KEY", may = ["call"] }]', 2, "AGENT_KEY"),
        (
            ("serve", "app.py", "--listen", "203.0.113.7:0"),
            'keys = [{ secret_env = "PATH", may = ["call"] }]',
            2,
            "listen",
        ),
        (("serve",), "", 2, "Say what to serve"),
    ],
)
def test_what_cannot_be_served_ends_with_2_and_says_why(
    shell: Any, tmp_path: Path, arguments: tuple[str, ...], toml: str, code: int, told: str
) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "onefold.toml").write_text(toml)
    ended = shell(*arguments)
    assert (ended.ended(), told in "".join(ended.said)) == (code, True)


SHORT = "is shorter than 16 bytes; set it to 16 bytes or more, or name another there."


@pytest.mark.parametrize("command", ["dev", "serve"])
def test_a_secret_that_is_too_short_is_one_sentence(shell: Any, tmp_path: Path, command: str) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "onefold.toml").write_text('keys = [{ secret_env = "SHOP_KEY", may = ["call"] }]')
    ended = shell(command, "app.py", *FREE, SHOP_KEY="short")
    assert (ended.ended(), ended.said) == (
        2,
        [f"Nothing was loaded. SHOP_KEY: this variable holds the secret of key 1 of `keys` and {SHORT}\n"],
    )


def test_a_store_that_is_held_ends_the_second_with_6(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    first = shell("serve", "app.py", "--listen", "127.0.0.1:0")
    first.until("serves app")
    second = shell("serve", "app.py", "--listen", "127.0.0.1:0")
    assert second.ended() == 6
    assert f"process {first.process.pid}" in "".join(second.said)


def test_commands_open_the_store_themselves_when_nobody_serves(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP.replace("WORD", "hello"))
    (tmp_path / "onefold.toml").write_text('app = "app.py"\nlisten = "127.0.0.1:1"\n')
    call = shell("call", "greet", "name=anna", "--key", "k", "--as", "studio_42")
    assert (call.ended(), call.said) == (0, ['"hello anna"\n'])
    again = shell("call", "greet", "name=ben", "--key", "k", "--as", "studio_42")
    assert again.ended() == 3
    other = shell("call", "greet", "name=ben", "--key", "k")
    assert (other.ended(), other.said) == (0, ['"hello ben"\n'])
    runs = shell("runs", "list")
    assert (runs.ended(), len(runs.said)) == (0, 3)
