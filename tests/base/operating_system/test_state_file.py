"""The state file: replaced atomically, renamed if it cannot be trusted. The measurement lock."""

import logging
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.state_file import (
    FILE_NAME,
    MAX_BYTES,
    StateFile,
    measurement_lock,
)
from support.log_events import events


def accept(content: bytes) -> bytes:
    return content


def reject(content: bytes) -> bytes:
    raise DiskslaError(f"{len(content)} invalid bytes")


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@contextmanager
def limited_file_size(size_bytes: int) -> Iterator[None]:
    """Limit the size of files, so that the kernel fails writes as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_write_replaces_a_private_file(tmp_path: Path) -> None:
    file = StateFile(tmp_path)
    assert file.read(accept) is None
    assert file.write(b"one")
    assert file.write(b"another")
    assert file.read(accept) == b"another"
    assert names(tmp_path) == [FILE_NAME]
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert (file.problem, file.errors) == (None, 0)


def test_write_replaces_leftover_draft(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"other content")
    directory = tmp_path / "state"
    directory.mkdir()
    (directory / f"{FILE_NAME}.new").symlink_to(target)
    assert StateFile(directory).write(b"state")
    assert target.read_bytes() == b"other content"
    assert names(directory) == [FILE_NAME]


def test_read_renames_a_rejected_file_and_logs_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = StateFile(tmp_path)
    file.write(b"damaged")
    assert file.read(reject) is None
    [aside] = names(tmp_path)
    assert aside.startswith(f"{FILE_NAME}.damaged-2")
    assert (tmp_path / aside).read_bytes() == b"damaged"
    assert file.problem is not None
    assert "7 invalid bytes" in file.problem
    assert aside in file.problem
    [event] = events(caplog)
    assert event.fields == {"file": file.path, "err": file.problem}
    assert file.errors == 1
    assert file.read(accept) is None
    assert file.write(b"new")
    assert file.read(accept) == b"new"


@pytest.mark.parametrize("kind", ["directory", "fifo", "link", "large"])
def test_read_rejects_special_and_large_files(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"other content")
    directory = tmp_path / "state"
    directory.mkdir()
    file = StateFile(directory)
    if kind == "directory":
        file.path.mkdir()
    elif kind == "fifo":
        os.mkfifo(file.path)
    elif kind == "link":
        file.path.symlink_to(target)
    else:
        file.path.touch()
        os.truncate(file.path, MAX_BYTES + 1)
    assert file.read(accept) is None
    assert file.errors == 1
    [aside] = names(directory)
    assert ".damaged-" in aside
    assert target.read_bytes() == b"other content"


def test_missing_directory_is_logged_once_and_not_created(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    directory = tmp_path / "state"
    file = StateFile(directory)
    assert file.read(accept) is None
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


def test_failed_write_keeps_the_old_content(tmp_path: Path) -> None:
    file = StateFile(tmp_path)
    assert file.write(b"old")
    with limited_file_size(10):
        assert not file.write(b"much longer than that")
    assert file.problem == f"cannot save to {file.path}: File too large"
    assert file.read(accept) == b"old"
    assert names(tmp_path) == [FILE_NAME]


def test_read_ignores_a_rejected_file_it_cannot_rename() -> None:
    file = StateFile(Path("/proc/self"))
    file.path = file.path.with_name("status")
    assert file.read(reject) is None
    assert file.problem is not None
    assert "cannot rename it" in file.problem


def test_lock_is_exclusive_and_leaves_no_file(tmp_path: Path) -> None:
    with measurement_lock(tmp_path) as first, measurement_lock(tmp_path) as second:
        assert first
        assert not second
    with measurement_lock(tmp_path) as again:
        assert again
    assert list(tmp_path.iterdir()) == []


def test_lock_of_missing_directory_is_on_its_parent(tmp_path: Path) -> None:
    with (
        measurement_lock(tmp_path / "lib" / "disksla") as first,
        measurement_lock(tmp_path) as second,
    ):
        assert first
        assert not second
    assert list(tmp_path.iterdir()) == []


def test_lock_raises_if_directory_cannot_be_opened(tmp_path: Path) -> None:
    with (
        pytest.raises(
            DiskslaError, match=r"cannot check whether another measurement runs: .*File name"
        ),
        measurement_lock(tmp_path / ("x" * 300)),
    ):
        pytest.fail("the lock was acquired")


def test_lock_is_released_by_an_exception(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), measurement_lock(tmp_path):
        raise KeyboardInterrupt
    with measurement_lock(tmp_path) as acquired:
        assert acquired
