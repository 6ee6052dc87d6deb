"""The daemon with an operator's own catalogue: start, reload, bad files."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.daemon_process import DISKSLA, PATIENCE_S, Daemon
from support.sysfs_tree import add_device
from support.waiting import eventually

ROWS = """
terms:
  - id: acme.fast
    title: Ceph SSD
    provider: acme
    provider_name: Acme Cloud
    budget: separate
    read_iops: {rule: clamp, base: 2000}
    examples: [{size_bytes: 1GiB, rates: {read_iops: 2000}}]
"""


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Return the flags for a machine with one disk, which has terms of `catalog.d`."""
    add_device(tmp_path / "sys", "block/vda", "254:0", 2**30)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "diskstats").write_text(f"   254       0 vda{' 0' * 17}\n")
    (tmp_path / "disksla.yml").write_text("disks: [{match: {device: vda}, terms: acme.fast}]\n")
    (tmp_path / "catalog.d").mkdir()
    (tmp_path / "catalog.d" / "acme.yml").write_text(ROWS)
    paths = {"config.file": "disksla.yml", "path.procfs": "proc", "path.sysfs": "sys"}
    return [f"--{option}={tmp_path / name}" for option, name in paths.items()]


def test_reload_reads_catalog_files(
    start_daemon: Callable[..., Daemon], flags: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "catalog.d" / "acme.yml"
    daemon = start_daemon(*flags)

    def has_limit(iops: int) -> bool:
        return daemon.samples(device="vda").get("disksla_limit_read_iops") == iops

    assert eventually(lambda: has_limit(2000), PATIENCE_S)
    file.write_text(ROWS.replace("base: 2000", "base: 3000"))
    status, text = daemon.request("POST", "/-/reload")
    assert status == 500
    assert f"{file}:9: terms[0].examples[0].rates.read_iops: found 2000; expected 3000" in text
    assert daemon.samples()["disksla_config_last_reload_successful"] == 0
    assert has_limit(2000)
    file.write_text(ROWS.replace("2000", "3000"))
    assert daemon.request("POST", "/-/reload")[0] == 200
    assert eventually(lambda: has_limit(3000), PATIENCE_S)


def test_serve_does_not_start_with_bad_catalog_file(flags: list[str], tmp_path: Path) -> None:
    file = tmp_path / "catalog.d" / "acme.yml"
    file.write_text(ROWS.replace("clamp", "clmap"))
    ended = subprocess.run(
        [str(DISKSLA), "serve", *flags], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert f"{file}:8: terms[0].read_iops.rule: found 'clmap'" in ended.stderr
    assert ended.stdout == ""
