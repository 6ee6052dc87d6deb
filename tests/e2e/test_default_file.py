"""The default of --config.file, in a mount namespace with an /etc of its own."""

import os
import subprocess
from pathlib import Path

import pytest

from support.daemon_process import DISKSLA, PATIENCE_S

HOST = Path(__file__).parent.parent / "hosts" / "counter-wrap" / "ticks.jsonl"
IN_NAMESPACE = """
mount -t tmpfs none /etc
mkdir /etc/disksla
printf '%s' "$CONTENT" > /etc/disksla/disksla.yml
exec "$@"
"""


def run_with_default_file(
    content: str, *arguments: str, status: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run disksla where the default file has this content; return what it printed."""
    if os.geteuid():
        pytest.skip("NOT TESTED: a mount namespace needs root")
    ended = subprocess.run(
        ["unshare", "--mount", "sh", "-ec", IN_NAMESPACE, "sh", str(DISKSLA), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, "CONTENT": content, "COLUMNS": "80"},
    )
    assert ended.returncode == status, ended.stderr
    return ended


@pytest.mark.parametrize(
    "arguments",
    [
        ("disks",),
        ("explain", "vda", "--for=300ms"),
        ("serve", "--once", "--for=300ms"),
        ("doctor", "--json"),
        ("check-config",),
        ("serve", "--web.listen-address=127.0.0.1:0"),
        ("record", "/dev/null"),
        ("verify", "vda", "--latency"),
        ("verify", "vda"),
        ("sweep", "vda", "--dry-run"),
        ("sweep", "vda", "--identify"),
        ("judge", str(HOST), "--terms=vk.ceph-ssd", "--size=1GiB"),
    ],
    ids=" ".join,
)
def test_every_command_reads_the_default_file(arguments: tuple[str, ...]) -> None:
    status = 1 if arguments[0] == "doctor" else 2
    ended = run_with_default_file("disks: [{match: {device: vda}}]\n", *arguments, status=status)
    assert "/etc/disksla/disksla.yml:1: disks[0].terms: missing" in ended.stderr + ended.stdout


def test_check_config_names_entries_that_match_no_disk_of_this_machine() -> None:
    ended = run_with_default_file(
        "disks:\n- {match: {mountpoint: /no/such/}, terms: vk.ceph-ssd}\n", "check-config"
    )
    assert "note: disks[0] of the configuration (mountpoint /no/such) matches" in ended.stdout


def test_a_named_file_replaces_the_default_one(tmp_path: Path) -> None:
    good = tmp_path / "good.yml"
    good.write_text("disks: []\n")
    run_with_default_file("invalid: 1\n", "disks", f"--config.file={good}")


def test_a_recording_needs_no_configuration_of_this_machine() -> None:
    run_with_default_file("invalid: 1\n", "replay", str(HOST))
    run_with_default_file("invalid: 1\n", "explain", "vda", "--recording", str(HOST))
