"""`onefold replay`: whether new code goes on with the runs that there are, without running anything of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from onefold.cli.root import root

SHOP = """
from pathlib import Path

from pydantic import BaseModel

from onefold import App, Approved, Expired, Rejected, Run, Step, actuator, blocking


class Order(BaseModel):
    id: str
    amount: int


class Paid(BaseModel):
    by: str


def look_up(id: str) -> dict[str, int]:
    Path("ran").write_text("look_up")
    return {"amount": 40}


def pay(step: Step, id: str, amount: int) -> str:
    Path("ran").write_text("pay")
    return id


@actuator
async def refund(run: Run, order: Order) -> str:
    found = await run.step(look_up)(order.id)
    if order.amount > 100:
        match await run.wait_for_approval("manager", "pay?", notify="chef", timeout="1 day"):
            case Approved():
                pass
            case Rejected() | Expired():
                return "no"
    paid = await run.step(pay)(order.id, found["amount"])
    await run.wait_for_event(Paid)
    return paid


@actuator
def plainly(run: blocking.Run, order: Order) -> str:
    run.step(look_up)(order.id)
    run.sleep("10 ms")
    return run.step(pay)(order.id, 1)


app = App(refund, plainly)
"""


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the command prints of three runs: one that asks a person, one that waits for an event, one that is done."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(SHOP)
    (folder / "onefold.toml").write_text('app = "shop.py"\nlisten = "127.0.0.1:1"\n')

    def typed(*arguments: str) -> str:
        ended = CliRunner().invoke(root, arguments)
        assert ended.exit_code in (0, 5), ended.output
        return ended.stdout

    printed = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, arguments in {
            "asked": ("refund", "id=big", "amount=200", "--wait", "1s"),
            "paid": ("refund", "id=small", "amount=5", "--wait", "1s"),
            "done": ("plainly", "id=plain", "amount=5"),
        }.items():
            run = json.loads(typed("call", *arguments, "--json"))["run_id"]
            printed[name] = typed("runs", "show", run, "--journal", "--json")
    return printed


@pytest.fixture
def shop(taken: dict[str, str], typed: Any, tmp_path: Path) -> Any:
    """`onefold` in a folder with the shop and the three histories, and no store."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "taken").mkdir()
    for name, printed in taken.items():
        (tmp_path / "taken" / f"{name}.json").write_text(printed)

    def changed(old: str, new: str) -> None:
        assert old in SHOP
        (tmp_path / "new.py").write_text(SHOP.replace(old, new, 1))

    typed.changed = changed
    yield typed
    assert not (tmp_path / "ran").exists(), "a step was run"
    assert not (tmp_path / "onefold-data").exists()


def findings(ended: Any) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(ended.stdout)["findings"]
    return told


def test_the_same_code_goes_on_with_all_of_them_and_runs_nothing(shop: Any, tmp_path: Path) -> None:
    ended = shop("replay", "shop.py", "--history", "taken")
    assert (ended.exit_code, ended.stdout) == (0, "")
    assert ended.stderr.splitlines()[-1] == "3 runs replayed: all of them would go on."
    assert json.loads(shop("replay", "shop.py", "--history", "taken", "--json").stdout) == {
        "findings": [],
        "replayed": 3,
        "skipped": 0,
    }


def test_what_the_file_prints_is_no_finding(shop: Any) -> None:
    shop.changed("    found = await", '    print("here")\n    found = await')
    ended = shop("replay", "new.py", "--history", "taken", "--json")
    assert findings(ended) == []
    assert ended.stderr.startswith("here\n")


def test_a_step_with_another_name_stops_those_that_have_it(shop: Any) -> None:
    shop.changed("await run.step(look_up)(", 'await run.step(look_up, name="find")(')
    ended = shop("replay", "new.py", "--history", "taken", "--json")
    assert ended.exit_code == 1
    found = findings(ended)
    assert [(one["program"], one["rule"], one["seen"]) for one in found] == [("refund", "diverged", 0)] * 2
    assert found[0]["expected"] == "'look_up' (call 1 of task 0)"
    assert found[0]["found"] == "'find' (call 1 of task 0)"
    assert set(found[0]) >= {"file", "line", "rule", "problem", "instead"}
    assert (found[0]["file"], SHOP.splitlines()[found[0]["line"] - 1]) == ("new.py", "@actuator")


