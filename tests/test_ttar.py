"""The ttar format of fixtures."""

from pathlib import Path

import pytest

from support import ttar


def test_pack_then_unpack(tmp_path: Path) -> None:
    tree = tmp_path / "sys"
    (tree / "block" / "vda" / "holders").mkdir(parents=True)
    (tree / "block" / "vda" / "size").write_text("2048\n")
    (tree / "block" / "vda" / "uevent").write_text("MAJOR=254\n# not a comment\n")
    (tree / "dev").symlink_to("block/vda")
    archive = tmp_path / "sys.ttar"
    archive.write_text("".join(f"{line}\n" for line in ttar.pack(tree)))

    ttar.unpack(archive, tmp_path / "unpacked")

    unpacked = tmp_path / "unpacked" / "sys"
    assert list(ttar.pack(unpacked)) == list(ttar.pack(tree))
    assert (unpacked / "dev" / "size").read_text() == "2048\n"
    assert (unpacked / "dev" / "uevent").read_text() == "MAJOR=254\n# not a comment\n"
    assert (unpacked / "dev" / "holders").is_dir()


def test_unpack_rejects_other_formats(tmp_path: Path) -> None:
    archive = tmp_path / "sys.tar"
    archive.write_text("Path: a\nLines: 1\none\nLine: two\n")
    with pytest.raises(ValueError, match="expected a key of ttar, found 'Line: two'"):
        ttar.unpack(archive, tmp_path)
