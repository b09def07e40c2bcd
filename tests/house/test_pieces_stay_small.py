"""A file is read in one sitting, a function in one look. What grows past that is two things."""

from __future__ import annotations

from tests.house.tree import functions, parsed, python_files, shown

FILE_LINES = 400
FUNCTION_LINES = 50


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    sizes = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}
    assert {path: lines for path, lines in sizes.items() if lines > FILE_LINES} == {}


def test_no_function_is_longer_than_fifty_lines() -> None:
    long = {
        f"{shown(path)}:{node.lineno} {node.name}": lines
        for path in python_files()
        for node in functions(parsed(path))
        if (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    }
    assert long == {}
