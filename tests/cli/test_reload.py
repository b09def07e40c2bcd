"""What `onefold dev` does when a file changes or the app ends."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from onefold.cli.files import Looking, changed, picture
from onefold.cli.reload import keep_serving


class Stage:
    """Children in the order they will be spawned, files as they change, and a diary of all that happens."""

    def __init__(self, *children: Child) -> None:
        self.coming = deque(children)
        self.diary: list[str] = []
        self.size = 0
        self.turns: deque[str] = deque()
        for child in children:
            child.stage = self

    async def spawn(self) -> Child:
        return self.coming.popleft()

    def look(self) -> dict[Path, tuple[int, int]]:
        return {Path("app.py"): (0, self.size)}

    async def pause(self, child: Any) -> None:
        """Each pause plays the next turn: a file changes, or the child that serves ends."""
        if not self.turns:
            raise asyncio.CancelledError
        match self.turns.popleft():
            case "edit":
                self.size += 1
            case "ends":
                assert child is not None
                child.code = 3
            case "killed":
                assert child is not None
                child.code = -9
            case quiet:
                assert quiet == "quiet"

    async def play(self, *turns: str) -> int | None:
        self.turns = deque(turns)
        try:
            return await keep_serving(self.spawn, self.look, self.pause, lambda text: self.diary.append(f"say {text}"))
        except asyncio.CancelledError:
            return None


class Child:
    stage: Stage

    def __init__(self, name: str, *, loads: bool = True, serves: bool = True) -> None:
        self.name, self.loads, self.serves = name, loads, serves
        self.code: int | None = None
        self.served = False

    async def loaded(self) -> bool:
        if not self.loads:
            self.code = 2
        self.stage.diary.append(f"{self.name} {'loaded' if self.loads else 'refused'}")
        return self.loads

    def go(self) -> None:
        self.stage.diary.append(f"{self.name} serves")
        self.served = self.serves
        if not self.serves:
            self.code = 6

    async def stop(self) -> None:
        self.stage.diary.append(f"{self.name} stopped")
        self.code = 0


async def test_the_changed_app_is_loaded_before_the_old_one_stops() -> None:
    stage = Stage(Child("one"), Child("two"))
    assert await stage.play("quiet", "edit", "quiet") is None
    assert [line for line in stage.diary if not line.startswith("say")] == [
        *("one loaded", "one serves", "two loaded", "one stopped", "two serves", "two stopped")
    ]


async def test_a_change_that_cannot_be_loaded_leaves_the_old_one_serving() -> None:
    stage = Stage(Child("one"), Child("two", loads=False), Child("three"))
    await stage.play("edit", "edit")
    assert stage.diary[2:4] == ["two refused", "say app.py changed and could not be loaded; the app before it goes on."]
    assert stage.diary[-3:] == ["one stopped", "three serves", "three stopped"]


async def test_an_app_that_was_killed_is_started_again() -> None:
    stage = Stage(Child("one"), Child("two"))
    await stage.play("quiet", "killed", "quiet")
    assert "say The app ended (signal 9); starting it again. Its runs go on where they were." in stage.diary
    assert stage.diary[-2:] == ["two serves", "two stopped"]


@pytest.mark.parametrize("child, code", [(Child("one", loads=False), 2), (Child("one", serves=False), 6)])
async def test_a_first_start_that_is_refused_ends_with_its_code(child: Child, code: int) -> None:
    assert await Stage(child).play("quiet") == code


async def test_a_later_start_that_is_refused_waits_for_a_change() -> None:
    stage = Stage(Child("one"), Child("two", serves=False), Child("three"))
    await stage.play("quiet", "edit", "quiet", "edit", "quiet")
    assert "say The app did not start; waiting for a change." in stage.diary
    assert stage.diary[-2:] == ["three serves", "three stopped"]


def test_a_picture_has_the_files_people_write_and_no_others(tmp_path: Path) -> None:
    for name in ("app.py", "lib/part.py", "onefold.toml", ".git/hook.py", "env/pyvenv.cfg", "env/x.py", "data.sqlite"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert {str(file.relative_to(tmp_path)) for file in picture([tmp_path])} == {
        "app.py",
        "lib/part.py",
        "onefold.toml",
    }


def test_of_json_files_those_that_hold_automations_are_looked_at_and_no_data(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("")
    (tmp_path / "data.json").write_text('{"rows": []}')
    (tmp_path / "billing.json").write_text('[{"id": "a", "intent": "Charge."}]')
    look = Looking([tmp_path])
    before = look()
    assert {file.name for file in before} == {"app.py", "billing.json"}
    (tmp_path / "data.json").write_text('{"rows": [1]}')
    assert changed(before, look()) == []
    (tmp_path / "billing.json").write_text("[{")  # half written, and still the file that held them
    assert [file.name for file in changed(before, look())] == ["billing.json"]


def test_files_that_come_go_or_differ_are_changes() -> None:
    before = {Path("a"): (1, 1), Path("b"): (1, 1), Path("c"): (1, 1)}
    after = {Path("a"): (1, 1), Path("b"): (2, 1), Path("d"): (1, 1)}
    assert changed(before, after) == [Path("b"), Path("c"), Path("d")]
