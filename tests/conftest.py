"""Lanes, profiles and fixtures of all tests."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import is_hypothesis_test, settings

from support.certificates import make_certificates
from support.loop_device import CONTROL, attached

# Timing never fails a property, and every run of a lane tries the same examples; only the nightly
# lane searches for new ones.
settings.register_profile("dev", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("nightly", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("dev")

TESTS = Path(__file__).resolve().parent
SYSTEM = {
    "browser", "clouds", "e2e", "faults", "fleet", "fuzz", "grafana", "integration", "lab",
    "packages",
}  # fmt: skip
"""Folders of tests that need root, disks, other programs or patience: not in `make test`."""
ALONE = {"integration", "lab"}
"""Folders of tests that measure disks, or reserve them: they run one after another, and nothing
beside them, because they share the devices and the measurement lock of the machine. Such tests in
other folders have the mark `alone`."""
NO_COVERAGE = {
    "test_hosts.py", "test_lab.py", "test_limiter.py", "test_recordings.py", "test_template.py",
    "test_throttling.py", "test_words.py",
}  # fmt: skip
"""Files of tests that compute much, as those that judge many seconds of samples. `make cover` runs
them without measuring coverage, under which they take two to three times as long."""
ATTEMPTS = 3
"""A machine whose CPU or disk is busy elsewhere delays what a test measures. Such a test is
repeated, and the summary says so."""

# A shell that starts pytest in the background makes it ignore SIGINT, and so its children. After
# SIGTERM, as after Ctrl-C, fixtures must run to the end to remove mounts and loop devices.
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --golden, which `make golden` uses to rewrite expected output."""
    parser.addoption("--golden", action="store_true", help="rewrite the expected output of tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder, and repeat those that measure; a property is never repeated."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in SYSTEM:
            item.add_marker("system")
            if not is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker(pytest.mark.flaky(reruns=ATTEMPTS - 1, reruns_delay=5))
        if folder in ALONE:
            item.add_marker("alone")
        if item.path.name in NO_COVERAGE:
            item.add_marker("no_coverage")


@pytest.fixture(autouse=True)
def own_procfs() -> Iterator[None]:
    """Reset psutil to the procfs of this machine after each test."""
    yield
    psutil.PROCFS_PATH = "/proc"


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of certificates that no test changes."""
    directory = tmp_path_factory.mktemp("certificates")
    make_certificates(directory)
    return directory


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Return a function that compares a text with its golden file, or rewrites it (--golden)."""

    def rewrite(path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")

    def compare(path: Path, text: str) -> None:
        expected = path.read_text(encoding="utf-8") if path.exists() else None
        assert text == expected, f"{path} differs; if the new output is right: make golden"

    return rewrite if request.config.getoption("--golden") else compare


@pytest.fixture
def loop_device(tmp_path: Path) -> Iterator[str]:
    """Return the kernel name of a loop device of 64 MiB."""
    if os.geteuid() != 0 or not CONTROL.exists():
        pytest.skip("NOT TESTED: loop devices need root and /dev/loop-control")
    file = tmp_path / "disk"
    with file.open("wb") as image:
        os.posix_fallocate(image.fileno(), 0, 64 * 2**20)
    with attached(file) as device:
        yield device
