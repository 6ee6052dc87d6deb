"""Scratch files: created safely, removed always."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from disksla.measure.fio.scratch_file import SCRATCH_DIRECTORY, remove_leftovers, scratch_file
from disksla.measure.fio.scratch_file_rules import ScratchFileError
from support.file_system import mounted_ext4
from support.log_events import events
from support.loop_device import needs_loop
from support.waiting import eventually

MIB = 1024**2
LEFTOVER = "disksla-probe-123-0123456789abcdef.tmp"

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="NOT TESTED: mounts and other users need root"
)


@contextmanager
def mounted(*options: str, at: Path) -> Iterator[Path]:
    at.mkdir()
    subprocess.run(["mount", *options, str(at)], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory on a disk; skip the test if the machine has none there."""
    try:
        remove_leftovers(tmp_path)
        with scratch_file(tmp_path, 4096):
            pass
    except ScratchFileError as error:
        pytest.skip(f"NOT TESTED: temporary files are not on a disk: {error}")
    return tmp_path


def refused(directory: Path, size_bytes: int = MIB) -> str:
    with pytest.raises(ScratchFileError) as caught, scratch_file(directory, size_bytes):
        pass
    return str(caught.value)


def make_own(directory: Path) -> Path:
    made = directory / SCRATCH_DIRECTORY
    made.mkdir(0o700)
    return made


# The file.


@pytest.mark.in_check
def test_file_exists_in_the_block_only(directory: Path) -> None:
    with scratch_file(directory, 3 * MIB + 4096) as file:
        [named] = (directory / SCRATCH_DIRECTORY).iterdir()
        assert named.name.startswith(f"disksla-probe-{os.getpid()}-")
        assert named.samefile(file)
        found = named.stat()
        assert found.st_size == 3 * MIB + 4096
        assert found.st_blocks * 512 >= found.st_size, "all blocks are allocated"
        assert found.st_mode & 0o777 == 0o600
        assert (directory / SCRATCH_DIRECTORY).stat().st_mode & 0o777 == 0o700
    assert not file.exists()
    assert list(directory.iterdir()) == []


def test_file_contains_random_data(directory: Path) -> None:
    written: list[int] = []
    with scratch_file(directory, 2 * MIB + 1, on_written=written.append) as file:
        content = file.read_bytes()
        assert content.count(0) < len(content) / 100
    assert written == [MIB, 2 * MIB, 2 * MIB + 1]


def test_exceptions_leave_nothing(directory: Path) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        scratch_file(directory, 2 * MIB, on_written=interrupted),
    ):
        pass
    with pytest.raises(ZeroDivisionError), scratch_file(directory, 4096):
        raise ZeroDivisionError
    assert list(directory.iterdir()) == []


def test_two_files_at_a_time_are_independent(directory: Path) -> None:
    with scratch_file(directory, 4096) as one:
        with scratch_file(directory, 4096) as other:
            assert not one.samefile(other)
        assert one.exists()
        assert remove_leftovers(directory) == ()
        assert one.exists()
    assert list(directory.iterdir()) == []


def test_another_file_of_the_name_is_not_removed(directory: Path) -> None:
    with scratch_file(directory, 4096):
        [named] = (directory / SCRATCH_DIRECTORY).iterdir()
        named.unlink()
        named.write_text("another file", encoding="ascii")
    assert named.read_text(encoding="ascii") == "another file"


def test_failed_removal_is_logged(directory: Path, caplog: pytest.LogCaptureFixture) -> None:
    with scratch_file(directory, 4096):
        [named] = (directory / SCRATCH_DIRECTORY).iterdir()
        named.unlink()
    [event] = events(caplog)
    assert event.message == "cannot remove scratch file"
    assert event.fields == {"file": named.name, "err": "No such file or directory"}


