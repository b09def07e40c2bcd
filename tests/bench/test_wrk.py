"""What wrk prints is read right, and an answer that is no 2xx is none."""

from __future__ import annotations

import pytest

from bench.wrk import Unread, read, script

REPORT = """\
Running 2s test @ http://127.0.0.1:9
  1 threads and 8 connections
  Latency Distribution
     50%  812.00us
     75%    1.02ms
     90%    2.00ms
     99%    1.25s
  11234 requests in 2.00s, 2.10MB read
Requests/sec:   5617.05
Transfer/sec:      1.05MB
"""


def test_a_report_becomes_a_sample() -> None:
    taken = read(REPORT)
    assert (taken.rate, taken.p99, taken.count) == (5617.05, 1250.0, 11234)
    assert taken.p50 == pytest.approx(0.812)


def test_refused_requests_are_no_answers() -> None:
    with pytest.raises(Unread):
        read(REPORT + "  Non-2xx or 3xx responses: 7\n")


def test_a_report_that_is_none_says_what_came() -> None:
    with pytest.raises(Unread, match="unable to connect"):
        read("unable to connect to 127.0.0.1:9 Connection refused")


def test_each_request_of_a_script_may_differ() -> None:
    path = script("'/c' .. who", "'{\"id\":' .. n .. '}'", {"accept": "a, b"})
    text = path.read_text(encoding="utf-8")
    path.unlink()
    assert '["accept"] = "a, b"' in text
    assert "('/c' .. who)" in text
    assert "('{\"id\":' .. n .. '}')" in text
