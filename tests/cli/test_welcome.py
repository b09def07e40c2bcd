"""What `onefold dev` prints can be pasted as it is."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import Any

import pytest

from onefold.cli.welcome import addresses, happened, parts, sample
from onefold.host.live import Happening
from onefold.terms.codec import parse

REFUND = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string"},
        "amount": {"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 500}, {"type": "string"}]},
        "note": {"type": "string", "default": ""},
    },
    "required": ["order_id", "amount"],
}


def test_the_clients_configuration_is_one_line_of_json() -> None:
    lines = list(addresses("refund", "http://127.0.0.1:8600", {}, keyed=False))
    (config,) = [line for line in lines if "mcpServers" in line]
    told = parse(config.encode())
    assert told == {"mcpServers": {"refund": {"type": "http", "url": "http://127.0.0.1:8600/mcp"}}}


def test_with_keys_a_client_is_told_to_bring_one_and_no_key_is_printed() -> None:
    lines = "\n".join(addresses("refund", "http://127.0.0.1:8600", {"refund_order": REFUND}, keyed=True))
    assert '{"Authorization":"Bearer ${ONEFOLD_KEY}"}' in lines
    assert '-H "Authorization: Bearer $ONEFOLD_KEY"' in lines


def test_the_curl_of_a_tool_is_a_shells_words_and_the_tools_arguments() -> None:
    lines = list(addresses("refund", "http://127.0.0.1:8600", {"refund_order": REFUND}, keyed=False))
    words = shlex.split(lines[-1])
    assert words[:2] == ["curl", "http://127.0.0.1:8600/tools/refund_order"]
    assert parse(words[-1].encode()) == {"order_id": "text", "amount": 1}


@pytest.mark.parametrize(
    "schema, value",
    [
        ({"type": "integer", "minimum": 7}, 7),
        ({"type": "number", "exclusiveMinimum": 10}, 11),
        ({"type": ["string", "null"]}, "text"),
        ({"type": "string", "format": "date"}, "2026-12-01"),
        ({"type": "boolean"}, False),
        ({"type": "null"}, None),
        ({"type": "array", "items": {"type": "string"}}, []),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, ["text"]),
        ({"enum": ["fast", "slow"]}, "fast"),
        ({"const": 3}, 3),
        ({"type": "string", "examples": ["b7"]}, "b7"),
        ({}, "text"),
    ],
)
def test_a_sample_fits_its_schema(schema: dict[str, Any], value: Any) -> None:
    assert sample(schema) == value


def test_what_happens_is_one_line_that_steers_no_terminal() -> None:
    at = datetime(2026, 12, 1, 12, tzinfo=UTC)
    line = happened(Happening(at, "Started", "run_1", "refund_order", "refund_order run_1 \x1b[2J\nStarted"))
    assert "\x1b" not in line
    assert "\n" not in line


def test_every_kind_of_part_has_its_names_and_its_address() -> None:
    lines = list(parts("http://127.0.0.1:8600", {"modules": ["bank", "shop"], "timers": [], "cells": ["Room"]}))
    assert lines == [
        "  modules   http://127.0.0.1:8600/modules/{module}/events",
        "            bank, shop",
        "  cells     http://127.0.0.1:8600/cells/{shape}/{id}",
        "            Room",
    ]


def test_of_very_many_parts_the_first_are_named_and_the_others_counted() -> None:
    (_, names) = parts("http://127.0.0.1:8600", {"reflexes": [f"r{n}" for n in range(1000)]})
    assert names.endswith("r19, and 980 more")
    assert len(names) < 200
