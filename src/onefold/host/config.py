"""host.config - one typed value out of everything that may say how an app is run.

For: code arguments, flags, environment, onefold.toml and defaults become one `Config`. What the
code says wins, and a flag that contradicts it is refused; then flags, environment, file, default.
Never: reads a secret before somebody asks for it; holds one in a field, a repr or an error.
Was wrong once: nested tables merged table by table. A person named in the file vanished as soon
as the environment named another. Every layer is flattened to dotted names and merged leaf by leaf.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from onefold.host.settings import (
    KNOWN,
    URL,
    BlobHome,
    Deployed,
    Durability,
    Key,
    Wrong,
    holds_secret,
    no_setting,
    on_postgres,
    shown,
)
from onefold.terms.errors import Finding, LoadRefused
from onefold.terms.ids import NAME, nearest

FILE = "onefold.toml"
PREFIX = "ONEFOLD_"
STORE = "onefold-data"
LISTEN = ("127.0.0.1", 8600)
CAPACITY = 10_000  # residents of one process
LEASE = 10_000  # ms
# ONEFOLD_KEY is the command line's bearer; ONEFOLD_SECRET a usual `secret_env`.
_NOT_SETTINGS = ("key", "secret")
_TABLES = frozenset("spaces node retention smtp people hooks signals deployed".split())
LEAST_SECRET = 16  # bytes; a shorter one can be guessed faster than links expire


@dataclass(frozen=True, slots=True)
class Node:
    """How many actors this process keeps resident. name: with one it is a node of a fleet. advertise: where the others
    reach it. lease: how long it lives without renewing, in milliseconds.
    """

    capacity: int = CAPACITY
    name: str | None = None
    advertise: str | None = None
    lease: int = LEASE


@dataclass(frozen=True, slots=True)
class Retention:
    """How long ended runs, replies, ids, settled reflex runs and facts in are kept, in milliseconds. None: for ever."""

    runs: int | None = None
    replies: int | None = None
    ids: int | None = None
    reflex_runs: int | None = None
    intake: int | None = None


@dataclass(frozen=True, slots=True)
class Smtp:
    """Where mail leaves. `url_env` names the variable that holds smtp://user:password@host:port."""

    url_env: str
    sender: str


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a program may mean by a name, and the URLs that reach them."""

    notify: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hook:
    """The secret a signed door checks, by variable name, and who its calls run as."""

    secret_env: str
    scheme: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Incoming:
    """A signed signal: how its deliveries are signed, by which secrets, and whose facts they become."""

    scheme: str
    secret_env: tuple[str, ...]
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """How an app is run. Built by `settle`; secrets are read by `secret(name)`, when they are needed."""

    app: str | None = None
    store: str = field(default=STORE, repr=False)  # an address may hold a password: `shown` may be seen
    spaces: Mapping[str, str] = field(default_factory=dict, repr=False)
    durability: Durability = "full"
    blobs: BlobHome = "database"
    listen: tuple[str, int] = LISTEN
    public_url: str = "http://127.0.0.1:8600"
    node: Node = Node()
    slots: int | None = None
    retention: Retention = Retention()
    secret_env: tuple[str, ...] = ()
    smtp: Smtp | None = None
    alerts: tuple[str, ...] = ()
    people: Mapping[str, Person] = field(default_factory=dict)
    hooks: Mapping[str, Hook] = field(default_factory=dict)
    signals: Mapping[str, Incoming] = field(default_factory=dict)
    keys: tuple[Key, ...] = ()
    deployed: Deployed = field(default_factory=Deployed)
    file: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def folder(self) -> Path | None:
        """The folder that holds the SQLite files; None for a store in memory or on Postgres."""
        return None if self.store == "memory:" or on_postgres(self.store) else Path(self.store)

    @property
    def shown(self) -> str:
        """The store as people may see it."""
        return shown(self.store)

    @property
    def alone(self) -> bool:
        """Whether one process alone holds the store while it is open."""
        return self.node.name is None and not self.store.startswith(("postgres:", "postgresql:"))

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach `listen`."""
        host = self.listen[0]
        return host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host) is not None

    def secret(self, name: str, asks: str, *, least: int = LEAST_SECRET) -> str:
        """The secret in the variable `name`, which the setting `asks` names, of at least so many bytes (an address that
        holds a password: 1).

        Raises: LoadRefused, naming the variable and the setting, when it is unset or shorter.
        """
        value = self.environ.get(name, "")
        if len(value.encode()) < least:
            why = f"is shorter than {least} bytes" if value else "is not set"
            do = "set it" if least == 1 else f"set it to {least} bytes or more, or name another there"
            raise LoadRefused([Finding(name, f"this variable holds the secret of {asks} and {why}; {do}")])
        return value

    def lacking(self) -> tuple[Finding, ...]:
        """Named variables that hold no secret or too short a one: a start can refuse before the first call meets one."""
        named = [("secret_env", name) for name in self.secret_env]
        named += [(f"key {n} of `keys`", key.secret_env) for n, key in enumerate(self.keys, 1)]
        named += [(f"hooks.{name}", hook.secret_env) for name, hook in self.hooks.items()]
        named += [(f"signals.{name}", one) for name, signal in self.signals.items() for one in signal.secret_env]
        asking = dict[str, tuple[str, int]]()
        for setting, name in named:
            asking.setdefault(name, (setting, LEAST_SECRET))
        if self.smtp:
            asking.setdefault(self.smtp.url_env, ("smtp.url_env", 1))
        findings: list[Finding] = []
        for name, (setting, least) in asking.items():
            try:
                self.secret(name, setting, least=least)
            except LoadRefused as refused:
                findings += refused.findings
        return tuple(findings)


