"""A box sees what is bound into it, wherever that is on this machine."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest

from onefold.ports.sandbox import box


def test_packages_that_are_below_tmp_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout in /tmp: its packages were bound first, and the box's own /tmp hid them."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place, "seen.py").write_text("print('seen')", encoding="utf-8")
        usual = tuple(box._binds())
        monkeypatch.setattr(box, "_binds", lambda: (*usual, "--ro-bind", place, place))
        with box._filter() as rules:
            told = subprocess.run(
                box.command([box.python(), "-I", "-S", f"{place}/seen.py"], rules.fileno()),
                pass_fds=(rules.fileno(),), env={}, capture_output=True, text=True, check=True,
            )  # fmt: skip
    assert told.stdout == "seen\n"
