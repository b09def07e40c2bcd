"""What links are signed with: named by variable, or kept in one file that only its owner reads."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from onefold.host.config import settle
from onefold.host.secret import signing
from onefold.terms.errors import LoadRefused


def fresh(count: int) -> bytes:
    return b"f" * count


def other(count: int) -> bytes:
    return b"o" * count


def test_the_file_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    config = settle(flags={"store": str(tmp_path / "data")})
    assert signing(config, fresh) == (b"f" * 32,)
    assert signing(config, other) == (b"f" * 32,)
    file = tmp_path / "data" / "secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [one.name for one in file.parent.iterdir()] == ["secret"]


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    config = settle(flags={"store": str(tmp_path)})
    signing(config, fresh)
    (tmp_path / "secret").chmod(0o644)
    with pytest.raises(LoadRefused, match="others can read"):
        signing(config, fresh)


def test_a_file_cut_short_is_refused_and_not_replaced(tmp_path: Path) -> None:
    config = settle(flags={"store": str(tmp_path)})
    signing(config, fresh)
    (tmp_path / "secret").write_bytes(b"f")
    with pytest.raises(LoadRefused, match="cut short"):
        signing(config, other)
    assert (tmp_path / "secret").read_bytes() == b"f"


def test_two_are_read_while_a_secret_is_rotated_and_the_first_signs() -> None:
    config = settle(flags={"secret_env": ["NEW", "OLD"]}, environ={"NEW": "n" * 20, "OLD": "o" * 20})
    assert signing(config, fresh) == (b"n" * 20, b"o" * 20)


def test_a_store_in_memory_forgets_its_secret_with_the_process() -> None:
    assert signing(settle(flags={"store": "memory:"}), fresh) == (b"f" * 32,)


def test_the_other_of_two_makers_takes_the_first_ones_secret(tmp_path: Path) -> None:
    config = settle(flags={"store": str(tmp_path)})

    def raced(count: int) -> bytes:
        signing(config, other)
        return b"f" * count

    assert signing(config, raced) == (b"o" * 32,)


def test_the_folder_it_makes_keeps_its_name_through_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr("onefold.store.sqlite.disk.Disk.sync_folder", lambda self, path: synced.append(path))
    signing(settle(code={"store": str(tmp_path / "above" / "store")}, environ={}), fresh)
    assert synced == [str(tmp_path), str(tmp_path / "above"), str(tmp_path / "above" / "store")]
