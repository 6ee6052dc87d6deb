"""Reading of block devices from sysfs and udev, recorded and real."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import pyudev
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.kernel.disks.disk import Disk
from disksla.kernel.disks.inventory import Inventory, read_disks
from disksla.kernel.disks.udev_database import links_of
from support import ttar

HOSTS = Path(__file__).parents[2] / "hosts"

HOST_NAMES = sorted(archive.parent.name for archive in HOSTS.glob("*/sys.ttar"))

DEFAULT = Roots()


def unpacked_host(name: str, into: Path) -> Roots:
    for archive in (HOSTS / name).glob("*.ttar"):
        ttar.unpack(archive, into)
    return Roots(procfs=into / "proc", sysfs=into / "sys", udev_data=into / "udev")


def by_name(inventory: Inventory) -> dict[str, Disk]:
    return {disk.name: disk for disk in inventory.disks}


@pytest.mark.parametrize("name", HOST_NAMES)
def test_read_disks_of_recorded_machines(name: str, tmp_path: Path) -> None:
    expected = msgspec.json.decode((HOSTS / name / "disks.json").read_bytes(), type=list[Disk])
    inventory = read_disks(unpacked_host(name, tmp_path))
    assert (inventory.disks, inventory.problems) == (tuple(expected), ())


@pytest.mark.parametrize(
    ("content", "expected"),
    [("write back\n", True), ("write through\n", False), ("unsure\n", None), (None, None)],
)
def test_write_cache(content: str | None, expected: bool | None, tmp_path: Path) -> None:
    paths = unpacked_host("vm-virtio-6.x", tmp_path)
    file = paths.sysfs / "class/block/vda/queue/write_cache"
    if content is None:
        file.unlink(missing_ok=True)
    else:
        file.write_text(content)
    disks = by_name(read_disks(paths))
    assert disks["vda"].write_back is expected
    assert disks["vda3"].write_back is None, "flushes of partitions are not counted"


def test_scsi_serial_is_preferred_from_sysfs(tmp_path: Path) -> None:
    paths = unpacked_host("old-14", tmp_path)
    assert by_name(read_disks(paths))["sda"].serial is None
    paths.udev_data.mkdir()
    entry = paths.udev_data / "b8:0"
    entry.write_text("E:ID_SERIAL=36000c29\nE:ID_SERIAL_SHORT=6000c29\nE:ID_WWN=0x6000c29\n")
    disk = by_name(read_disks(paths))["sda"]
    assert (disk.serial, disk.wwn) == ("6000c29", "naa.6000c2901a3b5c7d9e1f204060803a5b")
    entry.write_text("E:ID_SERIAL_SHORT=6000c29\nE:ID_SCSI_SERIAL=abc123\n")
    assert by_name(read_disks(paths))["sda"].serial == "abc123"
    page = paths.sysfs / "class/block/sda/device/vpd_pg80"
    page.write_bytes(b"\x00\x80\x00\x0a    xyz789")
    assert by_name(read_disks(paths))["sda"].serial == "xyz789"


def test_model_of_an_ata_disk_is_not_truncated(tmp_path: Path) -> None:
    paths = unpacked_host("old-14", tmp_path)
    assert by_name(read_disks(paths))["sda"].model == "Virtual disk"
    paths.udev_data.mkdir()
    (paths.udev_data / "b8:0").write_text("E:ID_MODEL_ENC=Samsung\\x20SSD\\x20860\\x20EVO\\x20\n")
    assert by_name(read_disks(paths))["sda"].model == "Samsung SSD 860 EVO"


@pytest.mark.parametrize("name", ["aws-nitro", "azure", "gcp"])
def test_disks_of_an_unknown_provider_have_no_volume(name: str, tmp_path: Path) -> None:
    paths = unpacked_host(name, tmp_path)
    known = read_disks(paths).disks
    shutil.rmtree(paths.sysfs / "class/dmi")
    bare = {"provider": None, "volume": None, "is_local": None}
    expected = tuple(msgspec.structs.replace(disk, **bare) for disk in known)
    assert read_disks(paths).disks == expected


@pytest.mark.parametrize("link", [None, "directory"])
def test_scsi_disk_without_an_address_has_no_volume(link: str | None, tmp_path: Path) -> None:
    paths = unpacked_host("azure", tmp_path)
    device = paths.sysfs / "class/block/sda/device"
    device.unlink()
    if link is not None:
        device.mkdir()
    assert by_name(read_disks(paths))["sda"].volume is None


OPENS = """
import sys
from pathlib import Path
from disksla.kernel.disks.inventory import BlockDevices
from disksla.base.operating_system.machine import Roots
opened = []
sys.addaudithook(lambda event, arguments: event == "open" and opened.append(arguments[0]))
for root in map(Path, sys.argv[1:]):
    devices = BlockDevices(Roots(root / "proc", root / "sys", root / "udev"))
    opened.clear()
    devices.read()
    print(len(opened))
