"""A file of the folder is whole under its name, or is not there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from onefold.store.folder import SHARDS, Folder
from onefold.terms.errors import StoreUnavailable

NAME = "ab" + "0" * 62 + ".1"


def test_what_was_written_is_read_and_removed(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "blobs" / "main")
    assert folder.read(NAME) is None
    for data in (b"", b"bytes", b"x" * 3_000_000):
        folder.write(NAME, data, 5_000)
        assert folder.read(NAME) == data
    folder.remove(NAME)
    folder.remove(NAME)
    assert folder.read(NAME) is None


def test_it_is_synced_before_it_has_its_name_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    did: list[str] = []
    sync, rename = os.fsync, os.rename

    def synced(handle: int) -> None:
        did.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        sync(handle)

    def renamed(old: Any, new: Any) -> None:
        did.append("rename")
        rename(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    folder = Folder(tmp_path / "blobs" / "main")
    folder.write(NAME, b"first", 1)
    assert did == ["folder", "folder", "folder", "file", "rename", "folder"], "new folders are made durable, too"
    did.clear()
    folder.write(NAME, b"then", 1)
    assert did == ["file", "rename", "folder"]


@pytest.mark.parametrize("point", ["blob-written", "blob-named"])
def test_cut_off_it_is_whole_or_not_there_and_its_half_is_found_later(tmp_path: Path, point: str) -> None:
    class Gone(BaseException):
        pass

    def dies(name: str) -> None:
        if name == point:
            raise Gone

    with pytest.raises(Gone):
        Folder(tmp_path / "main", dies).write(NAME, b"bytes", 1_000)
    folder = Folder(tmp_path / "main")
    assert folder.read(NAME) == (b"bytes" if point == "blob-named" else None)
    (left,) = folder.older(0xAB, 1_001)
    assert left == NAME if point == "blob-named" else left.startswith(f"{NAME}.") and left.endswith(".part")
    assert folder.older(0xAB, 1_000) == []


def test_each_file_stands_in_one_of_many_folders(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "main")
    names = [f"{n:02x}" + "f" * 62 + ".1" for n in range(0, SHARDS, 50)]
    for name in names:
        folder.write(name, b"x", 1)
    assert [name for shard in range(SHARDS) for name in folder.older(shard, 2)] == names


def test_a_folder_that_fails_is_named(tmp_path: Path) -> None:
    (tmp_path / "main").write_text("a file where the folder would be")
    with pytest.raises(StoreUnavailable, match="its folder fails"):
        Folder(tmp_path / "main").write(NAME, b"x", 1)
    with pytest.raises(StoreUnavailable):
        Folder(tmp_path / "main").read(NAME)
