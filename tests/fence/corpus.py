"""The corpus: snippets that must be found, line by line, and snippets in which nothing may be.

For: reading the files below corpus/. A snippet begins with `#: what it shows`; `#+ module` gives the
functions it defines to a Module, so that they are guarded. `# expect: RULE …` marks a line with findings.
Never: runs a snippet.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
ROLES = "key event_id decide evolve view on_answer on_alarm wake snapshot".split()
EXPECT = re.compile(r"# expect: ([\w -]+)")


@dataclass(frozen=True, slots=True)
class Snippet:
    """One snippet. expected: (line, rule) of each finding, lines from 1."""

    group: str
    title: str
    text: str

    @property
    def expected(self) -> list[tuple[int, str]]:
        lines = enumerate(self.text.splitlines(), 1)
        return sorted({(no, rule) for no, line in lines for m in EXPECT.finditer(line) for rule in m[1].split()})

    @property
    def source(self) -> bytes:
        if "#+ module\n" not in self.text:
            return self.text.encode()
        tree = ast.parse(self.text)
        defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        parts = {role: role for role in ROLES if role in defined}
        parts.setdefault("snapshot", "len")
        given = ", ".join(f"{role}={name}" for role, name in parts.items())
        return f"{self.text}\nimport onefold as _onefold\n_onefold.Module('bank', initial=0, {given})\n".encode()


def snippets(kind: str) -> list[Snippet]:
    """Every snippet of a kind, "bad" or "good"."""
    found = []
    for file in sorted((FOLDER / kind).glob("*.py.txt")):
        parts = re.split(r"^#: (.+)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert not parts[0].strip(), f"{file.name} begins without a title"
        group = file.name.removesuffix(".py.txt")
        found += [Snippet(group, title, text) for title, text in zip(parts[1::2], parts[2::2], strict=True)]
    return found
