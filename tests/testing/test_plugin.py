"""What a test leaves behind fails it; and pytest alone is enough."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from onefold import testing
from onefold.errors import NotOpen
from onefold.terms.ids import ActorId
from onefold.testing import Unsettled
from tests.guarantees.shop import Deposit, PayOut, bank
from tests.testing.programs import transfer, trying, waiting


def leave_a_crash() -> None:
    with testing.open(trying) as app:
        app.crash_at("after-send")


def leave_a_resident() -> None:
    async def hold(app: testing.AwaitedApp) -> None:
        resident = await app.host._core.node.activate(ActorId("bank", None, "a"))
        resident.watchers.append(print)

    with testing.open(bank, transfer) as app:
        app.deliver(bank, Deposit("d", "a", 1))
        app.wait_for(hold(app.awaited))


def leave_mail() -> None:
    async def lose(app: testing.AwaitedApp) -> None:
        resident = await app.host._core.node.activate(ActorId("bank", None, "a"))
        for row in resident.owed.values():
            row.next_at = 0

    with testing.open(bank, transfer) as app:
        app.stub(transfer, raises=TimeoutError("no answer"))
        app.deliver(bank, Deposit("d", "a", 10))
        app.deliver(bank, PayOut("p", "a", 5))
        app.settle()
        app.wait_for(lose(app.awaited))


def forget_a_port() -> None:
    with testing.open(bank) as app:
        app.deliver(bank, Deposit("d", "a", 10))
        app.deliver(bank, PayOut("p", "a", 5))


def leave_a_crash_and_fail() -> None:
    with testing.open(trying) as app:
        app.crash_at("after-send")
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "test, told",
    [
        (leave_a_crash, "a crash that never came"),
        (leave_a_resident, "bank a in a turn"),
        (leave_mail, "p of bank a unsent through transfer"),
        (forget_a_port, "something of bank unsent: transfer: no part of this app provides the port"),
    ],
)
def test_what_a_test_leaves_behind_fails_it(test: Callable[[], None], told: str) -> None:
    with pytest.raises(Unsettled, match=told):
        test()


def test_the_fault_of_a_test_is_not_hidden_by_what_it_left() -> None:
    with pytest.raises(ZeroDivisionError):
        leave_a_crash_and_fail()


async def test_a_verb_that_nobody_waited_for_fails_the_test() -> None:
    opening = testing.open(waiting)
    app = await opening.__aenter__()
    left = asyncio.create_task(app.call(waiting))
    await asyncio.sleep(0)
    with pytest.raises(Unsettled, match="1 verbs that nobody waited for"):
        await opening.__aexit__(None, None, None)
    with pytest.raises(NotOpen):
        await left


FILE = """
import sys

from tests.guarantees.shop import Accepted, Deposit, bank


def test_it(durable):
    assert durable(bank).deliver(bank, Deposit("d", "a", 1)) == Accepted(1)


def test_no_test_tool_is_loaded_but_pytest():
    assert "hypothesis" not in sys.modules
    assert "pytest_asyncio" not in sys.modules


def test_it_fails(durable):
    durable(bank).crash_at("after-send")
"""
ROOT = Path(__file__).resolve().parents[2]


def test_a_module_is_tested_without_any_other_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FILE)
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "onefold.testing.plugin",
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    ran = subprocess.run(
        [*argv, "-c", "/dev/null", "--rootdir", str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": ""},
    )  # fmt: skip
    assert "3 passed, 1 error" in ran.stdout, ran.stdout
    assert "a crash that never came" in ran.stdout


def test_testing_loads_no_test_tool() -> None:
    code = "import sys, onefold.testing as t; t.open; t.every_crash; print(sorted({'pytest', 'hypothesis'} & {*sys.modules}))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT / "src")}
    )
    assert ran.stdout == "[]\n"


def test_a_start_of_pytest_loads_no_engine() -> None:
    """Whoever has Onefold installed pays for it in tests that use it, and in no other."""
    code = "import sys, onefold.testing.plugin; print(sorted(m for m in sys.modules if m.startswith('onefold.')))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT / "src")}
    )
    assert ran.stdout == "['onefold.testing', 'onefold.testing.plugin']\n"
