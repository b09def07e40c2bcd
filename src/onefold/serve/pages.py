"""serve.pages - HTML out of templates, with every value as text.

For: the templates with autoescape, the headers of a page, the two files beside them.
Never: builds HTML in code; loads anything from elsewhere; trusts a value to be short or printable.
Was wrong once: escaping alone. A message with a right-to-left override read "approve 100" for 001;
control and direction characters are shown as what they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from onefold.serve.door import Json
from onefold.serve.problems import OriginRefused, title
from onefold.serve.routes import Answer, Ask, Route
from onefold.serve.times import away, spoken, written
from onefold.terms.errors import OnefoldError, UnknownName

if TYPE_CHECKING:
    from jinja2 import Environment

HTML: Final = (b"content-type", b"text/html; charset=utf-8")
_CSP: Final = (
    b"default-src 'none'; style-src 'self'; img-src 'self'; %b"
    b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_QUIET: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"x-robots-tag", b"noindex, nofollow"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
LINK_PAGE: Final = (HTML, *_QUIET, (b"referrer-policy", b"no-referrer"), (b"content-security-policy", _CSP % b""))
CONSOLE_PAGE: Final = (
    HTML,
    *_QUIET,
    (b"referrer-policy", b"same-origin"),
    (b"content-security-policy", _CSP % b"script-src 'self'; connect-src 'self'; "),
)
STATIC: Final = {
    "onefold.css": b"text/css; charset=utf-8",
    "live.js": b"text/javascript; charset=utf-8",
    "icon.svg": b"image/svg+xml",
}

# What changes how other text is read, or is not to be seen at all.
_UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
SHORT_ID: Final = 20
_SHOWN: Final = 20_000  # characters of one value; the whole of it is one request away


def plain(value: object) -> str:
    """Text as it is, with unseen characters named and what is too long cut."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    if len(text) > _SHOWN:
        text = f"{text[:_SHOWN]}… ({len(text) - _SHOWN} characters more)"
    return _UNSEEN.sub(lambda found: f"[U+{ord(found[0]):04X}]", text.encode("utf-8", "replace").decode())


def pretty(value: Json) -> str:
    """JSON for reading; a bare text without its quotes."""
    if isinstance(value, str):
        return plain(value)
    return plain(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def short(id: object) -> str:
    """An id where a table has no room: its ends. The whole of it is in the link and on its own page."""
    text = plain(id)
    return text if len(text) <= SHORT_ID else f"{text[:11]}…{text[-4:]}"


def failure_of(error: Json) -> str:
    """A journaled failure in a line, `HTTPError: 502`; other shapes as JSON."""
    if isinstance(error, dict) and isinstance(error.get("message"), str) and not error.get("data"):
        return plain(f"{error.get('kind') or error.get('code') or 'failed'}: {error['message']}")
    return pretty(error)


def rows_of(shown: Json) -> list[tuple[str, Json]]:
    """What is to be approved as name and value; anything but an object is one row without a name."""
    return list(shown.items()) if isinstance(shown, dict) else [("", shown)]


@cache
def environment() -> Environment:
    """The templates. Loaded with the first page, not with the server."""
    from jinja2 import Environment as Templates
    from jinja2 import FunctionLoader, StrictUndefined

    folder = files("onefold.serve") / "templates"
    templates = Templates(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "plain": plain,
        "pretty": pretty,
        "rows": rows_of,
        "short": short,
        "failure": failure_of,
        "spoken": spoken,
        "written": written,
        "segment": lambda value: quote(str(value), safe=""),
    }
    templates.tests["wide"] = lambda value: isinstance(value, dict | list | tuple)
    return templates


def page(
    template: str,
    ask: Ask,
    values: Mapping[str, Any],
    *,
    now_ms: int,
    status: int = 200,
    headers: tuple[tuple[bytes, bytes], ...] = CONSOLE_PAGE,
) -> Answer:
    """A page. Templates get `base` (the mounted path), `caller`, `away(instant)`, and `values`."""
    html = (
        environment()
        .get_template(template)
        .render(base=quote(ask.base), caller=ask.caller, away=lambda at: away(at, now_ms), **values)
    )
    return Answer(status, html.encode("utf-8", "replace"), headers)


def fault(error: OnefoldError, ask: Ask, *, now_ms: int) -> Answer:
    """A fault on a page's route, as a page. The console's frame is for those who are in it."""
    signed_in = bool(ask.caller.rights)
    values = {"heading": title(error), "sentence": str(error), "nav": signed_in}
    headers = CONSOLE_PAGE if signed_in else LINK_PAGE
    return page("fault.html", ask, values, now_ms=now_ms, status=error.status, headers=headers)


def own_page(ask: Ask) -> None:
    """Raises: OriginRefused unless the browser says that a page of this server posts.

    A foreign Origin was refused before; here none at all is, too. A script with a key has the JSON routes.
    """
    if ask.header(b"origin") is None and ask.header(b"sec-fetch-site") != "same-origin":
        raise OriginRefused("nowhere")


async def static(ask: Ask) -> Answer:
    """The style sheet, the one script, the icon. They hold nothing of anybody, so everybody may have them. Raises:
    UnknownName.
    """
    name = ask.params["file"]
    if name not in STATIC:
        raise UnknownName("file", name)
    body = (files("onefold.serve") / "static" / name).read_bytes()
    kept = (b"cache-control", b"public, max-age=300")
    return Answer(200, body, ((b"content-type", STATIC[name]), kept, (b"x-content-type-options", b"nosniff")))


def static_route() -> Route:
    return Route("GET", "/console/static/{file}", static, None)
