"""Parsers of the kernel and udev: diskstats, mountinfo, sysfs, udev database, stat, pressure."""

import math
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import psutil
from prometheus_client.parser import text_string_to_metric_families

from disksla.base.operating_system.roots import Roots
from disksla.kernel.disks.inventory import read_disks
from disksla.kernel.disks.stacking import devices_on, with_stacking
from disksla.kernel.disks.udev_database import by_id_names, decode_property, parse_udev_data
from disksla.kernel.procfs.diskstats import Counters, MalformedLineError, parse_line, to_counters
from disksla.kernel.procfs.files import InflightFiles
from disksla.kernel.procfs.iowait import parse_pressure_s
from disksla.kernel.procfs.iowait_files import HostWaitFiles
from disksla.kernel.procfs.mountinfo import parse_mountinfo
from disksla.serve.metrics.collector import SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import Tick
from fuzz.target import Target
from support import ttar
from support.simulated_host import Machine, a_disk

HOSTS = Path(__file__).parents[3] / "tests" / "hosts"
MARK = b"\n--\n"
"""Separator of the parts of an input."""


def published(state: State) -> None:
    """Check that the metrics of a state can be parsed, and that no counter is negative."""
    registry = make_registry(SnapshotCollector(lambda: Snapshot(state)))
    page = render_metrics(registry).body.decode()
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            assert not math.isnan(sample.value), sample
            assert sample.value >= 0 or not sample.name.endswith(("_total", "_count")), sample


def diskstats(content: bytes) -> bool:
    """Check that lines are 64-bit counters or malformed, and that a tick accepts any text."""
    text = content.decode(errors="replace")
    accepted = True
    for line in text.splitlines():
        try:
            parsed = parse_line(line)
        except MalformedLineError as malformed:
            assert str(malformed).isprintable()
            accepted = False
        else:
            assert len(parsed.reading) <= len(Counters._fields)
            assert all(0 <= count < 2**64 for count in (*parsed.reading, parsed.inflight) if count)
            to_counters(parsed.reading)
    whole, part = a_disk("vda"), msgspec.structs.replace(a_disk("vda1", 1), partition_of="vda")
    machine = Machine(whole, part, a_disk("vdb", minor=16))
    for each in (text, "no diskstats", text, text.replace("1", "2"), text):
        machine.tick(text=each)
    published(machine.state)
    return accepted


def mountinfo(content: bytes) -> bool:
    """Check that mounts of any mount table are assigned to disks."""
    mounts = parse_mountinfo(content.decode(errors="replace"))
    disks = with_stacking((a_disk("vda"), a_disk("vdb", minor=16, slaves=("vda",))), mounts)
    assert [disk.name for disk in disks] == ["vda", "vdb"]
    assert set(disks[1].mount_points) <= set(disks[0].mount_points)
    assert devices_on(disks[0], disks) == disks
    return bool(mounts)


def udev(content: bytes) -> bool:
    """Check that any entry has properties and names, none of them longer than the entry."""
    properties = parse_udev_data(content.decode(errors="replace"))
    assert sum(map(len, properties.values())) <= 7 * len(content)  # S:x becomes /dev/x
    assert all(len(decode_property(value)) <= len(value) for value in properties.values())
    assert tuple(sorted(set(by_id_names(properties)))) == by_id_names(properties)
    return bool(properties)


ATTRIBUTES = (
    *("dev", "size", "diskseq", "serial", "wwid", "hidden", "partition", "queue/rotational"),
    *("device/serial", "device/wwid", "device/model", "device/vpd_pg80", "inflight"),
)


@cache
def _machine_tree() -> tempfile.TemporaryDirectory[str]:
    """Return a directory for the files of a machine with one disk, removed with this process."""
    home: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory(prefix="disksla-fuzz-")
    root = Path(home.name)
    for directory in ("sys/class/block", "sys/devices/vda/device", "udev", "proc/pressure"):
        (root / directory).mkdir(parents=True)
    (root / "sys/devices/vda/queue").mkdir()
    (root / "sys/class/block/vda").symlink_to(root / "sys/devices/vda")
    return home


def sysfs(content: bytes) -> bool:
    """Check that a device has printable names, or is skipped with a printable problem."""
    root = Path(_machine_tree().name)
    *attributes, entry = content.split(MARK)
    for index, name in enumerate(ATTRIBUTES):
        path = root / "sys/devices/vda" / name
        path.unlink(missing_ok=True)
        if index < len(attributes) and attributes[index]:
            path.write_bytes(attributes[index])
    for path in (root / "udev").iterdir():
        path.unlink()
    (root / "udev/b254:0").write_bytes(entry)
    disks, problems, _ = read_disks(Roots(root / "proc", root / "sys", root / "udev"))
    assert all(problem.isprintable() for problem in problems), problems
    inflight = InflightFiles(root / "sys")
    inflight.read(("vda",))
    inflight.close()
    for disk in disks:
        assert all(
            name is None or name.isprintable() for name in (disk.serial, disk.wwn, disk.model)
        )
        machine = Machine(disk)
        machine.tick()
        published(machine.state)
    return bool(disks)


