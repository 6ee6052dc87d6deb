import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from disksla.errors import DiskslaError
from disksla.fio import scratch_file as testfile
from disksla.fio.job import FioJob
from disksla.fio.runner import find_fio
from disksla.fio.scratch_file import SCRATCH_DIRECTORY, remove_leftovers
from disksla.fio.scratch_file_rules import ScratchFileError
from support.log_events import events
from support.loop_device import attached, eventually, needs_loop

MIB = 1024**2
LEFT = "disksla-probe-123-0123456789abcdef.tmp"

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="NOT TESTED: to mount, and to be somebody else, needs root"
)
needs_mkfs = pytest.mark.skipif(
    shutil.which("mkfs.ext4") is None, reason="NOT TESTED: mkfs.ext4 is missing"
)
needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="NOT TESTED: fio is missing")


@contextmanager
def mounted(*words: str, at: Path) -> Iterator[Path]:
    at.mkdir()
    subprocess.run(["mount", *words, str(at)], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)


@contextmanager
def ext4(room: Path, size_bytes: int = 32 * MIB) -> Iterator[Path]:
    image = room / "image"
    with image.open("wb") as file:
        file.truncate(size_bytes)
    subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", str(image)], check=True)
    with attached(image) as device, mounted(f"/dev/{device}", at=room / "mounted") as place:
        yield place


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory on a disk, as far as the machine that runs the tests has one there."""
    try:
        remove_leftovers(tmp_path)
        with testfile.scratch_file(tmp_path, 4096):
            pass
    except ScratchFileError as error:
        pytest.skip(f"NOT TESTED: temporary files are on no disk: {error}")
    return tmp_path


def refused(directory: Path, size_bytes: int = MIB) -> str:
    with pytest.raises(ScratchFileError) as caught, testfile.scratch_file(directory, size_bytes):
        pass
    assert str(directory) in str(caught.value) or caught.value.reason in {
        "not_a_disk",
        "read_only",
        "network",
    }
    return caught.value.reason


def ours(directory: Path) -> Path:
    made = directory / SCRATCH_DIRECTORY
    made.mkdir(0o700)
    return made


# The file.


def test_a_file_is_there_and_gone_afterwards(place: Path) -> None:
    with testfile.scratch_file(place, 3 * MIB + 4096) as file:
        [named] = (place / SCRATCH_DIRECTORY).iterdir()
        assert named.name.startswith(f"disksla-probe-{os.getpid()}-")
        assert named.samefile(file)
        found = named.stat()
        assert found.st_size == 3 * MIB + 4096
        assert found.st_blocks * 512 >= found.st_size, "all of it is allocated"
        assert found.st_mode & 0o777 == 0o600
        assert (place / SCRATCH_DIRECTORY).stat().st_mode & 0o777 == 0o700
    assert not file.exists()
    assert list(place.iterdir()) == []


def test_what_is_read_was_written(place: Path) -> None:
    told: list[int] = []
    with testfile.scratch_file(place, 2 * MIB + 1, on_written=told.append) as file:
        content = file.read_bytes()
        assert content.count(0) < len(content) / 100
    assert told == [MIB, 2 * MIB, 2 * MIB + 1]


def test_it_can_be_left_unwritten(place: Path) -> None:
    with testfile.scratch_file(place, MIB, written=False) as file:
        assert file.read_bytes() == bytes(MIB)


def test_whatever_is_raised_leaves_nothing(place: Path) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        testfile.scratch_file(place, 2 * MIB, on_written=interrupted),
    ):
        pass
    with pytest.raises(ZeroDivisionError), testfile.scratch_file(place, 4096):
        raise ZeroDivisionError
    assert list(place.iterdir()) == []


def test_two_at_a_time_do_not_disturb_each_other(place: Path) -> None:
    with testfile.scratch_file(place, 4096) as one:
        with testfile.scratch_file(place, 4096) as other:
            assert not one.samefile(other)
        assert one.exists()
        assert remove_leftovers(place) == ()
        assert one.exists()
    assert list(place.iterdir()) == []


def test_a_name_that_is_no_more_its_own_is_left_alone(place: Path) -> None:
    with testfile.scratch_file(place, 4096):
        [named] = (place / SCRATCH_DIRECTORY).iterdir()
        named.unlink()
        named.write_text("of somebody else", encoding="ascii")
    assert named.read_text(encoding="ascii") == "of somebody else"


def test_a_file_that_cannot_be_removed_is_told(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with testfile.scratch_file(place, 4096):
        [named] = (place / SCRATCH_DIRECTORY).iterdir()
        named.unlink()
    [event] = events(caplog)
    assert event.message == "cannot remove scratch file"
    assert event.fields == {"file": named.name, "err": "No such file or directory"}


@needs_fio
@pytest.mark.parametrize("pattern", ["randread", "randwrite"])
def test_fio_measures_in_it(place: Path, pattern: str) -> None:
    with testfile.scratch_file(place, MIB) as file:
        [named] = (place / SCRATCH_DIRECTORY).iterdir()
        before = named.read_bytes()
        job = FioJob(
            name="x",
            target=str(file),
            pattern=pattern,  # type: ignore[arg-type]
            request_bytes=4096,
            runtime_s=0.5,
            rate_iops=100,
        )
        result = find_fio().run(job, limit_s=30)
        assert result.read.requests + result.write.requests > 10
        assert (named.read_bytes() == before) == (pattern == "randread")
        assert named.stat().st_size == MIB


def test_an_exchanged_directory_does_not_lead_elsewhere(place: Path, tmp_path: Path) -> None:
    """Whoever owns the given directory can put a link where ours was."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with testfile.scratch_file(place, 4096) as file:
        [named] = (place / SCRATCH_DIRECTORY).iterdir()
        (place / SCRATCH_DIRECTORY).rename(place / "moved")
        victim = elsewhere / named.name
        victim.write_text("precious", encoding="ascii")
        (place / SCRATCH_DIRECTORY).symlink_to(elsewhere)
        assert file.samefile(place / "moved" / named.name)
    assert victim.read_text(encoding="ascii") == "precious"
    assert list((place / "moved").iterdir()) == []


