"""Reading mountstats: whole, through one open file, and as often as it is cheap."""

from pathlib import Path

import pytest

from disksla.kernel.nfs.nfs_files import MANY_MOUNTS, MountstatsFile
from support.nfs_client import Export, NfsClient


def test_the_file_is_opened_once_and_read_whole(tmp_path: Path) -> None:
    exports = [Export(f"fs1:/export{n}", f"/data{n}", 50 + n) for n in range(100)]
    client = NfsClient(*exports)
    client.write(tmp_path)
    file = MountstatsFile(tmp_path / "1" / "mountstats", tmp_path)
    device_at = {f"/data{n}": f"fs1:/export{n}" for n in range(100)}
    assert len(file.read(device_at, 0.0).readings) == 100
    before = len(list(Path("/proc/self/fd").iterdir()))
    exports[99].does("READ", 7, 4096)
    client.write(tmp_path)
    assert file.read(device_at, 0.1).readings["fs1:/export99"].reads == 7
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    file.close()


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    file = MountstatsFile(tmp_path / "1" / "mountstats", tmp_path)
    with pytest.raises(OSError, match="mountstats"):
        file.read({}, 0.0)


def test_a_long_text_is_read_once_a_second(tmp_path: Path) -> None:
    """To parse it takes more than a millisecond: 20,000 mounts that are not monitored."""
    NfsClient(Export()).write(tmp_path)
    path = tmp_path / "1" / "mountstats"
    path.write_text(path.read_text() + Export().block("/other") * 20000)
    file = MountstatsFile(path, tmp_path)
    file.read({"/data": "a"}, 10.0)
    assert not file.is_due(1, 10.9)
    assert file.is_due(1, 11.0)
    file.close()


def test_many_mounts_are_read_once_a_second(tmp_path: Path) -> None:
    client = NfsClient(Export())
    client.write(tmp_path)
    file = MountstatsFile(tmp_path / "1" / "mountstats", tmp_path)
    assert file.is_due(1, 10.0)
    file.read({}, 10.0)
    assert not file.is_due(MANY_MOUNTS + 1, 10.9)
    assert file.is_due(MANY_MOUNTS + 1, 11.0)
    file.close()
