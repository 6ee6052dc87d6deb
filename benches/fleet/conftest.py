"""Models of disks that the workers of a run, and the processes that they start, share."""

import os
from collections.abc import Iterator

import pytest

from fleet.models import SHARED_FILE


@pytest.fixture(scope="session", autouse=True)
def shared_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        directory = directory.parent  # of all workers
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SHARED_FILE, str(directory / "fleet-models"))
        yield
