"""Web configuration files and the page of metrics, compared with promtool."""

import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import ProcessCollector

from disksla.serve.metrics.collector import SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.state.pipeline.snapshot import Snapshot
from support.snapshots import ABOUT, BURST_LIMITS, disk_view, unknown_disk_view, view

FILES = Path(__file__).parent.parent / "serve" / "http_server" / "configurations"

NEWER_THAN_PROMTOOL = {
    "good-client-allowed-sans": "client_allowed_sans",
    "good-file-and-inline": "cert and key",
    "good-rate-limit": "rate_limit",
    "good-rate-limit-off": "rate_limit",
    "good-empty-sections": "rate_limit",
}
"""Valid files with a key that the promtool of Debian 12 (2.42) does not know."""

STRICTER_THAN_PROMTOOL = {
    "invalid-cipher-insecure": "Go has removed these suites since",
    "invalid-cipher-max-version": "would reject every client",
    "invalid-client-auth-any": "Python cannot request a certificate without verifying it",
    "invalid-client-auth-any-old-name": "the same",
    "invalid-client-ca-empty": "would reject every client",
    "invalid-curves-several": "Python can select one curve, not several",
    "invalid-header-two-lines": "would be two headers",
    "invalid-only-a-version": "would be served unencrypted",
    "invalid-version-order": "would reject every client",
}
"""Files that promtool accepts, and why they are invalid here."""


@pytest.fixture
def directory(certificates: Path, tmp_path: Path) -> Path:
    """Return a copy of the certificates, for changes by a test."""
    return Path(shutil.copytree(certificates, tmp_path / "web"))


@pytest.mark.skipif(not shutil.which("promtool"), reason="NOT TESTED: promtool is missing")
@pytest.mark.parametrize("source", sorted(FILES.glob("*.yml")), ids=lambda path: path.stem)
def test_promtool_agrees(source: Path, directory: Path) -> None:
    command = ["promtool", "check", "web-config", shutil.copy(source, directory)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    is_valid = ended.returncode == 0
    if source.stem in NEWER_THAN_PROMTOOL:
        if not is_valid:  # a newer promtool may accept it
            assert "not found in type web." in ended.stdout + ended.stderr
    elif source.stem in STRICTER_THAN_PROMTOOL:
        assert is_valid or "cipher" in source.stem
    else:
        assert is_valid == source.stem.startswith("good-"), ended.stdout + ended.stderr


def test_differences_to_promtool_name_existing_files() -> None:
    stems = {path.stem for path in FILES.glob("*.yml")}
    assert {*NEWER_THAN_PROMTOOL, *STRICTER_THAN_PROMTOOL} <= stems


@pytest.mark.skipif(not shutil.which("promtool"), reason="NOT TESTED: promtool is missing")
@pytest.mark.parametrize(
    "shown", [view(), view(disk_view(limits=BURST_LIMITS), unknown_disk_view())]
)
def test_promtool_finds_no_problem(shown: Snapshot) -> None:
    registry = make_registry(SnapshotCollector(lambda: shown, lambda: ABOUT))
    ProcessCollector(registry=registry)
    check = subprocess.run(
        ["promtool", "check", "metrics"],
        input=render_metrics(registry).body.decode(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")
