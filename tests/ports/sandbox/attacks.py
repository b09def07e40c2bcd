"""A hostile file: what it tries to reach. Each gives "got it" and what it got, or the name of what stopped it."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import subprocess
import sys
from typing import Any

from pydantic import BaseModel

from onefold import Run, actuator


class Reach(BaseModel):
    how: str
    place: Any = None


@actuator(capabilities=["env:SHOWN"])
async def attack(run: Run, reach: Reach) -> str:
    """One try."""
    return await run.step(tried)(reach.how, reach.place)


def tried(how: str, place: Any) -> str:
    try:
        return f"got it: {globals()[how](place)}"
    except BaseException as fault:  # noqa: BLE001 - whatever stops it is what is asked
        return type(fault).__name__


def read(place: str) -> str:
    with open(place) as file:
        return file.read()


def listed(place: str) -> str:
    return str(sorted(os.listdir(place)))


def signal(place: int) -> None:
    os.kill(place, 0)


def trace(place: int) -> None:
    if ctypes.CDLL(None, use_errno=True).ptrace(16, place, 0, 0):
        raise PermissionError


def variable(place: str) -> str:
    return os.environ[place]


def variables(place: None) -> str:
    return str(sorted(os.environ))


def connect(place: list[Any]) -> None:
    with socket.create_connection((place[0], place[1]), timeout=3):
        pass


def abstract(place: str) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect("\0" + place)


def hypervisor(place: None) -> None:
    socket.socket(40, socket.SOCK_STREAM).close()


def fork(place: None) -> None:
    if not os.fork():  # noqa: TID251 - the attack
        os._exit(0)


def spawn(place: None) -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


def own_namespace(place: None) -> None:
    if ctypes.CDLL(None).unshare(0x10000000):
        raise PermissionError


def uncounted(place: None) -> None:
    os.memfd_create("hidden")


def write(place: str) -> None:
    with open(place, "w"):
        pass


def fill(place: str) -> None:
    with open(place, "wb") as full:
        full.writelines(bytes(1 << 20) for _ in range(100))


def more(place: None) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))
