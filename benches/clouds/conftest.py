"""Fixtures of tests with metadata services and APIs of clouds."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clouds.namespace import Namespace, own_namespace

CLOUDS = Path(__file__).resolve().parent.parent.parent / ".cache" / "clouds"


@pytest.fixture(scope="session")
def namespace() -> Iterator[Namespace]:
    with own_namespace() as made:
        yield made


def environment(name: str, program: str = "python") -> Path:
    """Return the directory of an environment that `make clouds` builds; skip without it."""
    directory = CLOUDS / name
    if not (directory / "bin" / program).exists():
        pytest.skip(f"NOT TESTED: needs {name} in .cache/clouds (make clouds)")
    return directory


@pytest.fixture(scope="session")
def moto_environment() -> Path:
    return environment("moto")


@pytest.fixture(scope="session")
def openstack_environment() -> Path:
    return environment("openstack")


@pytest.fixture(scope="session")
def kubernetes_environment() -> Path:
    return environment("kubernetes", "kube-apiserver")
