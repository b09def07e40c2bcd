"""ports.callback - the ended receipt of a run, as a signed POST to the address that its caller gave.

For: the port `run.ended`: once per end of a run under one `webhook-id`, again until the address answers with 2xx.
Never: connects to an address that is not public on a caller's word; follows a redirect; reads what came back.
Was wrong once: an address judged when it was given. Its name led elsewhere by the time the run had ended. And a limit of
time for each byte alone: an address that answered one now and then held a connection for days.

On a server without keys everybody is on this machine and has all rights: there a callback may go to this machine too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from onefold.actuators.carried import Callback
from onefold.actuators.ending import PORT
from onefold.kernel.port import Port, Standing, Step
from onefold.ports import webhook
from onefold.ports.egress import MAX_URL, NotAllowed, Resolve, Target, address_of, is_public, looked_up, target_of
from onefold.ports.webhook import LOCAL, TIMEOUT_S, message_id
from onefold.terms.errors import PortFailed
from onefold.terms.typed import codec_of

if TYPE_CHECKING:
    import ssl

_PLAIN: Final = frozenset(map(chr, range(0x21, 0x7F)))


def refusal(url: str, *, here: bool) -> str | None:
    """Why nothing may be posted there, in plain words; None when it may. here: whether this machine is among what may
    be called.
    """
    if here and _of_this_machine(url) is not None:
        return None
    try:
        target_of(url)
    except NotAllowed as refused:
        return refused.why
    return None


def callback_port(
    sign: Callable[[str, int, bytes], str],
    now: Callable[[], int],
    *,
    here: bool,
    resolve: Resolve = looked_up,
    public: Callable[[str], bool] = is_public,
    trust: ssl.SSLContext | None = None,
) -> Port[Callback, None]:
    """The port. sign(id, seconds, body): the `webhook-signature`. now: the host's clock in milliseconds. The rest is
    for tests.

    Raises: PortFailed, which names the host and not the path.
    """

    async def ended(step: Step, body: Callback) -> None:
        url, shown, headers, more = await _where(body.url, here, resolve, public, step)
        import httpx2  # only who is called back pays for the client

        id, seconds, written = message_id(body.told), now() // 1000, bytes(body.receipt)
        headers |= {
            "content-type": "application/json",
            "user-agent": "onefold",
            "webhook-id": id,
            "webhook-timestamp": str(seconds),
            "webhook-signature": sign(id, seconds, written),
        }
        verify: Any = True if trust is None else trust
        try:  # no proxy, no netrc, no hop
            client = httpx2.AsyncClient(verify=verify, trust_env=False, follow_redirects=False, timeout=TIMEOUT_S)
            async with asyncio.timeout(webhook.WHOLE_S), client as http:
                asked = http.build_request("POST", url, content=written, headers=headers, extensions=more)
                answer = await http.send(asked, stream=True)
                await answer.aclose()
        except (httpx2.HTTPError, TimeoutError) as error:
            raise PortFailed(PORT, step.key, f"{shown}: {type(error).__name__}") from None
        if not answer.is_success:
            raise PortFailed(PORT, step.key, f"{shown}: the address answered {answer.status_code}")

    return Standing(PORT, ended, codec_of(Callback), codec_of(type(None)))


async def _where(
    url: str, here: bool, resolve: Resolve, public: Callable[[str], bool], step: Step
) -> tuple[str, str, dict[str, str], dict[str, Any]]:
    """The address to connect to, its host as an error may name it, headers, and what the client is told besides."""
    if here and (shown := _of_this_machine(url)) is not None:
        return url, shown, {}, {}
    try:
        target = target_of(url)
    except NotAllowed as refused:
        raise PortFailed(PORT, step.key, f"the callback: {refused.why}") from None
    try:
        address = await address_of(target, resolve, public)
    except NotAllowed as refused:
        raise PortFailed(PORT, step.key, f"{target.shown}: {refused.why}") from None
    return _literal(target, address), target.shown, {"host": _host(target)}, {"sni_hostname": target.host}


def _literal(target: Target, address: str) -> str:
    literal = f"[{address}]" if ":" in address else address
    return f"https://{literal}:{target.port}{target.path}"


def _host(target: Target) -> str:
    return target.origin.removeprefix("https://")


def _of_this_machine(url: str) -> str | None:
    """How an address of this machine may be named in an error; None for all others, and for what cannot be read."""
    if len(url) > MAX_URL or not set(url) <= _PLAIN:
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or parts.hostname not in LOCAL or "@" in parts.netloc or parts.fragment:
        return None
    return f"{parts.scheme}://{parts.hostname}{'' if port is None else f':{port}'}/…"
