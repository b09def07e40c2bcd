"""reflex.cel.reading - the text of an expression becomes a tree.

For: the tokens and the grammar of CEL, as far as JSON has a use for it, with the place of what cannot be read.
Never: runs anything; takes what it does not know. Unsigned numbers, bytes, patterns and messages are no part of it.
Was wrong once: depth left to the reader's own stack. A text of a thousand plus signs ended the process.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from onefold.terms.limits import MAX_INT, MIN_INT

MAX_CHARS: Final = 2_000
MAX_NESTING: Final = 32
"""Brackets within brackets. Google's own parser takes as many."""
MACROS: Final = {"all": (2, 2), "exists": (2, 2), "exists_one": (2, 2), "filter": (2, 2), "map": (2, 3)}
RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop"}
    | {"namespace", "null", "package", "return", "true", "var", "void", "while"}
)


class Misread(Exception):
    """The text is no expression. `at`: the column, from 1."""

    def __init__(self, problem: str, at: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = at


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Field:
    """`of.name`; `asks`: inside has(), whether it is there."""

    of: Node
    name: str
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    of: Node
    key: Node


@dataclass(frozen=True, slots=True)
class Call:
    """A function, or with `of` a method. `of` stands first among `args`."""

    name: str
    args: tuple[Node, ...]
    method: bool
    at: int


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Pairs:
    pairs: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True, slots=True)
class Unary:
    op: str
    of: Node


@dataclass(frozen=True, slots=True)
class Binary:
    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Choice:
    test: Node
    then: Node
    other: Node


@dataclass(frozen=True, slots=True)
class Loop:
    """`of.macro(name, test)`, or `of.map(name, test, give)`."""

    macro: str
    of: Node
    name: str
    body: Node
    test: Node | None = None


Node: TypeAlias = "Literal | Name | Field | Index | Call | Items | Pairs | Unary | Binary | Choice | Loop"

