"""One measurement at a time."""

from pathlib import Path

import pytest

from disksla.errors import DiskslaError
from disksla.system.lock import measurement_lock


def test_the_second_is_told_that_it_is_not_alone(tmp_path: Path) -> None:
    with measurement_lock(tmp_path) as first, measurement_lock(tmp_path) as second:
        assert first
        assert not second
    with measurement_lock(tmp_path) as again:
        assert again
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_made_yet_is_locked_by_what_is_above_it(tmp_path: Path) -> None:
    with (
        measurement_lock(tmp_path / "lib" / "disksla") as first,
        measurement_lock(tmp_path) as second,
    ):
        assert first
        assert not second
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_locked_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(
            DiskslaError, match=r"cannot tell whether another measurement runs: .*File name"
        ),
        measurement_lock(tmp_path / ("x" * 300)),
    ):
        pytest.fail("nothing was locked")


def test_the_lock_ends_with_whatever_is_raised(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), measurement_lock(tmp_path):
        raise KeyboardInterrupt
    with measurement_lock(tmp_path) as is_alone:
        assert is_alone
