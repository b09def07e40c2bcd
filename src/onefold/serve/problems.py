"""serve.problems - one error, told at every door: as problem+json over HTTP, as text to an agent.

For: the sentence of an OnefoldError, its status, its fields; the few refusals that only HTTP knows.
Never: the text of a foreign exception (it may hold a secret); a link's token in `instance`.
Was wrong once: one try block a route. Two of them answered 500 to what the others called 404.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onefold.terms.codec import canonical
from onefold.terms.errors import (
    BadArguments,
    Broken,
    Busy,
    CallerError,
    Fault,
    LoadRefused,
    OnefoldError,
    OwnedElsewhere,
    RunCancelled,
    RunFailed,
    RunParked,
    TooLarge,
)
from onefold.terms.faults import short
from onefold.terms.limits import MAX_KEY_BYTES
from onefold.terms.turns import TurnFailed

PROBLEM = b"application/problem+json"


class MalformedJson(BadArguments):
    """A body that is no JSON of ours: NaN, a key twice, a lone surrogate, NUL, too deep, too long a number."""

    status = 400
    code = "bad_arguments"


class BadRequest(BadArguments):
    """A request that HTTP itself makes no sense of: a length that is no number, a body that never came."""

    status = 400
    code = "bad_arguments"


class SlowBody(BadRequest):
    """A body that came too slowly, byte by byte."""

    status = 408


class MethodNotAllowed(CallerError):
    status = 405

    def __init__(self, method: str, allowed: Sequence[str]) -> None:
        self.method = method
        self.allowed = tuple(allowed)
        super().__init__(f"{method} is not served here. Use {' or '.join(self.allowed)}.")


class NoFleet(CallerError):
    """This process is no node of one."""

    status = 404
    exit = 4

    def __init__(self) -> None:
        super().__init__(
            "There is no fleet here: this process is no node of one. Give each process a name: --node NAME."
        )


class HostRefused(CallerError):
    """A Host header that nobody configured: perhaps a foreign page whose name was pointed at this machine."""

    status = 421

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(
            f"The host {host[:100]!r} is not one of this server's names, so nothing was done. "
            "Use the address it listens on, or set `public_url`."
        )


class NotThisPage(CallerError):
    """A decision by link that the page behind it did not send."""

    status = 403
    code = "forbidden"

    def __init__(self) -> None:
        super().__init__(
            "Nothing was decided: this was not sent by the page behind the link, or by one that has changed since. "
            "Open the link again and decide there."
        )


class OriginRefused(CallerError):
    status = 403

    def __init__(self, origin: str) -> None:
        self.origin = origin
        super().__init__(
            f"Requests from pages of {origin[:100]!r} are not taken, so nothing was done. "
            "Send it from that page's own server, or set `public_url` to the address the page has."
        )


class Unexpected(Broken):
    """An exception no door knows. Its own text stays in the log of the process: it may hold a secret."""

    code = "broken"

    def __init__(self, kind: str, where: str) -> None:
        super().__init__(f"an unexpected {kind} at {where}")


@dataclass(frozen=True, slots=True)
class Told:
    """An error as HTTP tells it: status, headers beside the content type, and the body's bytes."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


def title(error: OnefoldError) -> str:
    return error.code.replace("_", " ").capitalize()


def faults_of(error: OnefoldError) -> Sequence[Fault]:
    return error.faults if isinstance(error, BadArguments) else ()


def problem(error: OnefoldError, instance: str) -> dict[str, Any]:
    """The error as RFC 9457 has it, plus `code`, `retry`, and what applies of errors, findings, run_id."""
    told: dict[str, Any] = {
        "type": f"urn:onefold:{error.code}",
        "title": title(error),
        "status": error.status,
        "code": error.code,
        "retry": error.retry,
        "instance": instance,
        "detail": str(error),
    }
    if isinstance(error, BadArguments):
        told["errors"] = [_fault(fault) for fault in error.faults]
    if isinstance(error, LoadRefused):
        told["findings"] = [{"where": one.where, "problem": one.problem, "level": one.level} for one in error.findings]
    if isinstance(error, RunFailed | RunCancelled | RunParked):
        told["run_id"] = error.run_id
    if isinstance(error, TurnFailed):
        told["turn"] = {"kind": error.kind, **error.fields}
    return told


def _fault(fault: Fault) -> dict[str, Any]:
    told: dict[str, Any] = {"field": short(fault.field), "problem": fault.problem}
    if fault.got is not None:
        told["got"] = _got(fault.got)
    return told


def _got(got: Any) -> Any:
    """What came, as JSON; of much, its beginning as text: who sent it has it."""
    if isinstance(got, int | float | bool):
        return got
    text = got if isinstance(got, str) else repr(got)
    return short(text) if len(text) > MAX_KEY_BYTES or not isinstance(got, list | dict) else got


def told(error: OnefoldError, instance: str) -> Told:
    """The error as status, headers and body. What cannot be written as JSON is told without its `got`."""
    headers: list[tuple[bytes, bytes]] = [(b"content-type", PROBLEM), (b"cache-control", b"no-store")]
    if error.status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="onefold"'))
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", ", ".join(error.allowed).encode()))
    if isinstance(error, TooLarge | SlowBody):
        headers.append((b"connection", b"close"))  # what was not read must not be taken for the next request
    if isinstance(error, Busy | OwnedElsewhere) or error.status == 503:
        headers.append((b"retry-after", b"1"))
    picture = problem(error, instance)
    try:
        body = canonical(picture)
    except (OnefoldError, TypeError, ValueError):
        for entry in picture.get("errors", ()):
            entry.pop("got", None)
        body = canonical(_plain(picture))
    return Told(error.status, tuple(headers), body)


def _plain(value: Any) -> Any:
    """The same with texts that every reader takes: lone surrogates and NUL replaced."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def spoken(tool: str, error: OnefoldError) -> str:
    """How a fault reads to an agent: one line that says what did not happen, then a line a field."""
    if isinstance(error, BadArguments):
        return "\n".join([f"{tool}: nothing was {error.nothing_was}.", *(f"- {fault}" for fault in error.faults)])
    return f"{tool}: {error}"


def failure(receipt: Mapping[str, Any]) -> OnefoldError | None:
    """What became of a run that ended badly or is parked, as its error; None for any other receipt."""
    run_id = str(receipt["run_id"])
    error: Mapping[str, Any] = receipt.get("error") or {}
    code, message = str(error.get("code", "failed")), str(error.get("message", ""))
    match receipt["status"]:
        case "failed":
            kind, colon, rest = message.partition(": ")
            named = (kind, rest) if colon and kind.replace(".", "_").isidentifier() else (code, message)
            return RunFailed(run_id, error.get("step"), *named)
        case "cancelled":
            return RunCancelled(run_id, message or None)
        case "parked":
            return RunParked(run_id, message or code)
        case _:
            return None
