"""A notice as a mail, over a real SMTP server."""

from __future__ import annotations

import pytest

from onefold.ports.mail import compose, mail_way, server_of
from onefold.ports.notify import Unsent
from onefold.terms.instant import moment
from tests.ports.conftest import NOON, PAIR, Post, asked

TO = "mailto:manager@example.com"


async def sent(url: str, target: str = TO, message_id: str = "id1", **changes: object) -> None:
    await mail_way(lambda: url, "onefold@example.com")(target, asked(**changes), PAIR, message_id, moment(NOON))


async def test_it_arrives_with_both_links_in_text_and_page(post: Post) -> None:
    await sent(f"smtp://127.0.0.1:{post.port}")
    (letter,) = post.letters
    assert (letter["From"], letter["To"]) == ("onefold@example.com", "manager@example.com")
    assert letter["Subject"] == "Pay back 150 for order 8?"
    text, page = [part.get_payload(decode=True).decode() for part in letter.get_payload()]  # type: ignore[union-attr]
    for link in (PAIR.approve, PAIR.reject):
        assert link in text
        assert f'href="{link}"' in page
    assert "Open until 2027-01-16 08:00 UTC." in text
    assert "decides nothing" in text


async def test_a_repeat_is_the_same_mail_to_the_letter(post: Post) -> None:
    for _ in range(2):
        await sent(f"smtp://127.0.0.1:{post.port}")
    first, second = post.letters
    assert first["Message-ID"] == second["Message-ID"] == "<id1@example.com>"
    assert (
        compose("a@b.c", "o@b.c", asked(), PAIR, "id1", moment(NOON)).as_bytes()
        == compose("a@b.c", "o@b.c", asked(), PAIR, "id1", moment(NOON)).as_bytes()
    )


async def test_a_message_cannot_add_a_header_or_markup(post: Post) -> None:
    await sent(f"smtp://127.0.0.1:{post.port}", message="Pay?\r\nBcc: thief@example.com\r\n<script>x</script>")
    (letter,) = post.letters
    assert letter["Bcc"] is None
    assert letter["Subject"].startswith("Pay?")
    assert b"<script>" not in letter.get_payload()[1].get_payload(decode=True)  # type: ignore[union-attr, index]


async def test_it_logs_in_with_the_password_of_the_address(post: Post) -> None:
    await sent(f"smtp://shop:right%20horse@127.0.0.1:{post.port}")
    assert post.logins == [("shop", "right horse")]
    assert len(post.letters) == 1


@pytest.mark.parametrize("answer", ["451 try later", "554 5.7.1 spam: https://tools.example.com/approve/YES-TOKEN"])
async def test_what_the_server_says_is_told_by_number_alone(post: Post, answer: str) -> None:
    post.answer = answer
    with pytest.raises(Unsent) as caught:
        await sent(f"smtp://127.0.0.1:{post.port}")
    assert caught.value.why == f"did not get the mail: the server answered {answer[:3]}"
    assert caught.value.__cause__ is None


async def test_a_wrong_password_is_told_without_it(post: Post) -> None:
    with pytest.raises(Unsent) as caught:
        await sent(f"smtp://shop:hunter2hunter2@127.0.0.1:{post.port}")
    assert "hunter2" not in str(caught.value)
    assert "535" in caught.value.why


async def test_a_server_that_is_not_there_is_told(post: Post) -> None:
    with pytest.raises(Unsent, match="did not get the mail: ConnectionRefusedError"):
        await sent("smtp://127.0.0.1:1")


async def test_a_password_is_never_sent_in_the_open_to_another_machine(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onefold.ports.mail.LOCAL", ())
    with pytest.raises(Unsent, match="not sent in the open"):
        await sent(f"smtp://shop:right%20horse@127.0.0.1:{post.port}")
    assert post.logins == []


@pytest.mark.parametrize("url", [None, "", "https://mail.example.com", "smtp://", "smtp://h:port", "smtp://[::1"])
def test_an_address_that_is_none_is_told_without_repeating_it(url: str | None) -> None:
    with pytest.raises(Unsent) as caught:
        server_of(url)
    told = (url or "").partition("//")[2]
    assert not told or told not in str(caught.value)


def test_an_address_never_shows_its_password() -> None:
    server = server_of("smtps://shop:hunter2@mail.example.com")
    assert (server.host, server.port, server.tls, server.password) == ("mail.example.com", 465, True, "hunter2")
    assert "hunter2" not in repr(server)


async def test_an_address_that_no_mail_can_have_is_told(post: Post) -> None:
    with pytest.raises(Unsent, match="did not get the mail"):
        await sent(f"smtp://127.0.0.1:{post.port}", "mailto:a%0aBcc:thief@example.com")
    assert post.letters == []
