"""What every test can rely on."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from support.certificates import make_certificates

settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci")

# A shell that begins us in the background makes us deaf to Ctrl-C, and what we begin after us.
# Who ends us otherwise would leave mounts and loop devices: as after Ctrl-C, they are let go.
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make golden` write expected output anew."""
    parser.addoption(
        "--golden", action="store_true", help="write the expected output of tests anew"
    )


@pytest.fixture(autouse=True)
def own_procfs() -> Iterator[None]:
    """Let psutil look at this machine again, after a test of another one."""
    yield
    psutil.PROCFS_PATH = "/proc"


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a directory of certificates, which no test changes."""
    directory = tmp_path_factory.mktemp("certificates")
    make_certificates(directory)
    return directory


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Give the check that a text is what its golden file says (or make it so, with --golden)."""

    def rewrite(path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")

    def compare(path: Path, text: str) -> None:
        expected = path.read_text(encoding="utf-8") if path.exists() else None
        assert text == expected, f"{path} says otherwise; if it is out of date: make golden"

    return rewrite if request.config.getoption("--golden") else compare