def test_a_step_with_other_arguments_stops_those_that_came_so_far(shop: Any) -> None:
    shop.changed('run.step(pay)(order.id, found["amount"])', 'run.step(pay)(order.id, found["amount"] + 1)')
    found = findings(shop("replay", "new.py", "--history", "taken", "--json"))
    assert [one["found"] for one in found] == ["'pay' (call 2 of task 0) with other arguments"]
    assert "(waiting) would park: after 1 of 2 acts" in found[0]["problem"]


def test_an_approval_of_another_name_stops_whoever_waits_for_it(shop: Any) -> None:
    shop.changed('"manager"', '"boss"')
    ended = shop("replay", "new.py", "--history", "taken")
    assert ended.exit_code == 1
    assert "new.py:" in ended.stdout
    assert "'manager' (call 2 of task 0)" in ended.stdout
    assert ended.stderr.splitlines()[-1] == "3 runs replayed: 1 would not go on."


def test_a_change_behind_what_was_journaled_stops_nobody(shop: Any) -> None:
    shop.changed("    await run.wait_for_event(Paid)\n", "    await run.wait_for_event(Paid)\n    await run.sleep(5)\n")
    assert shop("replay", "new.py", "--history", "taken").exit_code == 0


def test_a_function_with_a_thread_of_its_own_is_replayed_too(shop: Any) -> None:
    shop.changed('run.sleep("10 ms")', 'run.sleep("20 ms")')
    found = findings(shop("replay", "new.py", "--history", "taken", "--json"))
    assert [one["program"] for one in found] == ["plainly"]


def test_code_that_raises_is_found_where_it_would(shop: Any) -> None:
    shop.changed("    await run.wait_for_event(Paid)\n", "    raise KeyError(order.id)\n")
    found = findings(shop("replay", "new.py", "--history", "taken", "--json"))
    assert [one["rule"] for one in found] == ["diverged"], "it waits for an event that is not waited for any more"
    assert found[0]["found"] == "the function's end by KeyError"
    shop.changed("    await run.wait_for_event(Paid)\n", "    await run.wait_for_event(Paid)\n    raise KeyError(1)\n")
    assert shop("replay", "new.py", "--history", "taken").exit_code == 0, "nobody has come so far"
    shop.changed("return run.step(pay)(order.id, 1)", "run.step(pay)(order.id, 1)\n    raise KeyError(order.id + '')")
    (one,) = findings(shop("replay", "new.py", "--history", "taken", "--json"))
    assert "(done) would fail: KeyError: 'plain' at new.py:" in one["problem"]


def test_an_input_that_the_new_model_refuses_is_found(shop: Any) -> None:
    shop.changed("    amount: int\n", "    amount: int\n    reason: str\n")
    assert len(findings(shop("replay", "new.py", "--history", "taken", "--json"))) == 3


def test_many_stand_in_one_file_a_line_each(shop: Any, tmp_path: Path) -> None:
    lines = [(tmp_path / "taken" / f"{name}.json").read_text() for name in ("asked", "paid", "done")]
    (tmp_path / "all").write_text("".join(lines))
    assert "3 runs replayed" in shop("replay", "shop.py", "--history", "all").stderr
    assert "1 run replayed, 2 of other programs" in shop("replay", "shop.py:plainly", "--history", "all").stderr


@pytest.mark.parametrize(
    "text, said",
    [
        ("{", "is no JSON"),
        ("[]", "is no history"),
        ('{"items": [], "next": null}', "is no history"),
        ('{"history": {"program": "refund", "entries": null}, "items": []}', "its acts are a list"),
        ('{"history": {"program": "refund", "entries": ["0#0"]}, "items": [{}]}', "each of its acts is an object"),
        ('{"history": {"program": "refund", "entries": [{}]}, "items": [null]}', "each of its acts is an object"),
        ('{"history": {"program": "refund", "entries": [{"type": []}]}, "items": [{}]}', "none of this version"),
        ('{"items": [1], "history": {"program": "refund"}}', "is of 0 acts, and the journal has 1"),
        ('{"items": [], "history": {"program": "refund"}}', "is none of this version"),
        ('{"items": [], "history": {"program": "other"}}', "These are histories of 'other', and shop.py holds"),
    ],
)
def test_what_is_no_history_is_a_usage_error(shop: Any, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "odd.json").write_text(text)
    ended = shop("replay", "shop.py", "--history", "odd.json")
    assert ended.exit_code == 2
    assert said in ended.stderr


def test_an_empty_folder_and_a_file_that_cannot_be_loaded_are_told(shop: Any, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    assert shop("replay", "shop.py", "--history", "none").exit_code == 2
    (tmp_path / "bad.py").write_text("import nothing_of_the_kind\n")
    assert shop("replay", "bad.py", "--history", "taken").exit_code == 2