# --- layers ------------------------------------------------------------------------------------------


def find(target: Path | None = None, *, start: Path) -> Path | None:
    """The onefold.toml that counts: the one in `start` (the working folder), else the one beside the target's file."""
    for folder in (start, *([target.parent] if target else [])):
        if (folder / FILE).is_file():
            return folder / FILE
    return None


def settle(
    *,
    code: Mapping[str, Any] | None = None,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Config:
    """Merge every layer into one Config. None in `code` and `flags` means: not said.

    Relative store folders count from the file's folder; without a file, from the working folder.
    Raises: LoadRefused, with one finding for each setting that is unknown, wrong or contradicted.
    """
    findings: list[Finding] = []
    said = _layer("in the code", _said(code), findings)
    asked = _layer("flag", _said(flags), findings)
    for name in said.keys() & asked.keys():
        if said[name] != asked[name]:
            problem = "the code says otherwise, and what the code says wins. Leave the flag out, or change the code"
            findings.append(Finding(f"flag {name}", problem))
    variables, strangers = _environment(environ or {})
    from_env = _layer("environment", variables, findings)
    from_file = _layer(FILE, dict(_flat(_read(file, findings))), findings)
    if file and "store" not in (said | asked | from_env):
        from_file["store"] = _beside(file, from_file.get("store", STORE))
    for name, value in from_file.items():
        if name == "store" or name.startswith("spaces."):
            if file and name != "store":
                from_file[name] = _beside(file, value)
            if holds_secret(value):
                problem = f"a password does not belong in a file; set {_variable(name)}, PGPASSWORD or a password file"
                findings.append(Finding(f"{FILE}: {name}", problem))
    merged = from_file | from_env | asked | said
    findings += _of_fleets(asked | said, merged)
    named = str([value for name, value in merged.items() if name.endswith(("_env", "keys"))])
    secret = [one for one in merged.get("deployed.environment", ()) if f"'{one}'" in named]
    findings += [Finding("deployed.environment", f"{one} holds a secret of the host's own") for one in secret]
    for variable, meant in strangers.items():
        if f"'{variable}'" not in named:
            findings.append(Finding(variable, f"there is no such setting; did you mean {meant}?"))
    return _build(merged, file, environ or {}, findings)


def _said(layer: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in _flat(layer or {}) if value is not None}


def _beside(file: Path, store: str) -> str:
    return store if store == "memory:" or on_postgres(store) else str(file.parent / store)


def _variable(name: str) -> str:
    return f"{PREFIX}{name.upper().replace('.', '__')}"


def _flat(table: Mapping[str, Any], under: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        dotted = f"{under}{name}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{dotted}.")
        elif dotted == "node":
            yield "node.name", value
        else:
            yield dotted, value


def _read(file: Path | None, findings: list[Finding]) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        findings.append(Finding(str(file), f"cannot be read: {error}"))
        return {}


def _environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The settings among the variables, and those that are nearly one, with the one they may have meant.

    Others that merely begin alike are left alone: a cluster sets ONEFOLD_PORT for a service of this name.
    """
    found: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    strangers: dict[str, str] = {}
    for variable, raw in environ.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable[len(PREFIX) :].lower().replace("__", ".")
        if _pattern(name):
            found[name] = _from_text(raw)
        elif name.partition(".")[0] in _TABLES and isinstance(table := _from_text(raw), dict):
            tables |= _flat(table, f"{name}.")
        elif name not in _NOT_SETTINGS and (near := nearest(name, KNOWN)):
            strangers[variable] = _variable(near)
    return tables | found, strangers


def _from_text(raw: str) -> Any:
    """A variable holds text as it is; lists and tables are written as in the file."""
    if raw[:1] not in "[{":
        return raw
    try:
        return tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return raw


def _pattern(name: str) -> str | None:
    """The name under which KNOWN has it, with * for a name that people choose."""
    parts = name.split(".")
    if len(parts) == 3 and NAME.fullmatch(parts[1]):
        parts[1] = "*"
    if len(parts) == 2 and parts[0] == "spaces" and NAME.fullmatch(parts[1]):
        parts[1] = "*"
    dotted = ".".join(parts)
    return dotted if dotted in KNOWN else None


def _layer(where: str, values: Mapping[str, Any], findings: list[Finding]) -> dict[str, Any]:
    """The values of one layer, each checked. What is wrong becomes a finding and is left out."""
    good: dict[str, Any] = {}
    for name, value in values.items():
        pattern = _pattern(name)
        try:
            if pattern is None:
                raise Wrong(no_setting(name))
            good[name] = KNOWN[pattern](value)
        except Wrong as wrong:
            findings.append(Finding(f"{where}: {name}", str(wrong)))
    return good


# --- the value -----------------------------------------------------------------------------------------


def _build(merged: Mapping[str, Any], file: Path | None, environ: Mapping[str, str], findings: list[Finding]) -> Config:
    def under(table: str) -> dict[str, dict[str, Any]]:
        named: dict[str, dict[str, Any]] = {}
        for dotted, value in merged.items():
            if dotted.startswith(f"{table}."):
                _, name, part = dotted.split(".")
                named.setdefault(name, {})[part] = value
        return named

    def known(name: str, default: Any) -> Any:
        return merged.get(name, default)

    spaces, hooks, signals = _spaces(merged, findings), under("hooks"), under("signals")
    for name, parts in hooks.items():
        _needs(parts, f"hooks.{name}", ("secret_env",), findings)
    for name, parts in signals.items():
        _needs(parts, f"signals.{name}", ("scheme", "secret_env"), findings)
    people = {name: Person(**parts) for name, parts in under("people").items()}
    alerts = known("alerts", ())
    refused = {one.where.partition("people.")[2].removesuffix(".notify") for one in findings}
    for name in alerts:
        if name not in people and name not in refused and not URL.fullmatch(name):
            findings.append(Finding("alerts", f"{name!r} is neither one of [people] nor an address"))
    if smtp := {part: merged[f"smtp.{part}"] for part in ("url_env", "from") if f"smtp.{part}" in merged}:
        _needs(smtp, "smtp", ("url_env", "from"), findings)
    if findings:
        raise LoadRefused(findings)
    host, port = listen = known("listen", LISTEN)
    return Config(
        app=known("app", None),
        store=known("store", STORE),
        spaces=spaces,
        durability=known("durability", "full"),
        blobs=known("blobs", "database"),
        listen=listen,
        public_url=known("public_url", f"http://{f'[{host}]' if ':' in host else host}:{port}"),
        node=Node(**{part.name: known(f"node.{part.name}", part.default) for part in fields(Node)}),
        slots=known("slots", None),
        retention=Retention(**{kept.name: known(f"retention.{kept.name}", None) for kept in fields(Retention)}),
        secret_env=known("secret_env", ("ONEFOLD_SECRET",) if environ.get("ONEFOLD_SECRET") else ()),
        smtp=Smtp(smtp["url_env"], smtp["from"]) if smtp else None,
        alerts=alerts,
        people=people,
        hooks={name: Hook(**parts) for name, parts in hooks.items()},
        signals={name: Incoming(**parts) for name, parts in signals.items()},
        keys=known("keys", ()),
        deployed=Deployed(known("deployed.environment", ())),
        file=file,
        environ=environ,
    )


def _of_fleets(here: Mapping[str, Any], merged: Mapping[str, Any]) -> list[Finding]:
    """What is said for this process, and only a node of a fleet may say. A file may be that of several, nodes and commands."""
    told = "is of a fleet; give this process a `node.name`, or leave it out"
    named = [] if "node.name" in merged else ["slots", "node.advertise", "node.lease"]
    return [Finding(name, told) for name in named if name in here]


def _spaces(merged: Mapping[str, Any], findings: list[Finding]) -> dict[str, str]:
    """Which spaces are moved, and where; what does not go together of where things lie is found."""
    spaces = {name.partition(".")[2]: store for name, store in merged.items() if name.startswith("spaces.")}
    store = merged.get("store", STORE)
    if "main" in spaces:
        findings.append(Finding("spaces.main", "`store` says where main is; leave it out"))
    if spaces and store == "memory:":
        findings.append(Finding("spaces", "a store in memory has all of its spaces there"))
    if merged.get("blobs") == "files" and (on_postgres(store) or any(map(on_postgres, spaces.values()))):
        findings.append(Finding("blobs", 'they lie in the database on Postgres; leave out blobs = "files"'))
    return spaces


def _needs(said: Mapping[str, Any], where: str, parts: tuple[str, ...], findings: list[Finding]) -> None:
    findings.extend(Finding(where, f"does not say {part!r}") for part in parts if part not in said)
