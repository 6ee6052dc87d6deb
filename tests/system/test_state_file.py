"""The file of saved state: written as a whole, set aside when damaged."""

import logging
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from disksla.errors import DiskslaError
from disksla.system.state_file import FILE_NAME, MOST_BYTES, StateFile
from support.log_events import events


def trusting(content: bytes) -> bytes:
    return content


def refusing(content: bytes) -> bytes:
    raise DiskslaError(f"{len(content)} bytes of nothing")


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@contextmanager
def files_no_larger_than(size_bytes: int) -> Iterator[None]:
    """Let the kernel refuse what a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_is_written_is_read_and_only_ours_to_see(tmp_path: Path) -> None:
    file = StateFile(tmp_path)
    assert file.read(trusting) is None
    assert file.write(b"one")
    assert file.write(b"another")
    assert file.read(trusting) == b"another"
    assert names(tmp_path) == [FILE_NAME]
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert (file.problem, file.errors) == (None, 0)


def test_a_draft_that_was_left_does_not_stand_in_the_way(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"not ours")
    directory = tmp_path / "state"
    directory.mkdir()
    (directory / f"{FILE_NAME}.new").symlink_to(elsewhere)
    assert StateFile(directory).write(b"state")
    assert elsewhere.read_bytes() == b"not ours"
    assert names(directory) == [FILE_NAME]


def test_a_refused_file_is_set_aside_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = StateFile(tmp_path)
    file.write(b"damaged")
    assert file.read(refusing) is None
    (aside,) = names(tmp_path)
    assert aside.startswith(f"{FILE_NAME}.damaged-2")
    assert (tmp_path / aside).read_bytes() == b"damaged"
    assert file.problem is not None
    assert "7 bytes of nothing" in file.problem
    assert aside in file.problem
    [event] = events(caplog)
    assert event.fields == {"file": file.path, "err": file.problem}
    assert file.errors == 1
    assert file.read(trusting) is None
    assert file.write(b"new")
    assert file.read(trusting) == b"new"


@pytest.mark.parametrize("kind", ["directory", "fifo", "link", "large"])
def test_what_is_no_file_of_ours_is_not_read(tmp_path: Path, kind: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"not ours")
    directory = tmp_path / "state"
    directory.mkdir()
    file = StateFile(directory)
    if kind == "directory":
        file.path.mkdir()
    elif kind == "fifo":
        os.mkfifo(file.path)
    elif kind == "link":
        file.path.symlink_to(elsewhere)
    else:
        file.path.touch()
        os.truncate(file.path, MOST_BYTES + 1)
    assert file.read(trusting) is None
    assert file.errors == 1
    (aside,) = names(directory)
    assert ".damaged-" in aside
    assert elsewhere.read_bytes() == b"not ours"


def test_a_missing_directory_is_said_once_and_not_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    directory = tmp_path / "state"
    file = StateFile(directory)
    assert file.read(trusting) is None
    assert file.errors == 0
    assert not file.write(b"state")
    assert not file.write(b"state")
    assert not directory.exists()
    assert file.errors == 2
    assert file.problem == f"cannot save to {file.path}: No such file or directory"
    directory.mkdir()
    assert file.write(b"state")
    assert file.errors == 2
    problem = f"cannot save to {file.path}: No such file or directory"
    assert events(caplog) == [
        ("warning", "state file problem", {"file": file.path, "err": problem}),
        ("info", "state file recovered", {"file": file.path}),
    ]


def test_a_full_disk_leaves_the_old_state(tmp_path: Path) -> None:
    file = StateFile(tmp_path)
    assert file.write(b"old")
    with files_no_larger_than(10):
        assert not file.write(b"much longer than that")
    assert file.problem == f"cannot save to {file.path}: File too large"
    assert file.read(trusting) == b"old"
    assert names(tmp_path) == [FILE_NAME]


def test_what_cannot_be_moved_is_left_and_not_trusted() -> None:
    file = StateFile(Path("/proc/self"))
    file.path = file.path.with_name("status")
    assert file.read(refusing) is None
    assert file.problem is not None
    assert "nor moved" in file.problem
