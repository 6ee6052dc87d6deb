"""Fixtures of tests with several stores."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from engines.programs import missing
from engines.stores import Stores, stores_in


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