# Where none is made.


def test_where_there_is_no_directory(place: Path) -> None:
    assert refused(place / "missing") == "not_a_directory"
    (place / "file").touch()
    assert refused(place / "file") == "not_a_directory"


def test_a_link_in_place_of_our_directory(place: Path) -> None:
    (place / "elsewhere").mkdir()
    (place / SCRATCH_DIRECTORY).symlink_to(place / "elsewhere")
    assert refused(place) == "not_ours"
    with pytest.raises(ScratchFileError, match="disksla did not make it"):
        remove_leftovers(place)
    assert list((place / "elsewhere").iterdir()) == []


def test_a_file_in_place_of_our_directory(place: Path) -> None:
    (place / SCRATCH_DIRECTORY).touch()
    assert refused(place) == "not_ours"


def test_a_directory_that_others_may_write_to(place: Path) -> None:
    ours(place).chmod(0o770)
    assert refused(place) == "not_ours"
    assert (place / SCRATCH_DIRECTORY).exists()


@needs_root
def test_a_directory_of_somebody_else(place: Path) -> None:
    os.chown(ours(place), 65534, 65534)
    assert refused(place) == "not_ours"


def test_more_than_there_is(place: Path) -> None:
    assert refused(place, 2**60) == "no_space"
    assert list(place.iterdir()) == []


@needs_root
@needs_loop
@needs_mkfs
def test_a_small_file_system_is_never_filled(tmp_path: Path) -> None:
    with ext4(tmp_path) as small:
        room = os.statvfs(small)
        free_bytes, total_bytes = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
        assert refused(small, free_bytes - total_bytes // 20 + 4096) == "no_space"
        with testfile.scratch_file(small, free_bytes - total_bytes // 20 - MIB, written=False):
            left = os.statvfs(small)
            assert left.f_bavail * left.f_frsize >= total_bytes // 20
        subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
        assert refused(small) == "read_only"


@needs_root
def test_memory_is_no_disk(tmp_path: Path) -> None:
    with mounted("-t", "tmpfs", "none", at=tmp_path / "memory") as memory:
        assert refused(memory) == "not_a_disk"
        assert list(memory.iterdir()) == []


@needs_root
def test_a_file_system_mounted_over_our_directory_is_not_ours(place: Path) -> None:
    with mounted("-t", "tmpfs", "-o", "mode=700", "none", at=place / SCRATCH_DIRECTORY):
        assert refused(place) == "not_ours"


# What a killed one leaves.


def test_what_a_killed_one_leaves_is_removed(place: Path) -> None:
    code = f"""
import time
from pathlib import Path
from disksla.fio.scratch_file import scratch_file
with scratch_file(Path({str(place)!r}), 65536):
    print("made", flush=True)
    time.sleep(600)
"""
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "made\n"
        assert remove_leftovers(place) == (), "its owner lives"
        [named] = (place / SCRATCH_DIRECTORY).iterdir()
    finally:
        owner.kill()
        owner.communicate()
    assert remove_leftovers(place) == (named.name,)
    assert list(place.iterdir()) == []


def test_only_our_own_files_are_removed(place: Path) -> None:
    made = ours(place)
    (made / LEFT).touch()
    others = {"notes.txt", f"{LEFT}.bak", "disksla-probe-1-xyz.tmp"}
    for name in others:
        (made / name).touch()
    link = "disksla-probe-124-0123456789abcdef.tmp"
    (made / link).symlink_to(made / "notes.txt")
    fifo = "disksla-probe-125-0123456789abcdef.tmp"
    os.mkfifo(made / fifo)
    directory = "disksla-probe-126-0123456789abcdef.tmp"
    (made / directory).mkdir()
    assert remove_leftovers(place) == (LEFT,)
    assert {one.name for one in made.iterdir()} == {*others, link, fifo, directory}


def test_where_nothing_was_left(place: Path) -> None:
    assert remove_leftovers(place) == ()
    with pytest.raises(DiskslaError):
        remove_leftovers(place / "missing")


def test_many_at_once_make_and_remove_the_directory(place: Path) -> None:
    code = f"""
from pathlib import Path
from disksla.fio.scratch_file import remove_leftovers, scratch_file
for _ in range(100):
    with scratch_file(Path({str(place)!r}), 4096, written=False) as file:
        remove_leftovers(Path({str(place)!r}))
        assert file.stat().st_nlink == 1
"""
    many = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    with contextlib.ExitStack() as undo:
        for one in many:
            undo.callback(one.kill)
        assert [one.wait(120) for one in many] == [0, 0, 0]
    assert eventually(lambda: list(place.iterdir()) == [], 1)
