"""`onefold check` shows each fault of a definition on its line, and leaves other JSON alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from onefold.cli.root import root
from onefold.fence.words import Source
from onefold.reflex.checking import check, is_definitions
from onefold.reflex.places import lines, nearest_line
from onefold.terms.codec import below, canonical
from tests.reflex.definitions import definitions, plain, values, whole

EXAMPLES = int(os.environ.get("ONEFOLD_REFLEX_EXAMPLES", "60"))

TEXT = """[
  {
    "id": "a",
    "intent": "Note it.",
    "on": {"manual": {}},
    "effect": {"name": "note"}
  },
  {
    "id": "b",
    "intent": "Note it.",
    "on": {"fact": {"entty": "x"}},
    "effect": {"name": "note"},
    "policy": {
      "retry": {
        "max": 99
      },
      "order": "x"
    }
  }
]
"""


def test_a_fault_is_shown_on_its_line_with_what_to_write() -> None:
    found = check([Source("r.json", TEXT.encode())])
    assert [(item.line, item.rule) for item in found] == [(11, "reflex")] * 2 + [(15, "reflex"), (17, "reflex")]
    assert found[2].problem == "In reflex b, policy.retry.max: is not a whole number of retries from 0 to 50."
    assert "Did you mean 'entity'?" in [item.instead for item in found]


def test_a_missing_word_is_shown_where_its_definition_begins() -> None:
    (found,) = check([Source("r.json", b'[\n\n{"id": "a", "intent": "x", "on": {"manual": {}}}]')])
    assert (found.line, found.problem) == (3, "In reflex a, effect: is missing.")


def test_what_is_no_json_is_shown() -> None:
    for raw, line in ((b'{\n"id": }', 2), (b"{\n\n}\n]", 4), (b'{"id":\n', 1), (b"", 1)):
        (found,) = check([Source("r.json", raw)])
        assert (found.file, found.line) == ("r.json", line)
        assert "not JSON" in found.problem


def test_a_slip_in_a_template_is_shown_on_its_line_under_a_rule_of_its_own() -> None:
    text = TEXT.replace('{"name": "note"}', '{\n"name": "note",\n"input": {"a": {"$": "fct.by"}}}', 1)
    found = check([Source("r.json", text.encode())])
    assert [(item.line, item.rule) for item in found if item.rule != "reflex"] == [(8, "template")]
    assert [item.rule for item in check([Source("r.json", canonical(whole()))])] == []


def test_files_are_checked_as_the_set_they_are() -> None:
    found = check([Source("a.json", canonical(plain("a"))), Source("b.json", canonical(plain("a")))])
    assert [(item.file, "another definition" in item.problem) for item in found] == [("b.json", True)]
    loop = [plain("a", {"fact": {"run": "b"}}), plain("b", {"fact": {"run": "a"}})]
    (found_loop,) = check([Source(f"{one['id']}.json", canonical(one)) for one in loop])
    assert "wake each other for ever" in found_loop.problem


def test_what_would_be_let_pass_is_no_finding() -> None:
    assert check([Source("a.json", canonical(plain("a", {"fact": {"run": "elsewhere"}})))]) == []


@pytest.mark.parametrize(
    "value, ours",
    [
        (whole(), True),
        ([plain()], True),
        ({"on": {}, "effect": {}}, True),
        ({"name": "package", "scripts": {"on": "x"}}, False),
        ({"id": "chart", "states": {"a": {"on": {"GO": "b"}}}}, False),
        ([], False),
    ],
)
def test_json_that_nobody_named_is_looked_at_only_where_it_looks_like_ours(value: Any, ours: bool) -> None:
    assert is_definitions(canonical(value)) is ours


def test_the_command_takes_a_file_or_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reflexes").mkdir()
    Path("reflexes/r.json").write_text(TEXT)
    Path("reflexes/package.json").write_text('{"on": 1}')
    ended = CliRunner().invoke(root, ["check", "reflexes"])
    assert ended.exit_code == 1
    assert ended.stdout.splitlines()[-1].startswith("reflexes/r.json:17: reflex: In reflex b, policy.order: is not one")
    assert CliRunner().invoke(root, ["check", "reflexes/r.json", "--rule", "reflex"]).exit_code == 1
    assert CliRunner().invoke(root, ["check", "reflexes/r.json", "--rule", "clock"]).exit_code == 0
    (Path("reflexes") / "r.json").write_text(json.dumps(whole(), indent=2))
    ended = CliRunner().invoke(root, ["check", "reflexes", "--json"])
    assert (ended.exit_code, ended.stdout) == (0, '{"findings":[]}\n')


# --- lines -----------------------------------------------------------------------------------------------


def laid_out(value: Any, path: str, line: list[int], seen: dict[str, int]) -> str:
    """A JSON text with one key or item a line, and the line of each path."""
    seen.setdefault(path, line[0])
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False)
    parts = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        line[0] += 1
        here = below(path, key)
        seen.setdefault(here, line[0])
        name = f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(value, dict) else ""
        parts.append("\n" + name + laid_out(item, here, line, seen))
    line[0] += 1
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return opened + ",".join(parts) + "\n" + closed


@settings(max_examples=EXAMPLES)
@given(st.lists(definitions(), max_size=3) | values)
def test_every_place_is_found_on_its_line(value: Any) -> None:
    seen: dict[str, int] = {}
    text = laid_out(value, "", [1], seen)
    assert json.loads(text) == value
    found = lines(text.encode(), seen)
    assert {path: found[path] for path in seen} == seen


@settings(max_examples=EXAMPLES)
@given(st.binary(max_size=60) | st.text(alphabet='{}[],:"\\ab1 \n', max_size=40).map(str.encode))
def test_a_text_that_is_no_json_breaks_nothing(raw: bytes) -> None:
    assert nearest_line("a.b[0]", lines(raw, {"a", "a.b", "a.b[0]"})) >= 1
    assert isinstance(check([Source("r.json", raw)]), list)