def pressure(content: bytes) -> bool:
    """Check that pressure is not negative, or a ValueError."""
    try:
        some_s, full_s = parse_pressure_s(content.decode(errors="replace"))
    except ValueError:
        return False
    assert some_s >= 0 <= full_s
    return True


def host(content: bytes) -> bool:
    """Check that iowait and pressure are each a number of seconds, or a problem."""
    root = Path(_machine_tree().name) / "proc"
    stat, _, pressure_io = content.partition(MARK)
    (root / "stat").write_bytes(stat)
    (root / "pressure/io").write_bytes(pressure_io)
    before = psutil.PROCFS_PATH
    try:
        waited, problems = HostWaitFiles(root).read()
    finally:
        psutil.PROCFS_PATH = before
    assert (waited.iowait_s is None) == ("iowait" in problems)
    assert waited.iowait_s is None or 0 <= waited.iowait_s < math.inf
    assert (waited.pressure_some_s is None) == ("pressure" in problems)
    return not problems


def ticked(content: bytes) -> Iterator[str]:
    """Yield the texts of /proc/diskstats in a recording."""
    for line in content.splitlines()[1:]:
        text = msgspec.json.decode(line, type=Tick).diskstats
        if text is not None:
            yield text


@cache
def _unpacked(host_name: str, archive: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="disksla-fuzz-") as home:
        ttar.unpack(HOSTS / host_name / f"{archive}.ttar", Path(home))
        return {
            str(path.relative_to(home)): path.read_bytes()
            for path in sorted(Path(home).rglob("*"))
            if path.is_file()
        }


def _diskstats_samples() -> list[bytes]:
    hosts = ("vm-virtio-6.18", "old-14", "partition-busy-6.18")
    texts = [next(ticked((HOSTS / name / "ticks.jsonl").read_bytes())) for name in hosts]
    return [text.encode() for text in texts]


def _udev_samples() -> list[bytes]:
    files = _unpacked("vm-virtio-6.x", "udev") | _unpacked("nvme-multipath", "udev")
    return [content for content in files.values() if content]


def _attributes(**given: bytes) -> bytes:
    of_all = [given.get(name.replace("/", "_"), b"") for name in ATTRIBUTES]
    return MARK.join([*of_all, b"E:ID_SERIAL=one\nS:disk/by-id/virtio-one\n"])


TARGETS = (
    Target(
        "diskstats",
        diskstats,
        _diskstats_samples,
        words=(b" 254 0 vda ", b" 254 1 vda1 ", b"4294967295 ", b"-1 ", b"\v", b"\x1c", b"1_0 "),
    ),
    Target(
        "mountinfo",
        mountinfo,
        lambda: [
            content
            for name in ("vm-virtio-6.x", "nvme-multipath", "dm-over-nvme")
            for path, content in _unpacked(name, "proc").items()
            if path.endswith("mountinfo")
        ],
        words=(b" - ", b"254:0", b"0:0", b"/dev/vda", b"\\040", b"\\134", b"\\377", b"/a" * 500),
    ),
    Target("udev", udev, _udev_samples, words=(b"S:disk/by-id/", b"E:", b"=", b"\\x20", b"\\x1b")),
    Target(
        "sysfs",
        sysfs,
        lambda: [
            _attributes(dev=b"254:0\n", size=b"2048\n", serial=b"vol-1\n", inflight=b"0 1\n"),
            _attributes(
                dev=b"8:0\n",
                size=b"1000\n",
                diskseq=b"9\n",
                device_model=b"QEMU   HARDDISK\n",
                device_vpd_pg80=b"\x00\x80\x00\x04abcd",
                device_wwid=b"naa.5000\n",
                queue_rotational=b"1\n",
                partition=b"1\n",
            ),
        ],
        words=(MARK, b"254:0", b"E:ID_SERIAL=", b"E:ID_MODEL_ENC=", b"S:disk/by-id/", b"\\x1b"),
    ),
    Target(
        "pressure",
        pressure,
        lambda: [b"some avg10=0.00 avg60=0.00 total=12\nfull avg10=0.00 avg60=0.00 total=3\n"],
        words=(b"some ", b"full ", b" total=", b"total=1 "),
    ),
    Target(
        "host",
        host,
        lambda: [b"cpu  1 2 3 4 5 6 7 8 9 10\n" + MARK + b"some total=1\nfull total=2\n"],
        words=(MARK, b"cpu ", b" 1" * 20, b"total="),
    ),
)
