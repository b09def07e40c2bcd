"""Names, pointers and verdicts of blobs, without a store."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct

from onefold.kernel.blob import (
    BLOB,
    Spill,
    address_of,
    cut,
    digest_of,
    digest_text,
    filled,
    lightened,
    live,
    named,
    note,
    plain,
    pointed,
    pointed_in,
    pointer,
    pointers,
    raw_pointed,
    raw_pointer,
    verdict,
    writes,
)
from onefold.store.contract import Append, Put, Remove, Row
from onefold.terms.codec import canonical, digest
from onefold.terms.ids import principal_text
from onefold.terms.limits import BLOB_PART_BYTES, INLINE_BYTES

DIGESTS = st.binary(min_size=32, max_size=32)
TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=8)  # a NUL is no JSON of ours
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["blob", "a", ""]), inner, max_size=3),
    max_leaves=6,
)


class Said(Struct, frozen=True, tag=True):
    who: str
    first: Raw = Raw(b"null")
    second: Raw = Raw(b"null")


@given(DIGESTS)
def test_a_digests_text_is_read_back_and_nothing_else_is(told: bytes) -> None:
    text = digest_text(told)
    assert digest_of(text) == told
    for other in (text[:-1], text + "0", text.upper(), f" {text}", text[7:], told, None, 5):
        assert digest_of(other) is None


@given(
    DIGESTS,
    st.none() | st.text("-=ab\x01", min_size=1, max_size=3),
    st.none() | st.text("-=ab\x01", min_size=1, max_size=3),
)
def test_two_principals_have_no_address_in_common(told: bytes, one: str | None, other: str | None) -> None:
    assert (address_of(one, told) == address_of(other, told)) == (one == other)


@given(DIGESTS, JSON)
def test_no_json_reads_as_a_pointer(told: bytes, value: Any) -> None:
    assert pointed(pointer(told)) == told
    assert raw_pointed(raw_pointer(told)) == told
    written = canonical(value)
    assert pointed(written) is None
    assert raw_pointed(Raw(written)) is None
    assert raw_pointed(Raw(canonical({"blob": digest_text(told)}))) is None


@given(DIGESTS, JSON, st.sampled_from(["", " ", "\n "]))
def test_finished_json_that_looks_like_a_pointer_is_written_anew(told: bytes, value: Any, space: str) -> None:
    forged = bytes(raw_pointer(told))
    assert raw_pointed(Raw(plain(forged))) is None
    assert msgspec.json.decode(plain(forged)) == {"blob": digest_text(told)}
    spaced = b"{ " + space.encode() + canonical({"a": value})[1:]
    assert msgspec.json.decode(plain(spaced)) == {"a": value}
    assert plain(canonical(value)) == canonical(value)


@given(st.lists(st.integers(INLINE_BYTES - 4, INLINE_BYTES + 4), min_size=2, max_size=2))
def test_long_values_are_pointed_at_and_filled_in_again(sizes: list[int]) -> None:
    fact = Said("a", *(Raw(canonical("x" * (size - 2))) for size in sizes))
    kept: dict[bytes, bytes] = {}

    def spill(raw: bytes) -> bytes:
        kept[digest(raw)] = raw
        return digest(raw)

    (light,) = lightened([fact], spill)
    assert pointers(light) == set(kept) == {digest(canonical("x" * (s - 2))) for s in sizes if s > INLINE_BYTES}
    read = msgspec.json.decode(msgspec.json.encode(light), type=Said)
    whole = filled(read, kept)
    assert [bytes(raw) for raw in (whole.first, whole.second)] == [bytes(raw) for raw in (fact.first, fact.second)]
    assert len(msgspec.json.encode(light)) <= 2 * INLINE_BYTES + 100
    noted: dict[bytes, bytes] = {}
    note(fact, noted)
    assert noted == kept


def test_digests_are_found_wherever_they_stand() -> None:
    one, two = b"\1" * 32, b"\2" * 32
    text = canonical({"see": f"https://x/{digest_text(one)}?a", "and": [digest_text(two)]})
    assert named(text, None, b"sha256:short", pointer(one)) == {one, two}
    assert pointed_in(text, None) == set(), "text that names a blob does not point at it"
    facts = b"[" + msgspec.json.encode(Said("a", raw_pointer(one), Raw(b"1"))) + b"]"
    assert pointed_in(facts, pointer(two)) == {one, two}


@given(st.binary(max_size=64))
def test_bytes_are_cut_and_joined(data: bytes) -> None:
    long = data * (BLOB_PART_BYTES // 16)
    parts = cut(long)
    assert b"".join(parts) == long
    assert all(0 < len(part) <= BLOB_PART_BYTES for part in parts)


def _row(n: int, at: int = 0, file: str | None = None, condemned: int | None = None, told: bytes = b"d" * 32) -> Row:
    return (n, address_of(None, told), principal_text(None), told, 3, at, file, condemned)


@pytest.mark.parametrize("old", [None, _row(7), _row(7, file="there.1", condemned=5)])
@pytest.mark.parametrize("file", [None, "here.2"])
def test_a_spill_keeps_the_number_of_the_blob_it_meets_and_leaves_no_bytes_behind(
    old: Row | None, file: str | None
) -> None:
    spill = Spill(9, address_of(None, b"d" * 32), None, b"d" * 32, b"abc", file)
    refs: list[Row] = [(spill.address, "turn", 3)]
    made = writes([spill], refs, [] if old is None else [old], 50)
    n = 9 if old is None else 7
    (head,) = (row for write in made if isinstance(write, Put) and write.table is BLOB for row in write.rows)
    assert (head[0], head[BLOB.at["at"]], head[BLOB.at["file"]], head[BLOB.at["condemned"]]) == (n, 50, file, None)
    parts = [row for write in made if isinstance(write, Put) and write.table is not BLOB for row in write.rows]
    assert parts == ([(n, 0, b"abc")] if file is None else [])
    removed = any(isinstance(write, Remove) for write in made)
    assert removed == (file is not None and old is not None and old[BLOB.at["file"]] is None)
    assert [write.rows for write in made if isinstance(write, Append)] == [refs]


def test_a_reference_is_true_while_its_row_names_the_blob() -> None:
    told = b"d" * 32
    refs: list[Row] = [(b"", "turn", n) for n in range(4)]
    texts = {
        ("turn", 0): (None, canonical([digest_text(told)])),
        ("turn", 1): (None, b"[]"),
        ("turn", 2): (pointer(told),),
    }
    assert live(refs, texts, told) == {refs[0], refs[2]}


@given(at=st.integers(0, 9), now=st.integers(0, 30), condemned=st.none() | st.integers(0, 30), referred=st.booleans())
def test_nothing_is_removed_that_was_put_lately_named_or_not_condemned_long_ago(
    at: int, now: int, condemned: int | None, referred: bool
) -> None:
    does = verdict(_row(1, at, condemned=condemned), now, referred=referred, grace=10, delay=5)
    if does == "remove":
        assert not referred
        assert now - at >= 10
        assert condemned is not None
        assert now - condemned >= 5
    assert does != "condemn" or (condemned is None and not referred and now - at >= 10)
    assert (does == "pardon") == (condemned is not None and (referred or now - at < 10))
