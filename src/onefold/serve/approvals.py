"""serve.approvals - the page behind an approval link, and the inbox of all that wait.

For: GET and HEAD show and decide nothing; a form with its own token decides, once; a page for each
way a link can be dead.
Never: keeps or logs a token; sniffs who is looking (a preview and a person get the same page);
decides by GET; shows the arguments of a link that is not open.
Was wrong once: a link that decided when opened. A chat's preview approved a refund before anybody
had read it.

The link's right is its token. The form's own token is derived from it by MAC, so nothing is stored,
and only a page that was rendered for this link can post to it.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, Final, Literal, cast

from onefold.serve import bodies
from onefold.serve.door import Choice, Host, LinkPage
from onefold.serve.pages import LINK_PAGE, own_page, page
from onefold.serve.problems import BadRequest, NotThisPage
from onefold.serve.routes import Answer, Ask, Route
from onefold.terms.codec import canonical, digest
from onefold.terms.errors import BadArguments, Fault, NotFound

REASON_MOST: Final = 2000  # characters; it goes to the run, to the agent and into the log of decisions
OPERATE: Final = frozenset({"operate"})
GONE, MISSING = 410, 404


def nonce_of(token: str, link: LinkPage) -> str:
    """The form's token for this link: a MAC under the link's own token, over what is decided."""
    what = "\0".join(("onefold approval form", link.run_id, link.name, link.choice))
    return hmac.new(token.encode("utf-8", "replace"), what.encode(), hashlib.sha256).hexdigest()


def shown_digest(shown: Any) -> str:
    """By what an inbox's form says what its reader saw."""
    return digest(canonical(shown)).hex()


class Approvals:
    """The routes of people who decide."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/approve", self.inbox, OPERATE, page=True),
            Route("GET", "/approve/{token}", self.show, None, page=True),
            Route("POST", "/approve/{token}", self.decide, None, page=True),
            Route("POST", "/console/approvals/{id}/{name}", self.decide_here, OPERATE, page=True),
        ]

    # --- by link -----------------------------------------------------------------------------------

    async def show(self, ask: Ask) -> Answer:
        """The page. Opening it any number of times changes nothing."""
        link = await self.host.link_page(ask.params["token"])
        return self._page(ask, link)

    async def decide(self, ask: Ask) -> Answer:
        """One tap. Only the first of any number decides; every later one is told who did."""
        token = ask.params["token"]
        fields = await bodies.form(ask.scope, ask.receive)
        link = await self.host.link_page(token)
        if link.state != "open":
            return self._page(ask, link)
        if not hmac.compare_digest(fields.get("nonce", "").encode(), nonce_of(token, link).encode()):
            raise NotThisPage
        if fields.get("choice") != link.choice:
            raise BadRequest([Fault("choice", f"this link can only {link.choice}")], nothing_was="decided")
        reason = reason_of(fields)
        decided = await self.host.link_decide(token, choice=link.choice, reason=reason, by=None)
        return self._page(ask, decided, first=decided.outcome == "decided")

    def _page(self, ask: Ask, link: LinkPage, *, first: bool = False) -> Answer:
        state: str = "done" if first else link.state
        status = {"open": 200, "done": 200, "unknown": MISSING}.get(state, GONE)
        values: dict[str, Any] = {"state": state, "link": link, "reason_most": REASON_MOST, "nav": False}
        if state == "open":
            values["nonce"] = nonce_of(ask.params["token"], link)
        values["verb"] = _verb(link, first=first) if state in ("done", "decided") else None
        return page("approve.html", ask, values, now_ms=self.host.clock.now(), status=status, headers=LINK_PAGE)

    # --- by inbox ----------------------------------------------------------------------------------

    async def inbox(self, ask: Ask) -> Answer:
        ask.queries()
        waiting = await self.host.approvals_list(caller=ask.caller)
        values = {
            "waiting": [(one, shown_digest(one.shown)) for one in waiting],
            "reason_most": REASON_MOST,
            "nav": "approvals",
        }
        return page("inbox.html", ask, values, now_ms=self.host.clock.now())

    async def decide_here(self, ask: Ask) -> Answer:
        """A form of the inbox. What its reader saw must still be what would happen."""
        own_page(ask)
        fields = await bodies.form(ask.scope, ask.receive)
        run_id, name = ask.params["id"], ask.params["name"]
        choice = fields.get("choice")
        if choice not in ("approve", "reject"):
            raise BadRequest([Fault("choice", "must be approve or reject")], nothing_was="decided")
        reason = reason_of(fields)
        found = [
            one for one in await self.host.approvals_list(caller=ask.caller) if (one.run_id, one.name) == (run_id, name)
        ]
        if found and not hmac.compare_digest(fields.get("shown", "").encode(), shown_digest(found[0].shown).encode()):
            return self._told(ask, "changed", run_id, name, None)
        approve = choice == "approve"
        try:
            verdict = await self.host.approvals_decide(
                run_id,
                name,
                approve=approve,
                by=ask.caller.name,
                reason=None if approve else reason,
                comment=reason if approve else None,
                caller=ask.caller,
            )
        except NotFound:
            return self._told(ask, "unknown", run_id, name, None)
        return self._told(ask, verdict.outcome, run_id, name, verdict, cast("Choice", choice))

    def _told(
        self, ask: Ask, outcome: str, run_id: str, name: str, verdict: Any, choice: Choice | None = None
    ) -> Answer:
        verb = None if choice is None else {"approve": "approved", "reject": "rejected"}[choice]
        values = {
            "outcome": outcome,
            "run_id": run_id,
            "name": name,
            "verdict": verdict,
            "verb": verb,
            "nav": "approvals",
        }
        status = {"decided": 200, "unknown": MISSING}.get(outcome, GONE)
        return page("verdict.html", ask, values, now_ms=self.host.clock.now(), status=status)


def _verb(link: LinkPage, *, first: bool) -> Literal["approved", "rejected"] | None:
    """What was decided, in a word; None where the link does not say."""
    said = link.choice if first else (link.outcome or "")
    if said.startswith("approve"):
        return "approved"
    return "rejected" if said.startswith("reject") else None


def reason_of(fields: dict[str, str]) -> str | None:
    """The reason somebody wrote, or None. Raises: BadArguments when it is too long."""
    reason = fields.get("reason", "").replace("\r\n", "\n").strip()
    if len(reason) > REASON_MOST:
        raise BadArguments([Fault("reason", f"must have at most {REASON_MOST} characters")], nothing_was="decided")
    return reason or None
