"""A disk whose names were made to break things: what becomes of them, wherever they are shown."""

import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from disksla.disks.sysfs_attributes import LONGEST_NAME
from disksla.units import GIB
from support.daemon_process import Daemon, run
from support.sysfs_tree import add_device

SERIAL = 'ev\x1b]0;owned\x07il\n# HELP x "},device="vda\\'
MODEL = "<script>alert(1)</script>[red]&\u202egnp\x9b31m"
MOUNT = "/mnt/\x1b[2J\x1b[31mroot"
BY_ID = "virtio-\x1b[8mhidden"
UNSEEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
"""What a terminal obeys, or does not show, but for the ends of lines."""


@pytest.fixture
def flags(tmp_path: Path) -> tuple[str, ...]:
    """Give the flags that lead to a machine with a disk like that."""
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


def test_tables_hold_nothing_that_a_terminal_obeys(flags: tuple[str, ...]) -> None:
    for words in (("discover",), ("explain", "vdb", "--duration=200ms")):
        ended = run(*words, *flags)
        assert "script" in ended.stdout
        assert r"\x1b[2J" in "".join(ended.stdout.split())
        assert not UNSEEN.search(ended.stdout)
        assert not UNSEEN.search(ended.stderr)


def test_a_device_with_a_name_of_no_driver_is_left_out_and_said(flags: tuple[str, ...]) -> None:
    ended = run("discover", "--json", *flags)
    assert [each["device"] for each in json.loads(ended.stdout)] == ["vdb", "vdc"]
    [said] = ended.stderr.splitlines()
    assert "is no name of a device; the device is left out" in said
    assert not UNSEEN.search(ended.stderr)


def test_complaints_hold_nothing_that_a_terminal_obeys(flags: tuple[str, ...]) -> None:
    ended = run("explain", "vd\x1b[2Jx", *flags, status=2)
    assert r"no disk named 'vd\x1b[2Jx'" in ended.stderr
    assert not UNSEEN.search(ended.stderr)


def test_the_daemon_serves_it_as_labels_and_text(
    flags: tuple[str, ...], tmp_path: Path, start_daemon: Callable[..., Daemon]
) -> None:
    (tmp_path / "config.yml").write_text(f"state: {{directory: {tmp_path}}}\n")
    daemon = start_daemon(*flags, f"--config.file={tmp_path}/config.yml", "--log.format=json")
    _, metrics = daemon.get("/metrics")
    [info] = [
        family
        for family in text_string_to_metric_families(metrics)
        if family.name == "disksla_disk_info"
    ]
    labels = {sample.labels["device"]: sample.labels for sample in info.samples}
    assert labels.keys() == {"vdb", "vdc"}
    assert labels["vdb"]["serial"] == 'ev ]0;owned il # HELP x "},device="vda\\'
    assert labels["vdb"]["mountpoint"] == MOUNT
    assert len(labels["vdc"]["serial"]) == LONGEST_NAME
    _, page = daemon.get("/")
    assert "<script" not in page
    assert html.escape("<script>alert(1)</script>[red]&") in page
    daemon.end()
    events = [json.loads(line) for line in daemon.log()]  # each is one line, whatever it quotes
    assert any("is no name of a device" in event.get("err", "") for event in events)
    assert not UNSEEN.search("\n".join(daemon.log()))
