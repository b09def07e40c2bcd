"""The effect `notify`: people of the app are told, and nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from onefold.ports.mail import mail_way
from onefold.ports.notify import Memo, Reaching, console_text
from onefold.ports.telling import NotifyEffect
from onefold.ports.webhook import signature, webhook_way
from onefold.reflex.seams import Task
from onefold.terms.codec import parse
from onefold.terms.errors import BadArguments, PortFailed
from onefold.terms.instant import moment
from tests.ports.conftest import NOON, Post, Web

SECRET = b"s" * 32


def attempt(key: str = "k1") -> Task:
    return Task(key, moment(NOON), 1, "studio_42", lambda fact: None)


def effect(post: Post, web: Web, said: list[str]) -> NotifyEffect:
    people = {"owner": ("mailto:owner@example.com",), "bridge": (web.url,)}
    hook = webhook_way(signature([SECRET]), lambda: NOON)
    mail = mail_way(lambda: f"smtp://127.0.0.1:{post.port}", "onefold@example.com")
    return NotifyEffect(Reaching(people, {"mailto": mail, "http": hook}, said.append, show_links=False), people)


async def test_people_are_told_by_mail_and_by_webhook(post: Post, web: Web) -> None:
    said: list[str] = []
    given = {
        "to": ["owner", "bridge", "owner"],
        "subject": "12 cards declined",
        "message": "Look:\nhttps://x.example.com",
    }
    assert await effect(post, web, said).run(attempt(), given) == {"told": ["owner", "bridge"]}
    (letter,) = post.letters
    assert (letter["Subject"], letter["To"]) == ("12 cards declined", "owner@example.com")
    assert letter.get_payload() == "Look:\r\nhttps://x.example.com\r\n"
    ((headers, body),) = web.posted
    assert parse(body) == {
        "type": "reflex.notice",
        "timestamp": "2027-01-15T08:00:00Z",
        "data": {"subject": "12 cards declined", "message": "Look:\nhttps://x.example.com"},
    }
    assert headers["webhook-signature"].startswith("v1,")
    assert said == ["12 cards declined: Look: https://x.example.com"]


async def test_a_retry_tells_only_who_was_not_reached(post: Post, web: Web) -> None:
    notify = effect(post, web, [])
    given = {"to": ["owner", "bridge"], "message": "hello"}
    web.status = 500
    with pytest.raises(PortFailed, match="bridge was not told"):
        await notify.run(attempt(), given)
    web.status = 204
    await notify.run(attempt(), given)
    assert len(post.letters) == 1
    ids = {headers["webhook-id"] for headers, _ in web.posted}
    assert len(ids) == 1


@pytest.mark.parametrize(
    "change, field, problem",
    [
        ({"to": ["onwer"]}, "to[0]", "did you mean 'owner'?"),
        ({"to": ["mailto:all@example.com"]}, "to[0]", "nobody in [people]"),
        ({"to": ["https://evil.example.com"]}, "to[0]", "nobody in [people]"),
        ({"to": [5]}, "to[0]", "nobody in [people]"),
        ({"to": []}, "to", "a list of names"),
        ({"to": "owner"}, "to", "a list of names"),
        ({"message": ""}, "message", "must be text"),
        ({"message": "x" * 20_001}, "message", "1 to 20000"),
        ({"message": "\ud800"}, "message", "must be text"),
        ({"subject": 5}, "subject", "must be text"),
        ({"mesage": "x"}, "mesage", "did you mean 'message'?"),
    ],
)
async def test_what_cannot_be_told_is_refused(post: Post, web: Web, change: Any, field: str, problem: str) -> None:
    notify = effect(post, web, [])
    with pytest.raises(BadArguments) as told:
        await notify.run(attempt(), {"to": ["owner"], "message": "x", **change})
    assert [fault.field for fault in told.value.faults] == [field]
    assert problem in told.value.faults[0].problem
    assert (post.letters, web.posted) == ([], [])


def test_a_preview_names_whom_and_what(post: Post, web: Web) -> None:
    assert effect(post, web, []).show({"to": ["owner"], "message": "12 declined\nmore"}) == "tell owner: 12 declined"
    with pytest.raises(BadArguments):
        effect(post, web, []).show(None)


def test_a_memo_is_one_line_on_the_console() -> None:
    assert console_text(Memo("a\x1b[2J", "b\nc", ("x",)), None) == "a\N{REPLACEMENT CHARACTER}[2J: b c"