_TOKEN: Final = re.compile(
    r"""(?P<space>(?:[ \t\r\n]+|//[^\n]*)+)
    |(?P<float>(?:[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+))
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
    |(?P<text>"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')
    |(?P<op>\|\||&&|==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])""",
    re.VERBOSE | re.ASCII,
)
_ESCAPE: Final = re.compile(r"\\(?:([abfnrtv\\'\"`?])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_PLAIN: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_LEVELS: Final = (("||",), ("&&",), ("<", "<=", ">", ">=", "==", "!=", "in"), ("+", "-"), ("*", "/", "%"))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def read(text: str) -> Node:
    """The tree of one expression. Raises: Misread."""
    if len(text) > MAX_CHARS:
        raise Misread(f"has {len(text)} characters; at most {MAX_CHARS} are taken", 1)
    return _Reader(_tokens(text)).whole()


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise Misread(f"{text[place]!r} cannot stand here", place + 1)
        kind = str(match.lastgroup)
        if kind != "space":
            found.append(_Token(kind, match.group(), place + 1))
        place = match.end()
    return [*found, _Token("end", "", len(text) + 1)]


class _Reader:
    """One pass over the tokens: a function for each level of the grammar."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._place = 0
        self._nested = 0

    def whole(self) -> Node:
        found = self._expression()
        if self._now.kind != "end":
            self._refuse()
        return found

    @property
    def _now(self) -> _Token:
        return self._tokens[self._place]

    def _take(self) -> _Token:
        token = self._tokens[self._place]
        self._place += 1
        return token

    def _is(self, *texts: str) -> bool:
        return self._now.kind in ("op", "name") and self._now.text in texts

    def _if(self, text: str) -> bool:
        found = self._is(text)
        if found:
            self._place += 1
        return found

    def _need(self, text: str) -> None:
        if not self._if(text):
            self._refuse(f"; {text!r} is missing before it")

    def _refuse(self, more: str = "") -> NoReturn:
        token = self._now
        what = "the expression ends too early" if token.kind == "end" else f"{token.text!r} cannot stand here"
        raise Misread(what + more, token.at)

    # --- operators --------------------------------------------------------------------------------

    def _expression(self) -> Node:
        self._nested += 1
        if self._nested > MAX_NESTING:
            raise Misread(f"is nested deeper than {MAX_NESTING} levels", self._now.at)
        test = self._level(0)
        if self._if("?"):
            then = self._level(0)
            self._need(":")
            test = Choice(test, then, self._expression())
        self._nested -= 1
        return test

    def _level(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._level(level + 1)
        while self._is(*_LEVELS[level]):
            op = self._take().text
            left = Binary(op, left, self._level(level + 1))
        return left

    def _unary(self) -> Node:
        op, times = self._now.text, 0
        while self._now.kind == "op" and op in "!-" and self._if(op):
            times += 1
        if times and op == "-" and self._now.kind in ("int", "float"):
            times -= 1
            return self._signed(op, times, self._members(Literal(self._number(self._take(), "-"))))
        return self._signed(op, times, self._members(self._primary()))

    def _signed(self, op: str, times: int, found: Node) -> Node:
        if times > MAX_NESTING:
            raise Misread(f"has more than {MAX_NESTING} signs in a row", self._now.at)
        for _ in range(times):
            found = Unary(op, found)
        return found

    def _members(self, found: Node) -> Node:
        while True:
            if self._if("."):
                token = self._take()
                if token.kind not in ("name", "quoted"):
                    self._place -= 1
                    self._refuse()
                name = token.text.strip("`")
                if token.kind == "name" and self._if("("):
                    found = self._method(found, name, token.at)
                else:
                    found = Field(found, name)
            elif self._if("["):
                found = Index(found, self._expression())
                self._need("]")
            else:
                return found

    def _method(self, of: Node, name: str, at: int) -> Node:
        args = self._listed(")")
        if name not in MACROS:
            return Call(name, (of, *args), True, at)
        least, most = MACROS[name]
        if not least <= len(args) <= most or not isinstance(args[0], Name):
            raise Misread(f"{name} takes a new name and an expression: rows.{name}(r, …)", at)
        test = args[1] if len(args) == 3 else None
        return Loop(name, of, args[0].name, args[-1], test)

    # --- values -----------------------------------------------------------------------------------

    def _primary(self) -> Node:
        token = self._now
        if token.kind in ("int", "float"):
            return Literal(self._number(self._take(), ""))
        if token.kind == "text":
            return Literal(self._text(self._take()))
        if token.kind == "name":
            return self._named(self._take())
        if self._if("("):
            found = self._expression()
            self._need(")")
            return found
        if self._if("["):
            return Items(self._listed("]"))
        if self._if("{"):
            return self._pairs()
        self._refuse()

    def _named(self, token: _Token) -> Node:
        name = token.text
        if name in ("true", "false", "null"):
            return Literal({"true": True, "false": False, "null": None}[name])
        if name in RESERVED:
            self._place -= 1
            self._refuse("; it is a word of the language")
        if self._now.kind == "text" and name in ("b", "r", "br", "rb", "B", "R"):
            raise Misread("bytes and raw text are not known here", token.at)
        if not self._if("("):
            return Name(name, token.at)
        args = self._listed(")")
        if name != "has":
            return Call(name, args, False, token.at)
        if len(args) != 1 or not isinstance(args[0], Field):
            raise Misread("has takes one field: has(row.name)", token.at)
        return Field(args[0].of, args[0].name, asks=True)

    def _listed(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._if(end):
            found.append(self._expression())
            if not self._if(","):
                self._need(end)
                break
        return tuple(found)

    def _pairs(self) -> Node:
        found: list[tuple[Node, Node]] = []
        while not self._if("}"):
            key = self._expression()
            self._need(":")
            found.append((key, self._expression()))
            if not self._if(","):
                self._need("}")
                break
        return Pairs(tuple(found))

    def _number(self, token: _Token, sign: str) -> int | float:
        nearby = self._now
        if nearby.kind == "name" and nearby.at == token.at + len(token.text):
            what = "unsigned numbers are not known here; leave the u out" if nearby.text in "uU" else "is no number"
            raise Misread(what, nearby.at)
        if token.kind == "float":
            return float(sign + token.text)
        if len(token.text) > 20:  # 64 bits have 19 digits
            raise Misread("must be a whole number within 64 bits", token.at)
        value = int(sign + token.text, 16 if token.text.startswith("0x") else 10)
        if not MIN_INT <= value <= MAX_INT:
            raise Misread("must be a whole number within 64 bits", token.at)
        return value

    def _text(self, token: _Token) -> str:
        body = token.text[1:-1]

        def plain(match: re.Match[str]) -> str:
            simple, *codes = match.groups()
            if simple is not None:
                return _PLAIN.get(simple, simple)
            code = int(next(c for c in codes if c is not None), 16)
            if code == 0 or 0xD800 <= code < 0xE000 or code > 0x10FFFF:
                raise Misread("holds a character that no text can have", token.at)
            return chr(code)

        if "\\" in _ESCAPE.sub("", body):
            raise Misread("holds an escape that is not known; a backslash is written twice", token.at)
        return _ESCAPE.sub(plain, body)
