"""Every error says what, where and what to do, in one sentence, the same at every door."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from onefold.terms import damage, errors, turns
from onefold.terms.damage import BlobDamaged, HistoryDamaged, StoreReplaced
from onefold.terms.errors import BadArguments, Fault, Finding, LoadRefused, OnefoldError
from onefold.terms.limits import MAX_FAULTS

FAULTS = [Fault("amount", "must be at most 500", 900)]
# The table of the public API: the error, its HTTP status, whether the same may be sent again, the command's exit.
TABLE: list[tuple[OnefoldError, str, int, str, int]] = [
    (BadArguments(FAULTS), "bad_arguments", 422, "never", 3),
    (errors.KeyConflict("k"), "key_conflict", 422, "never", 3),
    (errors.Undeclared("mail", "refund"), "undeclared", 422, "never", 3),
    (LoadRefused([Finding("a.b", "is wrong")]), "load_refused", 422, "never", 2),
    (errors.UnknownName("module", "bnk", "bank"), "unknown_name", 404, "never", 4),
    (errors.NotFound("run", "run_1"), "not_found", 404, "never", 4),
    (errors.Forbidden("call", "This"), "forbidden", 403, "never", 3),
    (errors.BadSignature("/hooks/x", "it is too old"), "bad_signature", 401, "never", 3),
    (errors.Unauthenticated(), "unauthenticated", 401, "never", 3),
    (errors.TooLarge("The body", 2, 1), "too_large", 413, "never", 3),
    (errors.AlreadyDone("e1"), "already_done", 409, "never", 3),
    (errors.NotOwner("room-7"), "not_owner", 409, "never", 3),
    (errors.OutsideStep("transfer"), "outside_step", 422, "never", 3),
    (errors.StoreUnavailable("main", "the disk is full"), "store_unavailable", 503, "same", 7),
    (errors.OutcomeUnknown("e1"), "outcome_unknown", 503, "same", 7),
    (errors.NotOpen("The app"), "not_open", 503, "same", 7),
    (errors.Busy("bank", 10), "busy", 429, "same", 7),
    (errors.Contended("room-7"), "contended", 409, "same", 7),
    (errors.PortFailed("mail", "k"), "port_failed", 502, "same", 7),
    (errors.StoreLocked("data", "process 7"), "store_locked", 503, "same", 6),
    (errors.StoreRolledBack("main", 7, 5), "store_rolled_back", 503, "same", 6),
    (StoreReplaced("postgres", "timeline 1", "timeline 2"), "store_replaced", 503, "same", 6),
    (errors.StoreTooNew("main", 7, 5), "store_too_new", 503, "same", 6),
    (HistoryDamaged("bank", "a", 7), "history_damaged", 500, "same", 7),
    (BlobDamaged("sha256:00", "its file is gone"), "blob_damaged", 500, "same", 7),
    (errors.OwnedElsewhere("Room/a", "b", 1, 2), "owned_elsewhere", 421, "same", 6),
    (errors.RunFailed("run_1", "pay", "OSError", "no"), "run_failed", 500, "never", 1),
    (errors.RunCancelled("run_1", None), "run_cancelled", 409, "never", 1),
    (errors.RunParked("run_1", "diverged."), "run_parked", 409, "never", 1),
    (errors.StepFailed("pay", 3, "OSError", "no"), "step_failed", 500, "never", 1),
    (errors.Broken("two owners"), "broken", 500, "never", 70),
]


@pytest.mark.parametrize("error, code, status, retry, exit", TABLE, ids=[code for _, code, *_ in TABLE])
def test_an_error_is_what_the_api_says(error: OnefoldError, code: str, status: int, retry: str, exit: int) -> None:
    assert (error.code, error.status, error.retry, error.exit) == (code, status, retry, exit)
    if not isinstance(error, errors.RunFailed | errors.StepFailed):  # these end in the words of the program
        assert re.search(r"[.?…]$", str(error))
    assert len(str(error)) > 20


def test_the_attributes_are_the_data() -> None:
    assert errors.TooLarge("The body", 2, 1).fields == {"what": "The body", "size": 2, "limit": 1}
    assert BadArguments(FAULTS).faults == tuple(FAULTS)


def test_bad_arguments_are_one_sentence_a_field() -> None:
    told = str(BadArguments([*FAULTS, Fault("note", "is missing"), Fault("", "must be an object", [1])]))
    assert told == (
        "Nothing was started. amount: must be at most 500; sent 900. note: is missing. must be an object; sent [1]."
    )


def test_a_sentence_ends_once_and_says_what_there_is() -> None:
    asked = errors.BadArguments([errors.Fault("nam", "is not known; did you mean 'name'?"), errors.Fault("a", "is b")])
    assert str(asked) == "Nothing was started. nam: is not known; did you mean 'name'? a: is b."
    refused = errors.LoadRefused([errors.Finding("a.json", "there is no effect 'sya'; did you mean 'say'?")])
    assert str(refused) == "Nothing was loaded. a.json: there is no effect 'sya'; did you mean 'say'?"
    shapes = [f"shape{n:02}" for n in range(11)]
    give = "ive it to the app: onefold.App(…, "
    assert str(errors.UnknownName("shape", "x", None, ["Room"])) == (
        f"There is no shape named 'x'. There is Room. G{give}x)."
    )
    near = str(errors.UnknownName("shape", "Rom", "Room", ["Room"]))
    assert near.endswith(f"Did you mean 'Room'? If not, g{give}Rom).")
    assert str(errors.UnknownName("shape", "x", None, shapes)).endswith(f"shape07 and 3 more. G{give}x).")
    assert str(errors.UnknownName("shape", "x")) == f"There is no shape named 'x'. G{give}x)."
    assert str(errors.UnknownName("tool", "no name")).endswith("Give it to the app: onefold.App(…).")
    assert str(errors.UnknownName("reflex", "pya", "pay")).endswith("Did you mean 'pay'?")
    assert "or use 'visits'." in str(errors.Undeclared("vists", "The shape Room", "visits"))


@pytest.mark.parametrize("kind", ["module", "tool", "shape", "hook", "signal", "route", "selection", "reflex", "file"])
def test_a_name_that_is_none_says_what_to_do(kind: str) -> None:
    first, _, do = str(errors.UnknownName(kind, "x")).partition(". ")
    assert first == f"There is no {kind} named 'x'"
    assert len(do) > 20


PROSE = ("why", "message", "reason", "cause", "invariant")  # what somebody else wrote stands in these


def made(kind: type[OnefoldError], text: str) -> OnefoldError:
    """An error of this kind, with `text` wherever it takes somebody's words."""
    given: dict[str, Any] = {}
    for name, told in inspect.signature(kind).parameters.items():
        said = str(told.annotation)
        if "Fault" in said or "Finding" in said:
            given[name] = [Fault("a", text), Fault("b", text)]
        elif said.startswith("Iterable"):
            given[name] = ["x"]
        else:
            given[name] = 7 if said in ("int", "float") else text if name in PROSE else "x"
    return kind(**given)


