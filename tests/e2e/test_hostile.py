"""Disks with hostile names: they are escaped or left out wherever names are shown."""

import html
import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from disksla.base.units import GIB
from disksla.kernel.disks.udev_database import LONGEST_NAME
from support.daemon_process import StartDaemon, run
from support.sysfs_tree import add_device

SERIAL = 'ev\x1b]0;owned\x07il\n# HELP x "},device="vda\\'
MODEL = "<script>alert(1)</script>[red]&\u202egnp\x9b31m"
MOUNT = "/mnt/\x1b[2J\x1b[31mroot"
BY_ID = "virtio-\x1b[8mhidden"
UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that a terminal interprets or does not show, except line ends."""


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    """Return the options for a machine with such disks."""
    sysfs, procfs, udev = (tmp_path / name for name in ("sys", "proc", "udev"))
    add_device(sysfs, "block/vdb", "254:16", GIB, serial=SERIAL, diskseq="7")
    device = sysfs / "devices" / "block" / "vdb" / "device"
    device.mkdir()
    (device / "model").write_text(MODEL)
    add_device(sysfs, "block/vdc", "254:32", GIB, serial="s" * 4000)
    add_device(sysfs, "block/vd\x1b[2J", "254:48", GIB)
    udev.mkdir()
    (udev / "b254:16").write_text(f"S:disk/by-id/{BY_ID}\nE:ID_FS_LABEL={MODEL}\n")
    (procfs / "1").mkdir(parents=True)
    (procfs / "1" / "mountinfo").write_text(f"30 1 254:16 / {MOUNT} rw - ext4 /dev/vdb rw\n")
    lines = ("254 16 vdb", "254 32 vdc")
    (procfs / "diskstats").write_text("".join(f"{line}{' 0' * 17}\n" for line in lines))
    return (f"--path.sysfs={sysfs}", f"--path.procfs={procfs}", f"--path.udev-data={udev}")


def test_tables_escape_control_characters(options: tuple[str, ...]) -> None:
    for command in (("disks",), ("explain", "vdb", "--for=200ms")):
        ended = run(*command, *options)
        assert "script" in ended.stdout
        assert r"\x1b[2J" in "".join(ended.stdout.split())
        assert not UNSAFE.search(ended.stdout)
        assert not UNSAFE.search(ended.stderr)


def test_device_with_impossible_name_is_left_out(options: tuple[str, ...]) -> None:
    ended = run("disks", "--json", *options)
    assert [each["device"] for each in json.loads(ended.stdout)] == ["vdb", "vdc"]
    [warning] = ended.stderr.splitlines()
    assert "device skipped: found device name" in warning
    assert not UNSAFE.search(ended.stderr)


def test_error_messages_escape_control_characters(options: tuple[str, ...]) -> None:
    ended = run("explain", "vd\x1b[2Jx", *options, status=2)
    assert r"no disk named 'vd\x1b[2Jx'" in ended.stderr
    assert not UNSAFE.search(ended.stderr)


def test_daemon_escapes_labels_pages_and_log(
    options: tuple[str, ...], tmp_path: Path, start_daemon: StartDaemon
) -> None:
    (tmp_path / "config.yml").write_text(f"state: {{directory: {tmp_path}}}\n")
    daemon = start_daemon(*options, f"--config.file={tmp_path}/config.yml", "--log.format=json")
    _, metrics = daemon.get("/metrics")
    families = {family.name: family for family in text_string_to_metric_families(metrics)}
    samples = families["disksla_disk_info"].samples
    labels = {sample.labels["device"]: sample.labels for sample in samples}
    assert labels.keys() == {"vdb", "vdc"}
    assert labels["vdb"]["serial"] == 'ev ]0;owned il # HELP x "},device="vda\\'
    [mount] = families["disksla_mount_info"].samples
    assert mount.labels == {"device": "vdb", "mountpoint": MOUNT}
    assert len(labels["vdc"]["serial"]) == LONGEST_NAME
    _, page = daemon.get("/")
    assert page.count("<script") == 1  # the one that the policy of the page allows
    assert html.escape("<script>alert(1)</script>[red]&") in page
    daemon.end()
    events = [json.loads(line) for line in daemon.log()]  # each is one line
    assert any("device skipped: found device name" in event.get("err", "") for event in events)
    assert not UNSAFE.search("\n".join(daemon.log()))
