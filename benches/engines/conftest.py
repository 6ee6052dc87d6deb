"""Fixtures of tests with several stores."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from engines.history import SEED
from engines.programs import Programs, missing
from engines.stores import Stores, stores_in
from fleet.server import serve_fleet


@pytest.fixture(scope="module")
def make_stores(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[int, str], Stores]]:
    """Return a function that runs the stores with a history of so many seconds.

    The other argument is the interval of which VictoriaMetrics keeps one sample.
    """
    if (reason := missing()) is not None:
        pytest.skip(reason)
    with ExitStack() as stack:
        yield lambda length_s, deduplicated: stack.enter_context(
            stores_in(tmp_path_factory.mktemp("engines"), length_s, deduplicated)
        )


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    with ExitStack() as stack:
        yield Programs(stack, tmp_path)


@pytest.fixture(scope="module")
def fleet() -> Iterator[str]:
    with serve_fleet(SEED, time.time()) as address:
        yield str(address)
