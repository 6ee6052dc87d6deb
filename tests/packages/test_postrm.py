"""Purging the Debian package, in mount namespaces of its own: /etc and /var/lib are copies."""

import subprocess
from pathlib import Path

import pytest

from support.loop_device import attached, needs_loop

POSTRM = Path(__file__).resolve().parent.parent.parent / "packaging" / "debian" / "postrm"
SCRIPT = """
set -eu
cp -a /etc "$1/etc"
mkdir "$1/lib"
mount --bind "$1/etc" /etc
mount --bind "$1/lib" /var/lib
useradd --system --no-create-home disksla
useradd --system --no-create-home disksla-detect
mkdir /etc/disksla /var/lib/disksla /var/lib/disksla-detect
mount -t tmpfs none /mnt
mkdir "/mnt/a disk"
mount "/dev/$2" "/mnt/a disk"
own="/mnt/a disk/.disksla"
install -d -o disksla -g disksla -m 0700 "$own"
touch "$own/disksla-probe-1-0123456789abcdef.tmp"
touch "/mnt/a disk/data"
eval "$4"
sh "$3" purge
echo "users: $(sed -n 's/^\\(disksla[^:]*\\):.*/\\1/p' /etc/passwd | xargs)"
echo "state: $(ls /etc /var/lib | grep disksla | xargs)"
echo "disk: $(ls -A "/mnt/a disk" | xargs)"
"""

pytestmark = needs_loop


def purged(directory: Path, before: str = "") -> tuple[list[str], str]:
    """Return what is left after the purge, and what it says."""
    image = directory / "image"
    with image.open("wb") as file:
        file.truncate(16 * 2**20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    with attached(image) as device:
        done = subprocess.run(
            [
                *("unshare", "--mount", "--propagation", "private"),
                *("sh", "-c", SCRIPT, "sh", directory, device, POSTRM, before),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


@pytest.mark.in_check
def test_purge_removes_scratch_directories_and_users(tmp_path: Path) -> None:
    left, said = purged(tmp_path)
    assert left == ["users: ", "state: ", "disk: data lost+found"]
    assert said == ""


def test_purge_keeps_the_user_that_has_files(tmp_path: Path) -> None:
    left, said = purged(tmp_path, 'touch "$own/other"')
    assert left == ["users: disksla", "state: ", "disk: .disksla data lost+found"]
    assert said == "disksla: the user disksla is kept; it has files in\n/mnt/a disk/.disksla\n"


@pytest.mark.parametrize(
    "before",
    [
        'chown root "$own"',
        'rm -r "$own"; install -D -o disksla /dev/null "$1/mine/x"; ln -s "$1/mine" "$own"',
    ],
    ids=["of another user", "link"],
)
def test_purge_leaves_what_is_not_of_the_daemon(tmp_path: Path, before: str) -> None:
    left, _ = purged(tmp_path, before)
    assert left == ["users: ", "state: ", "disk: .disksla data lost+found"]
    assert not (tmp_path / "mine").exists() or (tmp_path / "mine" / "x").exists()