def test_replaced_directory_is_not_followed(directory: Path, tmp_path: Path) -> None:
    """The owner of the given directory can replace the one of disksla by a link."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with scratch_file(directory, 4096) as file:
        [named] = (directory / SCRATCH_DIRECTORY).iterdir()
        (directory / SCRATCH_DIRECTORY).rename(directory / "moved")
        victim = elsewhere / named.name
        victim.write_text("precious", encoding="ascii")
        (directory / SCRATCH_DIRECTORY).symlink_to(elsewhere)
        assert file.samefile(directory / "moved" / named.name)
    assert victim.read_text(encoding="ascii") == "precious"
    assert list((directory / "moved").iterdir()) == []


# Where a file is refused.


def test_missing_directory_is_refused(directory: Path) -> None:
    assert ": No such file or directory" in refused(directory / "missing")
    (directory / "file").touch()
    assert ": Not a directory" in refused(directory / "file")


@pytest.mark.in_check
def test_link_in_place_of_the_directory_is_refused(directory: Path) -> None:
    (directory / "elsewhere").mkdir()
    (directory / SCRATCH_DIRECTORY).symlink_to(directory / "elsewhere")
    assert "is not a directory; expected one that disksla created" in refused(directory)
    with pytest.raises(ScratchFileError, match="expected one that disksla created"):
        remove_leftovers(directory)
    assert list((directory / "elsewhere").iterdir()) == []


def test_directory_writable_by_others_is_refused(directory: Path) -> None:
    make_own(directory).chmod(0o770)
    assert "belongs to another user, can be written by other" in refused(directory)
    assert (directory / SCRATCH_DIRECTORY).exists()


@needs_root
def test_directory_of_another_user_is_refused(directory: Path) -> None:
    os.chown(make_own(directory), 65534, 65534)
    assert "belongs to another user, can be written by other" in refused(directory)


@pytest.mark.in_check
def test_more_than_the_free_space_is_refused(directory: Path) -> None:
    assert "not enough space in" in refused(directory, 2**60)
    assert list(directory.iterdir()) == []


@needs_root
@needs_loop
def test_small_file_system_is_never_filled(tmp_path: Path) -> None:
    with mounted_ext4(tmp_path, 32 * MIB) as (_, small):
        space = os.statvfs(small)
        free_bytes, total_bytes = space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize
        assert "not enough space in" in refused(small, free_bytes - total_bytes // 20 + 4096)
        with scratch_file(small, free_bytes - total_bytes // 20 - MIB):
            left = os.statvfs(small)
            assert left.f_bavail * left.f_frsize >= total_bytes // 20
        subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
        assert "is mounted read-only" in refused(small)


@needs_root
def test_tmpfs_is_refused(tmp_path: Path) -> None:
    with mounted("-t", "tmpfs", "none", at=tmp_path / "memory") as memory:
        assert "is not on a disk (tmpfs)" in refused(memory)
        assert list(memory.iterdir()) == []


@needs_root
def test_mount_over_the_directory_is_refused(directory: Path) -> None:
    with mounted("-t", "tmpfs", "-o", "mode=700", "none", at=directory / SCRATCH_DIRECTORY):
        assert "belongs to another user, can be written by other" in refused(directory)


# Leftovers of a killed process.


def test_leftovers_are_removed(directory: Path) -> None:
    code = f"""
import time
from pathlib import Path
from disksla.measure.fio.scratch_file import scratch_file
with scratch_file(Path({str(directory)!r}), 65536):
    print("made", flush=True)
    time.sleep(600)
"""
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "made\n"
        assert remove_leftovers(directory) == (), "its owner is running"
        [named] = (directory / SCRATCH_DIRECTORY).iterdir()
    finally:
        owner.kill()
        owner.communicate()
    assert remove_leftovers(directory) == (named.name,)
    assert list(directory.iterdir()) == []


def test_only_scratch_files_are_removed(directory: Path) -> None:
    made = make_own(directory)
    (made / LEFTOVER).touch()
    others = {"notes.txt", f"{LEFTOVER}.bak", "disksla-probe-1-xyz.tmp"}
    for name in others:
        (made / name).touch()
    link = "disksla-probe-124-0123456789abcdef.tmp"
    (made / link).symlink_to(made / "notes.txt")
    fifo = "disksla-probe-125-0123456789abcdef.tmp"
    os.mkfifo(made / fifo)
    subdirectory = "disksla-probe-126-0123456789abcdef.tmp"
    (made / subdirectory).mkdir()
    assert remove_leftovers(directory) == (LEFTOVER,)
    assert {one.name for one in made.iterdir()} == {*others, link, fifo, subdirectory}


def test_processes_may_share_the_directory(directory: Path) -> None:
    code = f"""
from pathlib import Path
from disksla.measure.fio.scratch_file import remove_leftovers, scratch_file
for _ in range(100):
    with scratch_file(Path({str(directory)!r}), 4096) as file:
        remove_leftovers(Path({str(directory)!r}))
        assert file.stat().st_nlink == 1
"""
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    with contextlib.ExitStack() as undo:
        for one in processes:
            undo.callback(one.kill)
        assert [one.wait(120) for one in processes] == [0, 0, 0]
    assert eventually(lambda: list(directory.iterdir()) == [], 1)