def kinds() -> list[type[OnefoldError]]:
    found: list[type[OnefoldError]] = []
    for room in (errors, damage, turns):
        found += [each for _, each in inspect.getmembers(room, inspect.isclass) if issubclass(each, OnefoldError)]
    bare = (OnefoldError, errors.CallerError, errors.HostError, errors.Failed)
    return [each for each in dict.fromkeys(found) if each not in bare]


@pytest.mark.parametrize("text", ["is not known; did you mean 'thing'?", "it is over.", "and so on…", "no mark"])
@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_no_sentence_ends_in_two_marks(kind: type[OnefoldError], text: str) -> None:
    assert re.search(r"[.?!…][.?!…]|[.?!…] [.?!…]", str(made(kind, text)).replace("…, ", "")) is None


def test_what_came_is_shown_in_short() -> None:
    for error in (
        errors.KeyConflict("k" * 9999),
        errors.NotFound("run", "r" * 9999),
        BadArguments([Fault("a", "b", "c" * 9999)]),
    ):
        assert len(str(error)) < 600


def test_a_signal_is_no_error() -> None:
    assert not issubclass(errors.Suspended, Exception)


def test_every_error_has_a_way_to_tell_whose_fault_it_is() -> None:
    roots = (errors.CallerError, errors.HostError, errors.OwnedElsewhere, errors.Failed, errors.Broken)
    found: list[type[Any]] = [
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, OnefoldError)
    ]
    assert [kind for kind in found if kind is not OnefoldError and not issubclass(kind, roots)] == []
    assert len({kind.code for kind in found}) == len(found)


def test_a_refusal_is_short_however_much_was_wrong_with_however_long_a_value() -> None:
    faults = [Fault("f" * 10_000, "is not known", "v" * 10_000)] * 100_000
    refused = BadArguments(faults)
    assert len(refused.faults) == MAX_FAULTS + 1
    assert refused.faults[-1].problem == f"has {100_000 - MAX_FAULTS} more faults"
    assert len(str(refused)) < 500 * (MAX_FAULTS + 1)