"""


@pytest.mark.parametrize(
    ("name", "further"), [("aws-nitro", 0), ("gcp", 0), ("azure", 11)], ids=lambda value: value
)
def test_scan_reads_no_further_files_but_on_azure(name: str, further: int, tmp_path: Path) -> None:
    trees = [tmp_path / "known", tmp_path / "unknown"]
    paths = [unpacked_host(name, tree) for tree in trees]
    shutil.rmtree(paths[1].sysfs / "class/dmi")
    command = [sys.executable, "-c", OPENS, *map(str, trees)]
    counts = subprocess.run(command, check=True, capture_output=True).stdout.split()
    known, unknown = map(int, counts)
    assert known - unknown == further, "files opened because of the provider"


@pytest.mark.parametrize("attribute", ["dev", "size"])
def test_disk_being_removed_is_not_a_problem(attribute: str, tmp_path: Path) -> None:
    paths = unpacked_host("vm-virtio-6.x", tmp_path)
    whole = len(read_disks(paths).disks)
    (paths.sysfs / "class/block/vdb" / attribute).unlink()
    inventory = read_disks(paths)
    assert inventory.problems == ()
    assert "vdb" not in by_name(inventory)
    assert len(inventory.disks) == whole - 1


def test_dangling_link_is_not_a_problem(tmp_path: Path) -> None:
    paths = unpacked_host("vm-virtio-6.x", tmp_path)
    shutil.rmtree((paths.sysfs / "class/block/vda").resolve())
    inventory = read_disks(paths)
    assert inventory.problems == ()
    assert set(by_name(inventory)) == {"10.0.0.5:/export", "loop0", "loop1", "vdb"}


@pytest.mark.parametrize("attribute", ["dev", "size", "diskseq"])
def test_disk_with_invalid_attribute_is_skipped_and_reported(
    attribute: str, tmp_path: Path
) -> None:
    paths = unpacked_host("vm-virtio-6.x", tmp_path)
    (paths.sysfs / "class/block/vdb" / attribute).write_text("twelve\n")
    inventory = read_disks(paths)
    assert "vdb" not in by_name(inventory)
    assert "vda" in by_name(inventory)
    (problem,) = inventory.problems
    assert f"vdb/{attribute}: found 'twelve\\n'; expected" in problem
    assert problem.startswith("device skipped: ")


def test_disks_are_read_without_a_mount_table(tmp_path: Path) -> None:
    paths = unpacked_host("vm-virtio-6.x", tmp_path)
    (paths.procfs / "1/mountinfo").unlink()
    inventory = read_disks(paths)
    assert not any(disk.mount_points for disk in inventory.disks)
    (problem,) = inventory.problems
    assert problem == (
        f"cannot read {paths.procfs}/1/mountinfo: No such file or directory;"
        " mount points are unknown"
    )


def test_read_disks_rejects_a_directory_that_is_not_sysfs(tmp_path: Path) -> None:
    with pytest.raises(DiskslaError, match=r"cannot list block devices in .*--path\.sysfs"):
        read_disks(Roots(sysfs=tmp_path))


CONTENT = st.one_of(
    st.binary(max_size=60), st.text(alphabet="0:9/\0\n-", max_size=9).map(str.encode)
)

FILES = ("dev", "size", "diskseq", "hidden", "serial", "queue/rotational", "../../device/model")

attempts = itertools.count()


@given(st.dictionaries(st.sampled_from(FILES), CONTENT, min_size=1), CONTENT, CONTENT)
def test_any_content_is_read_or_skipped(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], udev: bytes, mounts: bytes
) -> None:
    tree = tmp_path_factory.getbasetemp() / f"content{next(attempts)}"
    vdb = tree / "sys/devices/vdb"
    for name, good in {"dev": b"254:16\n", "size": b"8\n", **files}.items():
        file = vdb / name.replace("../../", "")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(good)
    (tree / "sys/class/block").mkdir(parents=True)
    (tree / "sys/class/block/vdb").symlink_to("../../devices/vdb")
    for file, content in ((tree / "udev/b254:16", udev), (tree / "proc/1/mountinfo", mounts)):
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
    inventory = read_disks(Roots(tree / "proc", tree / "sys", tree / "udev"))
    assert len(inventory.disks) + len(inventory.problems) == 1
    msgspec.json.encode(inventory.disks)
    shutil.rmtree(tree)


def test_libudev_lists_the_same_on_this_machine() -> None:
    inventory = read_disks(DEFAULT)
    assert inventory.problems == ()
    assert list(by_name(inventory)) == sorted(by_name(inventory))
    settled = {name: disk for name, disk in by_name(inventory).items() if "loop" not in name}
    listed = {
        device.sys_name.replace("!", "/"): device
        for device in pyudev.Context().list_devices(subsystem="block")
        if "loop" not in device.sys_name
    }
    assert settled
    assert settled.keys() == listed.keys()
    for name, disk in settled.items():
        properties = listed[name].properties
        assert (disk.major, disk.minor) == (int(properties["MAJOR"]), int(properties["MINOR"]))
        assert (disk.by_id, disk.links) == links_of(properties)


LIBUDEV = """
import sys
from pathlib import Path
import pyudev
from disksla.kernel.disks.udev_database import parse_udev_data
entries = [Path(entry) for entry in sys.argv[1:]]
block = pyudev.Context().list_devices(subsystem="block")
device = next(iter(block))
number = device.properties["MAJOR"] + ":" + device.properties["MINOR"]
Path("/run/udev/data").mkdir(parents=True)
compared = 0
for entry in entries:
    Path(f"/run/udev/data/b{number}").write_bytes(entry.read_bytes())
    known = dict(pyudev.Devices.from_path(pyudev.Context(), device.sys_path).properties)
    parsed = parse_udev_data(entry.read_text())
    links = parsed.pop("DEVLINKS", "").split()
    assert parsed.items() <= known.items(), parsed.items() - known.items()
    assert {*links} <= {*known.get("DEVLINKS", "").split()}
    compared += len(parsed) + len(links)
print(compared)
"""
IN_NAMESPACE = 'mount -t tmpfs none /run && exec "$@"'


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: a udev database of its own needs root")
def test_libudev_reads_the_same_in_entries_of_recorded_machines(tmp_path: Path) -> None:
    for name in HOST_NAMES:
        unpacked_host(name, tmp_path / name)
    entries = sorted(map(str, tmp_path.glob("*/udev/b*")))
    command = ["unshare", "--mount", "sh", "-c", IN_NAMESPACE, "sh", sys.executable, "-c", LIBUDEV]
    finished = subprocess.run([*command, *entries], check=False, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert int(finished.stdout) > 5 * len(entries) > 0
