"""Fixtures of fault tests: the real daemon, and a host of files."""

from pathlib import Path

import pytest

from e2e.conftest import start_daemon
from support.fake_host import FakeMachine

__all__ = ["start_daemon"]


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)
