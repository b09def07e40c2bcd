"""ports.mail - a notice as a mail, handed to an SMTP server.

For: targets `mailto:name@host`, over the server that the smtp setting names.
Never: sends a password over an open line to another machine; repeats what the server said (it may
quote the mail, and the mail holds links).
Was wrong once: a fresh Message-ID on each attempt. A lost answer became two mails, and two people
decided the same thing.
"""

from __future__ import annotations

import asyncio
import html
import smtplib
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import unquote, urlsplit

from onefold.actuators.carried import Ask
from onefold.kernel.alert import Alert
from onefold.ports.notify import Links, Memo, Notice, Unsent, Way, headline, plain, said

TIMEOUT_S = 20.0  # seconds for each word with the server; the kernel tries again later
LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Server:
    """Where mail leaves, read from smtp://user:password@host:port (smtps:// for TLS from the first byte)."""

    host: str
    port: int
    tls: bool
    user: str | None
    password: str | None

    def __repr__(self) -> str:
        return f"<smtp server {self.host}:{self.port}>"


def server_of(url: str | None) -> Server:
    """Read an SMTP URL. Raises: Unsent, without repeating the URL, which holds a password."""
    if not url:
        raise Unsent("is not reached: the variable that holds the SMTP address is empty")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Unsent("is not reached: the SMTP address cannot be read") from None
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        raise Unsent("is not reached: the SMTP address must look like smtp://user:password@host:587")
    tls = parts.scheme == "smtps"
    user = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else None
    return Server(parts.hostname, port or (465 if tls else 587), tls, user, password)


def mail_way(url: Callable[[], str | None], sender: str) -> Way:
    """The way for `mailto:`. `url()` gives the SMTP URL when a mail is sent; `sender` is the From address."""

    async def send(target: str, ask: Notice, links: Links | None, message_id: str, at: datetime) -> None:
        to = unquote(target.removeprefix("mailto:").partition("?")[0])
        message = compose(to, sender, ask, links, message_id, at)
        try:
            await asyncio.to_thread(_hand_over, server_of(url()), message)
        except smtplib.SMTPResponseException as error:
            raise Unsent(f"did not get the mail: the server answered {error.smtp_code}") from None
        except smtplib.SMTPRecipientsRefused as error:
            codes = ", ".join(str(code) for code, _ in error.recipients.values())
            raise Unsent(f"did not get the mail: the server refused the address ({codes})") from None
        except (smtplib.SMTPException, OSError) as error:
            raise Unsent(f"did not get the mail: {type(error).__name__}") from None

    return send


def compose(to: str, sender: str, ask: Notice, links: Links | None, message_id: str, at: datetime) -> EmailMessage:
    """The mail: the same bytes for the same notice and target, so that a repeat is recognised."""
    domain = sender.rpartition("@")[2].strip("> ") or "onefold.invalid"
    mail = EmailMessage()
    try:
        mail["From"], mail["To"] = sender, to
    except ValueError:
        raise Unsent("did not get the mail: its address cannot be written in a mail") from None
    mail["Subject"] = subject_of(ask)[:200]
    mail["Date"] = format_datetime(at)
    mail["Message-ID"] = f"<{message_id}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    if isinstance(ask, Memo):
        mail.set_content(f"{ask.message}\n")
    elif isinstance(ask, Alert):
        about = f"{headline(ask)} since {said(ask.since)}."
        mail.set_content(f"{about}\n\n{plain(ask.cause)}\n\nLook: onefold parked show {plain(ask.item)}\n")
    else:
        assert links is not None  # an Ask has them
        _asked(mail, ask, links, message_id)
    return mail


def subject_of(ask: Notice) -> str:
    if isinstance(ask, Memo):
        return plain(ask.subject)
    return headline(ask) if isinstance(ask, Alert) else plain(ask.message)


def _asked(mail: EmailMessage, ask: Ask, links: Links, message_id: str) -> None:
    """What stands in the mail of an approval, as text and as a page."""
    limit = "somebody decides" if ask.until is None else said(ask.until)
    until = f"Open until {limit}."
    note = "Opening a link decides nothing; the page asks you to confirm."
    about = f"{ask.program} asks for approval “{ask.name}” (run {ask.run})."
    mail.set_content(
        f"{plain(ask.message)}\n\n{about}\n{until}\n\nApprove: {links.approve}\nReject:  {links.reject}\n\n{note}\n"
    )
    page = "".join(f"<p>{html.escape(text)}</p>" for text in (ask.message, f"{about} {until}"))
    buttons = (
        f'<a href="{html.escape(links.approve)}">Approve</a> &nbsp; <a href="{html.escape(links.reject)}">Reject</a>'
    )
    mail.add_alternative(f"<html><body>{page}<p>{buttons}</p><p>{note}</p></body></html>", subtype="html")
    mail.set_boundary(f"={message_id}")


def _hand_over(server: Server, mail: EmailMessage) -> None:
    """Blocking, in a thread of its own. Raises: smtplib.SMTPException, OSError, Unsent."""
    safe = ssl.create_default_context()
    if server.tls:
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT_S, context=safe)
    else:
        smtp = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_S)
    with smtp:
        smtp.ehlo_or_helo_if_needed()
        secured = server.tls
        if not server.tls and smtp.has_extn("starttls"):
            smtp.starttls(context=safe)
            secured = True
        if server.user is not None:
            if not secured and server.host not in LOCAL:
                raise Unsent("did not get the mail: the server offers no TLS, and the password is not sent in the open")
            smtp.login(server.user, server.password or "")
        smtp.send_message(mail)
