"""A deployed file reads no file of the host, sees no process, no variable and no host that it does not declare."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import onefold
from onefold.ports.sandbox import box, describe
from tests.ports.sandbox import attacks
from tests.ports.sandbox.home import TOP, BoxedWorld, deployed, result

pytestmark = pytest.mark.asyncio(loop_scope="module")
CANARY = "canary-5a1e"
HOSTILE = Path(attacks.__file__).read_text()
OFFERED = {"SHOWN": "yes", "HIDDEN": CANARY}
Tries = Callable[..., Awaitable[str]]


@asynccontextmanager
async def hostile() -> AsyncIterator[Tries]:
    async with deployed(HOSTILE, "attacks.py", environment=OFFERED) as deployment:
        (actuator,) = deployment.actuators

        async def met(how: str, place: object = None) -> str:
            world = BoxedWorld(actuator, await actuator.checked({"how": how, "place": place}))
            await world.play()
            return str(world.result)

        yield met


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def met() -> AsyncIterator[Tries]:
    async with hostile() as found:
        yield found


@pytest.mark.parametrize("place", ["/etc/passwd", "/proc/self/environ", "/proc/1/environ", "/home", "/sys"])
async def test_no_file_of_the_host_is_read(met: Tries, place: str) -> None:
    assert await met("read", place) == "FileNotFoundError"


async def test_the_folder_of_the_store_is_not_read(met: Tries, tmp_path: Path) -> None:
    (tmp_path / "main.db").write_text(CANARY)
    assert await met("read", str(tmp_path / "main.db")) == "FileNotFoundError"
    assert await met("listed", str(tmp_path)) == "FileNotFoundError"
    with tempfile.NamedTemporaryFile(
        dir="/tmp"
    ) as theirs:  # where a checkout in /tmp is bound, its folder's name is seen
        seen = await met("listed", "/tmp")  # noqa: S108 - the box's own
    assert seen.startswith("got it: ")
    assert Path(theirs.name).name not in seen


async def test_no_other_process_is_seen(met: Tries) -> None:
    assert await met("signal", os.getpid()) == "ProcessLookupError"
    assert await met("trace", 1) == "PermissionError"


async def test_only_declared_variables_are_seen(met: Tries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AROUND", CANARY)
    assert await met("variable", "SHOWN") == "got it: yes"
    for hidden in ("HIDDEN", "AROUND", "PATH", "HOME"):
        assert await met("variable", hidden) == "KeyError", hidden
    assert CANARY not in await met("variables")


async def test_a_variable_that_a_file_names_and_does_not_declare_refuses_it() -> None:
    body = '\nWHAT = "env:HIDDEN"\n@actuator\nasync def looks(run: Run) -> str:\n    return os.environ["HIDDEN"]\n'
    with pytest.raises(onefold.errors.LoadRefused, match="names env:HIDDEN"):
        await describe(TOP + body, "looks.py", OFFERED)


@contextmanager
def listening(family: int, address: Any) -> Iterator[socket.socket]:
    with socket.socket(family) as server:
        server.bind(address)
        server.listen()
        yield server


async def test_neither_this_host_nor_any_other_is_connected_to(met: Tries) -> None:
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as server:
        assert await met("connect", [*server.getsockname()]) == "ConnectionRefusedError"
    for address in (["169.254.169.254", 80], ["1.1.1.1", 443], ["10.0.0.1", 80]):
        assert await met("connect", address) == "OSError", address
    assert await met("connect", ["example.com", 443]) == "gaierror"


async def test_no_socket_passes_the_namespace_by(met: Tries) -> None:
    with listening(socket.AF_UNIX, "\0onefold-test"):
        assert await met("abstract", "onefold-test") == "ConnectionRefusedError"
    assert await met("hypervisor") == "PermissionError"


@pytest.mark.parametrize("how", ["fork", "spawn", "own_namespace", "uncounted"])
async def test_there_is_no_second_process_and_no_memory_that_is_not_counted(met: Tries, how: str) -> None:
    assert await met(how) == "PermissionError"


async def test_nothing_is_written_but_a_small_tmp(met: Tries) -> None:
    for place in ("/x", "/usr/lib/x", f"{box.HOME}/onefold/x", "/dev/x"):
        assert await met("write", place) == "OSError", place
    assert await met("write", "/tmp/x") == "got it: None"  # noqa: S108 - the box's own
    assert await met("fill", "/tmp/x") == "OSError"  # noqa: S108 - the box's own


async def test_no_limit_is_lifted(met: Tries) -> None:
    assert await met("more") == "ValueError"


# --- the proxy ----------------------------------------------------------------------------------------------

ASKS = """
HOSTS = [f"https://{one}" for one in DECLARED]
@actuator(capabilities=HOSTS)
async def asks(run: Run) -> list[str]:
    return [await run.step(ask)(url) for url in URLS]
