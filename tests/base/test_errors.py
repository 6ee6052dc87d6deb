"""Exceptions: one base, and one suffix."""

import importlib
import pkgutil

import pytest

import disksla
from disksla.base.errors import DiskslaError

MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(disksla.__path__, "disksla.")
    if module.name != "disksla.__main__"
]
EXCEPTIONS = [
    value
    for module in MODULES
    for value in vars(module).values()
    if isinstance(value, type)
    and issubclass(value, BaseException)
    and value.__module__ == module.__name__
]


@pytest.mark.parametrize("exception", EXCEPTIONS, ids=lambda exception: exception.__name__)
def test_exception_derives_from_disksla_error(exception: type[BaseException]) -> None:
    assert issubclass(exception, DiskslaError)
    assert exception.__name__.endswith("Error")
