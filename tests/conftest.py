"""What every test stands on: Hypothesis without a wall clock, and the Node commands of `make test`."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.long_days import LONG_DAYS
from tests.postgres import DATABASES, fresh_database
from tests.sometimes import COUNTS, STATES, Looker, Sometimes

# Where the package is installed its entry point of the same name has loaded it already.
pytest_plugins = ["onefold.testing.plugin"]

ROOT = Path(__file__).resolve().parent.parent
ROOMY = 1 << 29  # bytes; a thousand spaces are a hundred million

# No deadline: a slow machine is no fault. In CI the same examples each time, so that red means a change.
settings.register_profile("house", deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI")))
settings.load_profile("house")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Sometimes(STATES, COUNTS, ROOT / "tests", Looker()), "sometimes")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, None, None]:
    """A test's Postgres databases go after all that its fixtures did in them."""
    result = yield
    DATABASES.drop()
    return result


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes minutes on Postgres runs there when everything is asked for."""
    if os.environ.get("ONEFOLD_DEEP"):
        return
    there = [item for item in items if "postgres" in item.name]
    long = [item for item in there if {item.path.name, getattr(item, "originalname", "")} & LONG_DAYS]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


def pytest_unconfigure() -> None:
    DATABASES.close()


@pytest.fixture
def postgres() -> str:
    """The URL of a Postgres database of this test alone, empty."""
    return fresh_database()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder on a disk in memory, where there is a large one: for what syncs often and asks nothing of the disk itself."""
    shared = Path("/dev/shm")  # noqa: S108 - the folder is of this test alone, and gone at its end
    large = shared.is_dir() and shutil.disk_usage(shared).free > ROOMY
    with tempfile.TemporaryDirectory(dir=shared if large else None) as folder:
        yield Path(folder)


def pytest_addoption(parser: pytest.Parser) -> None:
    told = "write tests/transcripts/*.txt anew instead of comparing; read the difference before you commit it"
    parser.addoption("--rewrite-transcripts", action="store_true", help=told)


def _node_command(script: str) -> list[str]:
    node, path = ROOT / ".setup/bin/node", ROOT / ".setup/node_modules" / script
    if not (node.exists() and path.exists()):
        pytest.fail(f"{path.relative_to(ROOT)} is missing: `make test` sets it up.", pytrace=False)
    return [str(node), str(path)]


@pytest.fixture(scope="session")
def inspector() -> list[str]:
    """The MCP Inspector's command line: add `URL --method tools/list ...`. For tests marked needs_node."""
    return [*_node_command("@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli"]


@pytest.fixture(scope="session")
def pyright() -> list[str]:
    """Pyright's command line. For tests marked needs_node."""
    return _node_command("pyright/index.js")
