"""Lanes, profiles and fixtures of all tests."""

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import is_hypothesis_test, settings

from support.certificates import make_certificates
from support.loop_device import CONTROL, attached

# Timing never fails a property, and every run of a lane tries the same examples; only the nightly
# lane searches for new ones. So those of `make test` are few.
settings.register_profile("dev", derandomize=True, deadline=None, max_examples=10)
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("nightly", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("dev")

ROOT = Path(__file__).resolve().parent
SYSTEM = {"browser", "e2e", "grafana", "integration", "packages"}
"""Folders of tests/ that need root, disks, other programs or patience: not in `make test`, as all
of benches/."""
IN_CHECK = {"faults", "fuzz"}
"""Folders of benches/ whose tests run in `make check`. Those of others run at night, but those
with the mark `in_check`."""
ALONE = {"integration"}
"""Folders of tests that measure disks, or reserve them: they run when no other tests do, because
they need time of the CPU at once. Such tests in other folders have the mark `alone`. They run at
night, but those with the mark `in_check`, about one for each program."""
TOGETHER = {"clouds", "engines", "integration", "lab"}
"""Folders of such tests that run one after another, because they share devices, servers, or the
measurement lock of the machine. Of other folders, those of one file do. Two groups run side by
side: most of their time, they wait."""
PATIENCE_S = 600.0
"""Time limit of a test of the system lane with all its attempts. Others have that of setup.cfg."""
NO_COVERAGE = {"test_hosts.py", "test_lab_recordings.py"}
"""Files of tests that compute much, as those that judge many seconds of samples. `make cover` does
not measure their coverage, under which they take two to three times as long."""
COVERED = {
    "test_account.py", "test_consumer_totals.py", "test_deadlines.py", "test_history_pages.py",
    "test_http_protocol.py", "test_import_diskspd.py", "test_import_fio_text.py",
    "test_interval.py",
    "test_machine_apart.py", "test_probe_results.py", "test_raw_device_rules.py",
    "test_sysfs_attributes.py", "test_terms_reading.py", "test_units.py",
}  # fmt: skip
"""Files of which the coverage of properties is measured: only they reach some branches. That of
other properties is not measured, since they try again and again what single examples reach."""
ATTEMPTS = 3
"""A machine whose CPU or disk is busy elsewhere delays what a test measures. Such a test is
repeated, and the summary says so."""

# A shell that starts pytest in the background makes it ignore SIGINT, and so its children. After
# SIGTERM, as after Ctrl-C, fixtures must run to the end to remove mounts and loop devices.
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --golden, which `make golden` uses to rewrite expected output, and --lane."""
    parser.addoption("--golden", action="store_true", help="rewrite the expected output of tests")
    parser.addoption("--lane", choices=("fast", "system"), help="collect the tests of one lane")


def pytest_xdist_auto_num_workers() -> int:
    """Return the processes of `-n auto`: the fast tests wait for a third of their time."""
    return (os.cpu_count() or 1) * 3 // 2


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests of the other lane: every process takes seconds to import them."""
    lane = config.getoption("--lane")
    parts = collection_path.relative_to(ROOT).parts
    if lane is None or not parts or parts == ("tests",):
        return None
    return True if is_of_system(parts) != (lane == "system") else None


def is_of_system(parts: tuple[str, ...]) -> bool:
    """Return whether a path below the root belongs to the system lane."""
    top, folder, *_ = *parts, ""
    return top == "benches" or folder in SYSTEM


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests, and repeat those that measure; a property is never repeated."""
    patience_s = max(PATIENCE_S, config.getoption("timeout") or 0.0)
    for item in items:
        parts = item.path.relative_to(ROOT).parts
        top, folder, *_ = parts
        is_property = is_hypothesis_test(getattr(item, "obj", None))
        if is_of_system(parts):
            item.add_marker(pytest.mark.timeout(patience_s))
            if not is_property:
                item.add_marker(pytest.mark.flaky(reruns=ATTEMPTS - 1, reruns_delay=5))
        if folder in ALONE:
            item.add_marker("alone")
        is_alone = item.get_closest_marker("alone") is not None
        if is_alone:
            group = folder if folder in TOGETHER else item.path.stem
            item.add_marker(pytest.mark.xdist_group(group))
        in_check = item.get_closest_marker("in_check") is not None
        is_nightly = is_alone or (top == "benches" and folder not in IN_CHECK)
        if is_nightly and not in_check:
            item.add_marker("nightly")
        if item.path.name in NO_COVERAGE or (is_property and item.path.name not in COVERED):
            item.add_marker("no_coverage")
    if config.getoption("cov_source"):  # what is cached was computed while coverage was measured
        items.sort(key=lambda item: item.get_closest_marker("no_coverage") is not None)


def pytest_collection_finish() -> None:
    """Keep the garbage collector from reading all modules and tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Do not trace a test whose coverage is not measured.

    The mark of pytest-cov, no_cover, has no effect in processes of xdist: two measurements are
    nested there, and it stops only one.
    """
    tracer = sys.gettrace()
    if item.get_closest_marker("no_coverage") is not None:
        sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(tracer)


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
