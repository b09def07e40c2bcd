"""bench.places - where things are: the repository, the scratch folder, tools and peers, fetched when missing.

For: paths, and putting into .setup/ what the run needs and the package does not.
Never: installs into .venv; fails the run because one peer cannot be had (it is left out, with a sentence).
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETUP = ROOT / ".setup"
SCRATCH = SETUP / "bench"
NODE = SETUP / "bench-node"
VENV = SETUP / "bench-venv"
RESULTS = ROOT / "bench" / "RESULTS.md"
OURS = sys.executable
PEERS = (
    "dbos==3.4.0",
    "restate-sdk==1.3.0",
    "hypercorn==0.18.0",
    "uvloop==0.23.0",
    "absurd-sdk==0.5.1",
    "absurdctl==0.5.1",
    "procrastinate==3.10.0",
    "py-spy==0.4.3",
    "apscheduler==3.11.3",
    "huey==3.5.4",
)
PACKAGES = ("workerd@1.20261117.1", "@restatedev/restate-server@1.7.12")
_CPU = {"x86_64": ("64", "x64"), "aarch64": ("arm64", "arm64")}


class Missing(Exception):
    """Something the run wanted cannot be had here. The sentence says what, and what to do."""


def scratch(name: str) -> Path:
    """An empty folder of that name on the disk that is measured."""
    folder = SCRATCH / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def log(name: str) -> Path:
    folder = SCRATCH / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.log"


def tool(name: str) -> str:
    """The path of a Debian tool; root installs it when missing. Raises: Missing."""
    found = shutil.which(name)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], check=False, env=env, **quiet)  # type: ignore[call-overload]
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", name]
        subprocess.run(command, check=False, env=env, **quiet)  # type: ignore[call-overload]
        found = shutil.which(name)
    if found is None:
        raise Missing(f"{name} is not installed: install it with your system's package manager, then run this again.")
    return found


def peers_python() -> str:
    """The interpreter of the peers' own environment, made when missing. Raises: Missing."""
    python = VENV / "bin" / "python"
    done = VENV / "installed"
    wanted = "\n".join(PEERS)
    if not done.is_file() or done.read_text(encoding="utf-8") != wanted:
        print("fetching the peers in Python ...", file=sys.stderr)
        if not python.is_file():
            subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PEERS]
        if subprocess.run(install, check=False).returncode:
            raise Missing("the peers in Python could not be installed with pip: is an index reachable?")
        done.write_text(wanted, encoding="utf-8")
    return str(python)


def peers_tool(name: str) -> str:
    """A command of the peers' environment. Raises: Missing."""
    return str(Path(peers_python()).with_name(name))


def workerd() -> str:
    """workerd's binary, out of its platform's package. Raises: Missing."""
    return _binary("@cloudflare/workerd-{os}-{0}/bin/workerd")


def restate_server() -> str:
    """Restate's server, out of its platform's package. Raises: Missing."""
    return _binary("@restatedev/restate-server-{os}-{1}/bin/restate-server")


def node() -> str:
    """Node, the system's or the one that `make test` sets up. Raises: Missing."""
    found = SETUP / "bin" / "node"
    path = str(found) if found.is_file() else shutil.which("node")
    if path is None:
        raise Missing("node is missing: run `make test` once, which sets it up.")
    return path


def xstate() -> str:
    """XState's one module, out of the archive that the tests of state charts fetch. Raises: Missing."""
    path = SETUP / "charts" / "xstate" / "dist" / "xstate.esm.js"
    if not path.is_file():
        subprocess.run(["sh", "tests/machine/fetch.sh"], cwd=ROOT, check=False, stdout=sys.stderr)
    if not path.is_file():
        raise Missing("xstate could not be fetched: run `make test` once, which says why.")
    return str(path)


def _binary(pattern: str) -> str:
    cpu = _CPU.get(platform.machine())
    if cpu is None:
        raise Missing(f"{pattern.split('/')[0]} has no build for {platform.machine()}.")
    path = NODE / "node_modules" / pattern.format(*cpu, os=platform.system().lower())
    if not path.is_file():
        _fetch_packages()
    if not path.is_file():
        raise Missing(f"{path.name} is not in its npm package on this system.")
    return str(path)


def _fetch_packages() -> None:
    npm = SETUP / "bin" / "npm"
    if not npm.is_file():
        subprocess.run(["sh", "build_support/node.sh"], cwd=ROOT, check=False)
    if not npm.is_file():
        raise Missing("npm is missing: run `make test` once, which sets it up.")
    print("fetching the peers from npm ...", file=sys.stderr)
    NODE.mkdir(parents=True, exist_ok=True)
    # No install scripts: the binaries are inside the platforms' packages.
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--no-package-lock", "--loglevel=error"]
    subprocess.run([str(npm), "install", "--prefix", str(NODE), *quiet, *PACKAGES], check=False, stdout=sys.stderr)
