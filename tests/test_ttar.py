from pathlib import Path

import pytest

from support import ttar


def test_what_is_packed_is_unpacked(tmp_path: Path) -> None:
    tree = tmp_path / "sys"
    (tree / "block" / "vda" / "holders").mkdir(parents=True)
    (tree / "block" / "vda" / "size").write_text("2048\n")
    (tree / "block" / "vda" / "uevent").write_text("MAJOR=254\n# not a comment\n")
    (tree / "dev").symlink_to("block/vda")
    archive = tmp_path / "sys.ttar"
    archive.write_text("".join(f"{line}\n" for line in ttar.pack(tree)))

    ttar.unpack(archive, tmp_path / "again")

    again = tmp_path / "again" / "sys"
    assert list(ttar.pack(again)) == list(ttar.pack(tree))
    assert (again / "dev" / "size").read_text() == "2048\n"
    assert (again / "dev" / "uevent").read_text() == "MAJOR=254\n# not a comment\n"
    assert (again / "dev" / "holders").is_dir()


def test_another_format_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "sys.tar"
    archive.write_text("Path: a\nLines: 1\none\nLine: two\n")
    with pytest.raises(ValueError, match="expected a key of ttar, found 'Line: two'"):
        ttar.unpack(archive, tmp_path)
