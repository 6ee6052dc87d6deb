"""What `discover` says of file storages that are mounted, and options of `detect` for them."""

import json
from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.commands.cli import main
from disksla.commands.detect import _endpoints
from support.sysfs_tree import host_of_files

Captured = pytest.CaptureFixture[str]

EFS = "fs-0123456789abcdef0"
MOUNTINFO = f"""\
22 1 254:1 / / rw - ext4 /dev/vda rw
30 22 0:40 / /srv/efs rw - nfs4 {EFS}.efs.eu-west-1.amazonaws.com:/ rw
31 22 0:41 / /srv/share rw - cifs //acct1.file.core.windows.net/s1 rw
32 22 0:42 / /srv/nas rw - nfs 10.0.0.2:/vol1 rw
33 22 0:43 / /srv/\\033[2J rw - nfs 10.0.0.2:/vol2 rw
"""
TERMS = {
    "provider": "aws",
    "source": "api",
    "origin": "EC2 API",
    "disks": [
        {
            "match": {"mountpoint": "/srv/efs"},
            "api_type": "efs",
            "size": "200GiB",
            "options": {"mode": "bursting", "region": "eu-west-1"},
        }
    ],
}


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    options = host_of_files(tmp_path, "vda 254:1 1GiB", mountinfo=MOUNTINFO)
    config = tmp_path / "disksla.yml"
    config.write_text(f"state: {{directory: {tmp_path}/state}}\n")
    (tmp_path / "terms.d").mkdir()
    (tmp_path / "terms.d/cloud.json").write_text(json.dumps(TERMS))
    return [*options, f"--path.rootfs={tmp_path}", f"--config.file={config}"]


def test_discover_says_what_is_mounted(
    flags: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["disks", *flags]) == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line.startswith("/srv")] == [
        f"/srv/efs: EFS {EFS} in eu-west-1, aws.efs, mode=bursting, region=eu-west-1, 200 GiB",
        "/srv/share: Azure Files acct1/s1, terms are not known",
        "/srv/nas: nfs 10.0.0.2:/vol1, terms are not known",
    ]
    assert "\x1b[2J" not in printed


def test_discover_without_file_storages_says_nothing_of_them(
    flags: list[str], tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "proc/1/mountinfo").write_text(MOUNTINFO.split("\n", maxsplit=1)[0])
    (tmp_path / "terms.d/cloud.json").unlink()
    assert main(["disks", *flags]) == 0
    assert "/srv" not in capsys.readouterr().out


def test_endpoints() -> None:
    texts = ("https://ec2.example.com/", "efs=http://127.0.0.1:5001", "fsx=https://x/y//")
    assert _endpoints(texts) == {
        "": "https://ec2.example.com",
        "efs": "http://127.0.0.1:5001",
        "fsx": "https://x/y",
    }
    for odd in ("ec2=https://x", "efs=x", "ftp://x", "https://", "https:///", "https://a\nb", ""):
        with pytest.raises(DiskslaError, match="expected an address"):
            _endpoints((odd,))
