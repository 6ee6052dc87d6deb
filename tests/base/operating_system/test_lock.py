"""The measurement lock."""

from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.state_file import measurement_lock


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
