"""Definitions are read from wherever a person keeps them, and what cannot be read is named with its file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from onefold.reflex.source import definitions, placed
from onefold.terms.codec import canonical
from onefold.terms.errors import LoadRefused
from tests.reflex.definitions import plain


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(path: str, value: Any) -> Path:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(value if isinstance(value, bytes) else canonical(value))
    return Path(path)


def refused(source: Any) -> list[str]:
    with pytest.raises(LoadRefused) as caught:
        definitions(source)
    return [str(found) for found in caught.value.findings]


def test_a_file_holds_one_definition_or_a_list(here: Path) -> None:
    assert definitions(put("one.json", plain("a"))) == [(plain("a"), "one.json")]
    assert definitions(put("two.json", [plain("a"), plain("b")])) == [
        (plain("a"), "two.json[0]"),
        (plain("b"), "two.json[1]"),
    ]
    assert definitions(put("none.json", [])) == []


def test_a_folder_stands_for_its_json_by_name_and_hidden_things_are_not_looked_at(here: Path) -> None:
    put("r/b.json", plain("b"))
    put("r/a/inner.json", plain("inner"))
    put("r/a.json", plain("a"))
    put("r/.hidden.json", b"{")
    put("r/.git/x.json", b"{")
    put("r/notes.txt", b"{")
    assert [path for _, path in definitions(Path("r"))] == ["r/a.json", "r/b.json", "r/a/inner.json"]


def test_a_list_is_taken_as_it_is_and_one_definition_as_a_list_of_it() -> None:
    assert placed([plain("a"), plain("b")]) == [(plain("a"), "[0]"), (plain("b"), "[1]")]
    assert placed(plain("a")) == [(plain("a"), "")]
    assert placed([(plain("a"), "from.json")]) == [(plain("a"), "from.json")]
    assert placed(()) == []


def test_all_files_that_cannot_be_read_are_told_at_once(here: Path) -> None:
    put("r/a.json", b'{"id": "a",}')
    put("r/b.json", b"\xef\xbb\xbf{}")
    put("r/c.json", b'{"id": "a", "id": "b"}')
    put("r/d.json", b"")
    put("r/e.json", b"\xff\xfe")
    put("r/f.json", b"[" * 100_000)
    put("r/g.json", plain("fine"))
    told = refused(Path("r"))
    assert [line.split(":")[0].split(",")[0] for line in told] == [f"r/{n}.json" for n in "abcdef"]
    assert "byte order mark" in told[1]
    assert "r/c.json, id: stands twice" in told[2]
    assert "nested deeper" in told[5]


def test_what_is_no_plain_file_is_not_opened(here: Path) -> None:
    os.mkfifo("pipe.json")
    assert "is not a plain file" in refused(Path("pipe.json"))[0]
    assert "there is no such file" in refused(Path("missing.json"))[0]
    assert "no *.json file" in refused(put("empty/x.txt", b"").parent)[0]
    Path("loop.json").symlink_to("loop.json")
    assert "loop.json" in refused(Path("loop.json"))[0]
    assert refused(Path("a\0b.json"))


def test_a_link_to_a_file_is_followed_and_one_to_a_folder_is_not(here: Path) -> None:
    """As a mounted volume of definitions looks."""
    put("r/..data/a.json", plain("a"))
    Path("r/a.json").symlink_to("..data/a.json")
    Path("r/again").symlink_to(".")
    assert [path for _, path in definitions(Path("r"))] == ["r/a.json"]


@pytest.mark.parametrize("source", [None, 5, b"x"])
def test_what_is_no_source_is_refused(source: Any) -> None:
    assert "a source is a path or a list" in refused(source)[0]


def test_what_is_in_a_list_is_for_the_grammar_to_judge() -> None:
    assert placed([None, 5]) == [(None, "[0]"), (5, "[1]")]
