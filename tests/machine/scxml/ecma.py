"""The little of ECMAScript that the public charts use in their expressions: read into functions of an environment.

For: literals, names, members, calls, operators, assignments and `var` lines.
Never: functions, regular expressions, `new`. A chart that needs one is told apart as beyond this reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from tests.machine.scxml.data import UNDEFINED, Beyond, Scope

Run = Callable[[Scope], Any]

TOKEN: Final = re.compile(
    r"\s*(?:(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<number>\d+\.?\d*|\.\d+)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<name>[A-Za-z_$][\w$]*)|(?P<sign>===|!==|==|!=|<=|>=|&&|\|\||\+\+|--|\+=|-=|\*=|[-+*/%<>=!?:.,;()\[\]{}|&]))",
    re.DOTALL,
)
BINDING: Final = {
    "||": 1,
    "&&": 2,
    "|": 3,
    "===": 5,
    "!==": 5,
    "==": 5,
    "!=": 5,
    "<": 6,
    ">": 6,
    "<=": 6,
    ">=": 6,
    "instanceof": 6,
    "in": 6,
    "+": 7,
    "-": 7,
    "*": 8,
    "/": 8,
    "%": 8,
}
BEYOND: Final = ("function", "new", "delete", "for", "while", "if", "throw")


def expression(text: str) -> Run:
    """One expression. Raises: SyntaxError, Beyond."""
    reader = _Reader(text)
    found = reader.assignment()
    reader.end()
    return found


def script(text: str) -> Run:
    """Statements: expressions and `var`."""
    reader = _Reader(text)
    lines = []
    while reader.at < len(reader.tokens):
        if reader.skip(";"):
            continue
        if reader.skip("var"):
            lines += reader.variables()
        else:
            lines.append(reader.assignment())

    def run(scope: Scope) -> None:
        for line in lines:
            line(scope)

    return run


def truthy(value: Any) -> bool:
    return value is not UNDEFINED and (isinstance(value, list | dict) or bool(value))


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        place = 0
        while place < len(text.rstrip()):
            match = TOKEN.match(text, place)
            if match is None:
                raise SyntaxError(text[place:])
            place = match.end()
            kind = str(match.lastgroup)
            if kind != "comment":
                self.tokens.append((kind, match[kind]))
        if any(word in BEYOND for kind, word in self.tokens if kind == "name"):
            raise Beyond("a function, a statement or an object of its own in ECMAScript")
        if ("name", "return") in self.tokens:
            raise SyntaxError("return outside of a function")  # how the suite writes what is no expression

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def skip(self, word: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] != ("text", word) and self.peek() == word:
            self.at += 1
            return True
        return False

    def need(self, word: str) -> None:
        if not self.skip(word):
            raise SyntaxError(f"{word} is missing before {self.peek()!r}")

    def end(self) -> None:
        self.skip(";")
        if self.at < len(self.tokens):
            raise SyntaxError(f"{self.peek()!r} is left over")

    # --- statements ---------------------------------------------------------------------------

    def variables(self) -> list[Run]:
        lines: list[Run] = []
        while True:
            name = self.peek()
            self.at += 1
            lines.append(_declaring(name, self.assignment() if self.skip("=") else None))
            if not self.skip(","):
                return lines

    def assignment(self) -> Run:
        start = self.at
        left = self.ternary()
        for sign in ("=", "+=", "-=", "*="):
            if self.skip(sign):
                place = [word for _, word in self.tokens[start : self.at - 1]]
                right = self.assignment()
                return _assigning(place, left, sign, right)
        return left

    def ternary(self) -> Run:
        test = self.binary(0)
        if not self.skip("?"):
            return test
        yes = self.assignment()
        self.need(":")
        no = self.assignment()
        return lambda scope: yes(scope) if truthy(test(scope)) else no(scope)

    def binary(self, least: int) -> Run:
        left = self.unary()
        while True:
            sign = self.peek()
            force = BINDING.get(sign, 0)
            if not force or force <= least or self.tokens[self.at][0] == "text":
                return left
            self.at += 1
            left = _joined(sign, left, self.binary(force))

    def unary(self) -> Run:
        if self.skip("!"):
            inner = self.unary()
            return lambda scope: not truthy(inner(scope))
        if self.skip("-"):
            negated = self.unary()
            return lambda scope: -negated(scope)
        if self.skip("typeof"):
            return _kind_of(self.unary())
        if self.skip("++"):
            name = self.peek()
            value = self.unary()
            return _assigning([name], value, "+=", lambda scope: 1, gives=True)
        return self.member()

    def member(self) -> Run:
        found = self.primary()
        while True:
            if self.skip("."):
                key = self.peek()
                self.at += 1
                found = _member(found, lambda scope, key=key: key)  # type: ignore[misc]
            elif self.skip("["):
                index = self.assignment()
                self.need("]")
                found = _member(found, index)
            elif self.skip("("):
                found = _call(found, self.listed(")"))
            else:
                return found

    def listed(self, close: str) -> list[Run]:
        items: list[Run] = []
        while not self.skip(close):
            items.append(self.assignment())
            self.skip(",")
        return items

    def primary(self) -> Run:
        if self.at >= len(self.tokens):
            raise SyntaxError("it ends too early")
        kind, word = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            number = float(word) if "." in word else int(word)
            return lambda scope: number
        if kind == "text":
            text = re.sub(r"\\(.)", r"\1", word[1:-1])
            return lambda scope: text
        if kind == "name":
            return _name(word)
        if word == "(":
            inner = self.assignment()
            self.need(")")
            return inner
        if word == "[":
            items = self.listed("]")
            return lambda scope: [item(scope) for item in items]
        if word == "{":
            return self.object()
        raise SyntaxError(f"{word!r} is out of place")

    def object(self) -> Run:
        pairs: list[tuple[str, Run]] = []
        while not self.skip("}"):
            key = self.peek().strip("'\"")
            self.at += 1
            self.need(":")
            pairs.append((key, self.assignment()))
            self.skip(",")
        return lambda scope: {key: value(scope) for key, value in pairs}


# --- what they do ---------------------------------------------------------------------------------

CONSTANTS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "undefined": UNDEFINED}


def _name(word: str) -> Run:
    if word in CONSTANTS:
        return lambda scope: CONSTANTS[word]
    return lambda scope: scope.get(word)


def _kind_of(inner: Run) -> Run:
    def run(scope: Scope) -> str:
        try:
            value = inner(scope)
        except NameError:
            return "undefined"
        names = {bool: "boolean", int: "number", float: "number", str: "string"}
        return "undefined" if value is UNDEFINED else names.get(type(value), "object")

    return run


def _member(owner: Run, key: Run) -> Run:
    def run(scope: Scope) -> Any:
        value, name = owner(scope), key(scope)
        if isinstance(value, dict):
            return value.get(name, UNDEFINED)
        if isinstance(value, list):
            if name == "concat":
                return lambda *lists: [*value, *(item for part in lists for item in part)]
            return len(value) if name == "length" else value[name] if name < len(value) else UNDEFINED
        if isinstance(value, str) and name == "length":
            return len(value)
        raise TypeError(f"{value!r} has no {name!r}")

    return run


def _call(function: Run, given: list[Run]) -> Run:
    def run(scope: Scope) -> Any:
        called = function(scope)
        if not callable(called):
            raise TypeError(f"{called!r} is no function")
        return called(*(item(scope) for item in given))

    return run


def _declaring(name: str, value: Run | None) -> Run:
    return lambda scope: scope.declare(name, value(scope) if value else scope.vars.get(name, UNDEFINED))


def _assigning(place: list[str], left: Run, sign: str, right: Run, *, gives: bool = True) -> Run:
    def run(scope: Scope) -> Any:
        value = right(scope)
        if sign != "=":
            value = OPERATORS[sign[0]](left(scope), value)
        scope.declare("".join(place), value)
        return value

    return run


def _plus(one: Any, two: Any) -> Any:
    if isinstance(one, str) or isinstance(two, str):
        return f"{one}{two}" if one is not UNDEFINED else f"undefined{two}"
    return one + two


def _same(one: Any, two: Any) -> bool:
    return type(one) is type(two) and bool(one == two) if isinstance(one, bool | str) else bool(one == two)


OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": _plus,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "===": _same,
    "!==": lambda a, b: not _same(a, b),
    "==": lambda a, b: _same(a, b) or (a in (None, UNDEFINED) and b in (None, UNDEFINED)),
    "!=": lambda a, b: not _same(a, b),
    "|": lambda a, b: int(truthy(a)) | int(truthy(b)),
    "in": lambda a, b: a in b,
    "instanceof": lambda a, b: isinstance(a, b),
}


def _joined(sign: str, left: Run, right: Run) -> Run:
    if sign == "&&":
        return lambda scope: right(scope) if truthy(left(scope)) else False
    if sign == "||":
        return lambda scope: (lambda value: value if truthy(value) else right(scope))(left(scope))
    return lambda scope: OPERATORS[sign](left(scope), right(scope))


BUILT_IN: Final[dict[str, Any]] = {
    "JSON": {"stringify": lambda value: json.dumps(value, default=str)},
    "Math": {"pow": pow},
    "Array": list,
    "isNaN": lambda value: not isinstance(value, int | float),
}
