"""`onefold timers`: over a server that answers what the test says, and over the example's own store."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from onefold.cli.root import root
from onefold.terms.codec import parse
from onefold.timers import schedule_id

STANDUP = schedule_id("agent-7", "standup")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "reminders.py"
NINE = ("--cron", "0 9 * * mon-fri", "--tz", "Europe/Vienna")
WHOSE = ("--owner", "agent-7", "--name", "standup")
APP = {"x-onefold-modules": {"bank": "modules", "reminders": "timers"}}
VIEW = {
    "schedule": STANDUP,
    "owner": "agent-7",
    "key": "standup",
    "generation": 0,
    "trigger": {"type": "Every", "cron": "0 9 * * mon-fri", "tz": "Europe/Vienna"},
    "payload": None,
    "ends_at": None,
    "next_due": None,
    "held": {"schedule": STANDUP, "generation": 0, "due_at": "2026-12-01T08:00:00Z"},
    "ended": False,
}
EVENTS = "/modules/reminders/events"


@pytest.fixture
def answered(told: Any) -> Any:
    """A server with one module of schedules."""
    told.answer("GET", "/openapi.json", APP)
    told.answer("GET", "/modules/reminders", {"items": [{"key": STANDUP}], "next": None})
    told.answer("GET", f"/modules/reminders/{STANDUP}", {"key": STANDUP, "view": VIEW})
    told.answer(
        "POST", EVENTS, {"reply": {"type": "Scheduled", "schedule": STANDUP, "generation": 0, "next_due": None}}
    )
    return told


def said(told: Any) -> dict[str, Any]:
    """The one event that was sent."""
    (sent,) = [one for one in told.sent if one.method == "POST"]
    body: dict[str, Any] = sent.body
    return body


def test_a_schedule_is_one_event(typed: Any, answered: Any) -> None:
    ended = typed("timers", "create", *WHOSE, *NINE, "--payload", '{"say": "hi"}', "--key", "c1")
    assert (ended.exit_code, ended.stderr) == (0, f"Asked: {answered.url}.\n")
    assert said(answered) == {
        "type": "Create",
        "id": "c1",
        "owner": "agent-7",
        "key": "standup",
        "trigger": {"type": "Every", "cron": "0 9 * * mon-fri", "tz": "Europe/Vienna"},
        "payload": {"say": "hi"},
    }


@pytest.mark.parametrize(
    "at,instant",
    [
        (("2026-12-01T09:00:00Z",), "2026-12-01T09:00:00Z"),
        (("2026-12-01T09:00:00+01:00",), "2026-12-01T08:00:00Z"),
        (("2026-12-01T09:00", "--tz", "Europe/Vienna"), "2026-12-01T08:00:00Z"),
        (("2026-03-29T02:30", "--tz", "Europe/Vienna"), "2026-03-29T01:00:00Z"),
    ],
)
def test_an_instant_is_read_with_its_offset_or_on_the_clocks_of_a_zone(
    typed: Any, answered: Any, at: tuple[str, ...], instant: str
) -> None:
    assert typed("timers", "create", *WHOSE, "--at", *at).exit_code == 0
    assert said(answered)["trigger"] == {"type": "At", "instant": instant}


@pytest.mark.parametrize(
    "arguments,problem",
    [
        (("create", *WHOSE), "Say when"),
        (("create", *WHOSE, "--cron", "0 9 * * *"), "Say when"),
        (("create", *WHOSE, *NINE, "--at", "2026-12-01T09:00:00Z"), "Say when"),
        (("create", *WHOSE, "--at", "2026-12-01T09:00"), "has no zone"),
        (("create", *WHOSE, "--at", "tomorrow"), "is no instant"),
        (("create", "--owner", "agent-7", *NINE), "--owner and --name"),
        (("end",), "Say which"),
        (("end", STANDUP, *WHOSE), "Say which"),
        (("ack", "a/b"), "A tick is written"),
    ],
)
def test_what_is_typed_wrongly_is_told_before_anything_is_sent(
    typed: Any, answered: Any, arguments: tuple[str, ...], problem: str
) -> None:
    ended = typed("timers", *arguments)
    assert ended.exit_code == 2
    assert problem in ended.stderr
    assert [one for one in answered.sent if one.method == "POST"] == []


@pytest.mark.parametrize(
    "arguments,event",
    [
        (("supersede", STANDUP, *NINE), {"type": "Supersede", "schedule": STANDUP}),
        (("supersede", *WHOSE, *NINE), {"type": "Supersede", "schedule": STANDUP}),
        (("end", *WHOSE), {"type": "End", "schedule": STANDUP}),
        (("ack", *WHOSE), {"type": "Ack", "tick": VIEW["held"]}),
        (("ack", STANDUP), {"type": "Ack", "tick": VIEW["held"]}),
        (("ack", f"{STANDUP}/0/2026-12-01T08:00:00Z"), {"type": "Ack", "tick": VIEW["held"]}),
    ],
)
def test_a_schedule_is_named_by_its_id_or_by_owner_and_name(
    typed: Any, answered: Any, arguments: tuple[str, ...], event: dict[str, Any]
) -> None:
    assert typed("timers", *arguments).exit_code == 0
    assert said(answered).items() >= event.items()


@pytest.mark.parametrize(
    "command,reply,code",
    [
        ("end", {"type": "Ended"}, 0),
        ("end", {"type": "Unknown"}, 4),
        ("ack", {"type": "Acked"}, 0),
        ("ack", {"type": "Unknown"}, 0),
        ("end", {"type": "Conflict", "schedule": STANDUP, "field": "payload"}, 3),
    ],
)
def test_every_answer_has_its_exit_code(
    typed: Any, answered: Any, command: str, reply: dict[str, Any], code: int
) -> None:
    answered.answer("POST", EVENTS, {"reply": reply})
    ended = typed("timers", command, *WHOSE)
    assert ended.exit_code == code
    assert (ended.stdout == "") == (reply["type"] in ("Conflict", "Unknown"))
    assert parse(typed("timers", command, *WHOSE, "--json").stdout.encode()) == {"reply": reply}


def test_a_list_shows_what_is_due_and_what_is_held(typed: Any, answered: Any) -> None:
    ended = typed("timers", "--owner", "agent-7")
    assert STANDUP in ended.stdout
    assert "2026-12-01T08:00:00Z" in ended.stdout
    assert answered.sent[1].query["prefix"] == STANDUP[:12]
    shown = parse(typed("timers", "list", "--json").stdout.encode())
    assert shown == {"items": [{"key": STANDUP, "view": VIEW}], "next": None}
    assert typed("timers", "--owner", "somebody else").stdout == "There are no such schedules.\n"


@pytest.mark.parametrize("rooms,told_", [({}, "has no module"), ({"a": "timers", "b": "timers"}, "has several")])
def test_the_module_is_named_where_it_is_not_the_only_one(typed: Any, told: Any, rooms: Any, told_: str) -> None:
    told.answer("GET", "/openapi.json", {"x-onefold-modules": rooms})
    ended = typed("timers")
    assert (ended.exit_code, told_ in ended.stderr) == (2, True)


def test_a_tick_that_is_not_held_is_nothing_to_acknowledge(typed: Any, answered: Any) -> None:
    answered.answer("GET", f"/modules/reminders/{STANDUP}", {"key": STANDUP, "view": None})
    ended = typed("timers", "ack", *WHOSE)
    assert (ended.exit_code, ended.stdout) == (0, "It holds no tick.\n")


# --- the example ---------------------------------------------------------------------------------------


def test_the_example_from_the_first_command_to_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server: each command opens the store, says its event and closes it again."""
    shutil.copy(EXAMPLE, tmp_path)
    (tmp_path / "onefold.toml").write_text('app = "reminders.py"\nlisten = "127.0.0.1:9"\n')
    monkeypatch.chdir(tmp_path)

    def onefold(*arguments: str) -> Result:
        return CliRunner().invoke(root, ["timers", *arguments], catch_exceptions=False)

    made = onefold("create", *WHOSE, *NINE, "--payload", '"hi"')
    assert (made.exit_code, "Scheduled; next due 20" in made.stdout) == (0, True), made.stderr
    assert onefold("create", *WHOSE, *NINE, "--payload", '"hi"').stdout == made.stdout
    other = onefold("create", *WHOSE, *NINE, "--payload", '"ho"')
    assert (other.exit_code, "it differs in payload" in other.stderr) == (3, True)
    assert "generation 1" in onefold("supersede", *WHOSE, "--cron", "30 9 * * *", "--tz", "Europe/Vienna").stdout
    (item,) = parse(onefold("--owner", "agent-7", "--json").stdout.encode())["items"]
    assert (item["key"], item["view"]["generation"]) == (STANDUP, 1)
    assert onefold("ack", *WHOSE).stdout == "It holds no tick.\n"
    assert onefold("end", *WHOSE).stdout == "Ended: no further tick.\n"
    assert onefold("end", "--owner", "agent-7", "--name", "lunch").exit_code == 4
    bad = onefold("create", *WHOSE, "--cron", "61 * * * *", "--tz", "Europe/Wien")
    assert (bad.exit_code, "Europe/Vienna" in bad.stderr) == (3, True), bad.stderr
    assert CliRunner().invoke(root, ["doctor"], catch_exceptions=False).exit_code == 0