async def ask(url: str) -> str:
    import httpx2
    try:
        async with httpx2.AsyncClient(timeout=5) as http:
            return (await http.get(url)).text
    except Exception as fault:
        return f"{type(fault).__name__}: {fault}"
"""


def asking(urls: Sequence[str], declared: Sequence[str]) -> str:
    return f"URLS = {list(urls)!r}\nDECLARED = {list(declared)!r}\n{ASKS}"


@pytest.mark.parametrize(
    "url",
    [
        "https://other.example.com/",
        "https://api.example.com.evil.example/",
        "https://api.example.com:8443/",
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/",
    ],
)
async def test_an_undeclared_host_is_refused_by_name(url: str) -> None:
    (told,) = await result(asking([url], ["api.example.com"]))
    assert "403" in told, told
    assert "is not declared" in told or "the url " in told, told


async def test_plain_http_goes_nowhere() -> None:
    (told,) = await result(asking(["http://api.example.com/"], ["api.example.com"]))
    assert told.startswith("ConnectError"), told


async def test_a_declared_host_whose_name_leads_inside_is_refused() -> None:
    from onefold.ports.sandbox.deployment import Outside

    for inside in ("127.0.0.1", "10.1.2.3", "169.254.169.254", "::1"):

        async def here(name: str, port: int, inside: str = inside) -> Sequence[str]:
            return ["93.184.215.14", inside]

        (told,) = await result(asking(["https://api.example.com/"], ["api.example.com"]), outside=Outside(here))
        assert "leads to an address that is not public" in told, told


async def test_what_is_no_exact_origin_is_not_deployed() -> None:
    for host in ("10.0.0.1", "localhost", "127.0.0.1:8080"):
        with pytest.raises(onefold.errors.LoadRefused, match="no exact origin"):
            await describe(TOP + asking([], [host]), "asks.py")


# --- the tests above can fail ---------------------------------------------------------------------------------

BROKEN: dict[str, tuple[str, object, Callable[[list[str]], list[str]]]] = {
    "files": ("read", "/etc/passwd", lambda words: before_the_end(words, "--ro-bind", "/etc", "/etc")),
    "processes": ("signal", os.getpid(), lambda words: shared(words, "pid")),
    "network": ("connect", "loopback", lambda words: shared(words, "net")),
    "calls": ("fork", None, lambda words: unfiltered(words)),
    "memory": ("uncounted", None, lambda words: unfiltered(words)),
    "variables": ("variable", "HIDDEN", lambda words: before_the_end(words, "--setenv", "HIDDEN", CANARY)),
    "writing": ("write", "/x", lambda words: [word for word in words if word not in ("--remount-ro", "/")]),
}


def before_the_end(words: list[str], *more: str) -> list[str]:
    at = words.index("--size")
    return [*words[:at], *more, *words[at:]]


def shared(words: list[str], kept: str) -> list[str]:
    kinds = [f"--unshare-{kind}" for kind in ("ipc", "pid", "net", "uts", "cgroup") if kind != kept]
    return [one for word in words for one in (kinds if word == "--unshare-all" else [word])]


def unfiltered(words: list[str]) -> list[str]:
    at = words.index("--seccomp")
    return words[:at] + words[at + 2 :]


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_broken_box_is_found(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    how, place, wrong = BROKEN[broken]
    right = box.command
    monkeypatch.setattr(box, "command", lambda *args: wrong(right(*args)))
    with listening(socket.AF_INET, ("127.0.0.1", 0)) as server:
        async with hostile() as met:
            told = await met(how, [*server.getsockname()] if place == "loopback" else place)
    assert told.startswith("got it"), told
