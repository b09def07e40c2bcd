"""serve.mcp.telling - how a receipt reads to an agent.

For: the result of a call in every state a run may be in; the one sentence about what it waits for.
Never: structured content beside a fault; a first line that could be read as "done".
Was wrong once: a waiting call that answered only with JSON. Models read `"status": "waiting"` past
the first brace and told their users the money was on its way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from onefold.serve.problems import failure, spoken
from onefold.serve.receipts import POLL_SECONDS
from onefold.terms.codec import canonical
from onefold.terms.errors import OnefoldError

RUN_ID: Final = "onefold/runId"
COMPLETE: Final = {"resultType": "complete"}  # asked for since 2026-07-28; earlier eras never see it
_SHOWN: Final = 3  # waits told in the sentence; all of them are in the receipt

Receipt = Mapping[str, Any]


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def fault(tool: str, error: OnefoldError) -> dict[str, Any]:
    """A result that says what did not happen, as text only."""
    return {"content": [text(spoken(tool, error))], "isError": True, **COMPLETE}


def called(receipt: Receipt) -> dict[str, Any]:
    """What a call came to: the receipt when done, a first line that says so when not, a fault when it went wrong."""
    bad = trouble(receipt)
    return looked_at(receipt) if bad is None else bad


def trouble(receipt: Receipt) -> dict[str, Any] | None:
    """The fault a run ended in, naming run, step, attempts and error; None for a run that goes on or is done."""
    bad = failure(receipt)
    if bad is None:
        return None
    sentence = f"{receipt['program']}: {bad}"
    attempts = (receipt.get("error") or {}).get("attempts")
    if isinstance(attempts, int):
        sentence += f" It was tried {attempts} time{'s' if attempts != 1 else ''}."
    return {"content": [text(sentence)], "isError": True, "_meta": {RUN_ID: receipt["run_id"]}, **COMPLETE}


def looked_at(receipt: Receipt) -> dict[str, Any]:
    """A receipt that somebody asked for: never a fault, and in words first when the run is not done."""
    written = text(canonical(dict(receipt)).decode())
    first = [] if receipt["status"] == "done" else [text(opening(receipt))]
    return {
        "content": [*first, written],
        "structuredContent": receipt,
        "isError": False,
        "_meta": {RUN_ID: receipt["run_id"]},
        **COMPLETE,
    }


def listed(receipts: Sequence[Receipt], after: str | None) -> dict[str, Any]:
    page: dict[str, Any] = {"items": list(receipts)}
    if after is not None:
        page["next"] = after
    return {"content": [text(canonical(page).decode())], "structuredContent": page, "isError": False, **COMPLETE}


def opening(receipt: Receipt) -> str:
    """The first line about a run that is not done."""
    bad = failure(receipt)
    if bad is not None:
        return f"{receipt['program']}: {bad}"
    seconds = receipt.get("poll_after_seconds", POLL_SECONDS)
    return (
        f"Not finished: {standing(receipt)}. Call get_run with run_id {receipt['run_id']} after {seconds} seconds "
        f"or later to see how it ended. Do not call {receipt['program']} again for the same thing."
    )


def standing(receipt: Receipt) -> str:
    """What a run does now: `refund_order is waiting for approval "manager" until 2026-12-01T09:00:00Z`."""
    waits = [_wait(wait) for wait in receipt.get("waits", ())]
    if not waits:
        return f"{receipt['program']} is still running"
    more = f" and {len(waits) - _SHOWN} more" if len(waits) > _SHOWN else ""
    return f"{receipt['program']} is waiting {', and '.join(waits[:_SHOWN])}{more}"


def _wait(wait: Mapping[str, Any]) -> str:
    until = wait.get("until")
    ends = f" until {until}" if until else ""
    match wait["kind"]:
        case "sleep":
            return ends.strip() or "asleep"
        case "retry":
            return f'to try step "{wait["name"]}" again{f" at {until}" if until else ""}'
        case "child":
            return f'for its run of "{wait["name"]}"'
        case kind:
            return f'for {kind} "{wait["name"]}"{ends}'
