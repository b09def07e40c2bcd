"""A notice reaches whom it names, once for each, and shows a link to nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefold.kernel.port import Port, Step
from onefold.ports.notify import Links, Notice, Reaching, Unsent, Way, console_text, notify_port, plain
from onefold.terms.errors import PortFailed
from onefold.terms.instant import moment
from tests.ports.conftest import NOON, PAIR, asked

STEP = Step("k1", moment(NOON), 1, None)


class Ways:
    """Targets that take what they get, but those named in `down`."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.down: set[str] = set()

    async def __call__(self, url: str, ask: Notice, links: Links | None, message_id: str, at: datetime) -> None:
        assert (links, at) == (PAIR, moment(NOON))
        if url in self.down:
            raise Unsent("did not get the mail: the server answered 451")
        self.told.append((url, message_id))


def port_to(
    way: Way | None, said: list[str], *, show_links: bool = False, people: Mapping[str, Any] | None = None
) -> Port:
    ways = {} if way is None else {"mailto": way, "https": way}
    return notify_port(Reaching(people or {}, ways, said.append, show_links=show_links), lambda ask: PAIR)


async def test_each_target_of_each_person_is_told() -> None:
    ways, said = Ways(), list[str]()
    people = {"shop": ("mailto:a@example.com", "https://hooks.example.com/1"), "owner": ("mailto:b@example.com",)}
    notify = port_to(ways, said, people=people)
    await notify.function(STEP, asked(notify=("shop", "owner", "mailto:c@example.com")))
    assert [url for url, _ in ways.told] == [
        *people["shop"],
        *people["owner"],
        "mailto:c@example.com",
    ]


async def test_a_repeat_carries_the_same_id_and_only_goes_where_it_has_not_been() -> None:
    ways, said = Ways(), list[str]()
    notify = port_to(ways, said)
    ways.down = {"mailto:b@example.com"}
    ask = asked(notify=("mailto:a@example.com", "mailto:b@example.com"))
    with pytest.raises(PortFailed):
        await notify.function(STEP, ask)
    ways.down = set()
    await notify.function(STEP, ask)
    assert [url for url, _ in ways.told] == ["mailto:a@example.com", "mailto:b@example.com"]
    again = Ways()
    await port_to(again, said).function(STEP, ask)
    assert again.told == ways.told


async def test_two_notices_and_two_targets_never_share_an_id() -> None:
    ways = Ways()
    notify = port_to(ways, [])
    ask = asked(notify=("mailto:a@example.com", "mailto:b@example.com"))
    await notify.function(STEP, ask)
    await notify.function(Step("k2", moment(NOON), 1, None), ask)
    assert len({id for _, id in ways.told}) == 4


async def test_a_retry_is_said_once_on_the_console() -> None:
    ways, said = Ways(), list[str]()
    notify = port_to(ways, said)
    ways.down = {"mailto:manager@example.com"}
    for attempt in (1, 2, 3):
        with pytest.raises(PortFailed):
            await notify.function(Step("k1", moment(NOON), attempt, None), asked())
    assert len(said) == 1


async def test_links_are_printed_only_where_somebody_develops() -> None:
    shown, hidden = list[str](), list[str]()
    await port_to(Ways(), shown, show_links=True).function(STEP, asked())
    await port_to(Ways(), hidden).function(STEP, asked())
    assert "YES-TOKEN" in shown[0]
    assert "NO-TOKEN" in shown[0]
    assert "TOKEN" not in hidden[0]
    assert "onefold approve run_1 manager --yes | --no" in hidden[0]


@pytest.mark.parametrize(
    "notify, told",
    [
        (("nobody",), "nobody is nobody in [people]"),
        (("ftp://files.example.com",), "is nobody in [people] and no address"),
        (("mailto:a@example.com",), "no mail server is set up"),
        (("https://hooks.example.com/T0K3N",), "https://hooks.example.com/… is nobody"),
    ],
)
async def test_a_notice_that_reaches_nobody_fails_and_says_why(notify: tuple[str, ...], told: str) -> None:
    with pytest.raises(PortFailed) as caught:
        await port_to(None, []).function(STEP, asked(notify=notify))
    assert told in str(caught.value)
    assert "T0K3N" not in str(caught.value)


async def test_without_a_mail_server_the_console_is_enough_where_somebody_develops() -> None:
    said: list[str] = []
    await port_to(None, said, show_links=True).function(STEP, asked())
    assert "YES-TOKEN" in said[0]


async def test_no_error_holds_a_link() -> None:
    ways = Ways()
    ways.down = {"mailto:manager@example.com"}
    with pytest.raises(PortFailed) as caught:
        await port_to(ways, [], show_links=True).function(STEP, asked())
    assert "TOKEN" not in str(caught.value) + repr(caught.value) + repr(caught.value.fields)
    assert "TOKEN" not in repr(PAIR)


def test_the_port_says_that_it_dedupes_and_reads_its_own_words() -> None:
    notify = port_to(Ways(), [])
    assert (notify.name, notify.promise) == ("notify", "dedupes")
    assert notify.body.decode(notify.body.encode(asked())) == asked()


@given(st.text())
def test_no_text_can_steer_a_terminal(text: str) -> None:
    line = console_text(asked(message=text, name=text, program=text), None)
    assert all(c.isprintable() or c == "\n" for c in line)
    assert line.count("\n") == 1
    assert plain(text).isprintable()
