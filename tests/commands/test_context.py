"""Tests of `disks`, `explain` and `check-config` with a machine made of files."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.commands._context import HostContext
from disksla.commands.cli import main
from disksla.kernel.disks.disk import nfs_disks
from disksla.kernel.procfs import Mount
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.configuration.configuration import Configuration
from disksla.promise.configuration.settings import Settings
from support import ttar
from support.sysfs_tree import host_of_files

Captured = pytest.CaptureFixture[str]

SERIAL = "6ea73b81-555e-4a74-9"
MOUNTINFO = "22 1 254:1 / / rw - ext4 /dev/vda1 rw\n30 22 254:16 / /data rw - xfs /dev/vdb rw\n"


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Return the flags for a machine with two disks, a partition and a loop device."""
    disks = ("vda 254:0 20GiB", "vda1 254:1 19GiB partition=1 below=vda", "loop0 7:0 1GiB")
    vdb = f"vdb 254:16 100GiB serial={SERIAL}"
    options = host_of_files(tmp_path, *disks, vdb, mountinfo=MOUNTINFO)
    links = f"S:disk/by-id/virtio-{SERIAL}\nS:disk/azure/scsi1/lun0\n"
    (tmp_path / "udev" / "b254:16").write_text(links)
    return options


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "disksla.yml"
    path.write_text(
        f"""\
disks:
  - match: {{serial: {SERIAL}d2c-0123456789ab}}
    terms: yandex.network-hdd
    size: 300GiB
  - match: {{device: vda1}}
    terms:
      budget: sum
      iops: 300
      latency: 2ms
      burst: {{iops: 2000, iops_credits: 8000}}
"""
    )
    return path


def flags_of_host(name: str, directory: Path) -> list[str]:
    for archive in (Path(__file__).parent.parent / "hosts" / name).glob("*.ttar"):
        ttar.unpack(archive, directory)
    return [
        f"--path.sysfs={directory}/sys",
        f"--path.procfs={directory}/proc",
        f"--path.udev-data={directory}/udev",
    ]


def test_paths_of_the_image(
    flags: list[str],
    config: Path,
    tmp_path: Path,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`kubectl exec POD -- disksla disks` needs no path."""
    udev = tmp_path / "run" / "udev"
    udev.mkdir(parents=True)
    (tmp_path / "udev").rename(udev / "data")
    command = ["disks", "--json", f"--config.file={config}"]
    assert main([*command, *flags[:2], f"--path.udev-data={udev}/data"]) == 0
    expected = capsys.readouterr().out
    assert SERIAL in expected
    monkeypatch.setenv("DISKSLA_HOST", str(tmp_path))
    assert main(command) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("aws-nitro", "text"),
        ("aws-nitro", "json"),
        ("azure", "text"),
        ("without-configuration", "text"),
        ("configured", "text"),
        ("configured", "json"),
    ],
)
def test_discover(
    name: str,
    form: str,
    flags: list[str],
    config: Path,
    tmp_path: Path,
    capsys: Captured,
    golden: Callable[[Path, str], None],
) -> None:
    match name:
        case "configured":
            flags = [*flags, f"--config.file={config}"]
        case "without-configuration":
            pass
        case _:
            flags = flags_of_host(name, tmp_path / "host")
    assert main(["disks", *flags, *(["--json"] if form == "json" else [])]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert form == "json" or all(len(line) <= 80 for line in lines)
    golden(Path(__file__).parent / "disks" / f"{name}.{form}", "\n".join([*lines, ""]))


@pytest.mark.parametrize(
    "device",
    [
        "vdb",
        "/dev/vdb",
        f"virtio-{SERIAL}",
        f"/dev/disk/by-id/virtio-{SERIAL}",
        "/dev/disk/azure/scsi1/lun0",
        SERIAL,
        "/data",
        "/data/",
        "/data/postgresql/16/main",
    ],
)
def test_explain_has_reason_and_arithmetic(
    device: str, flags: list[str], config: Path, capsys: Captured
) -> None:
    assert main(["explain", "--for=300ms", device, *flags, f"--config.file={config}"]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    out = " ".join(out.split())
    assert f"disks[0] of the configuration matches serial {SERIAL}" in out
    assert "300 GiB (configuration); 100 GiB (kernel)" in out
    assert "ceil(300 GiB / 256 GiB) = 2, x 300 = 600, at most 2000" in out
    assert "reads and writes share one budget of time" in out
    assert "1800 s of baseline service, 31.3 min at the burst rate, 12 h to refill" in out
    assert "vCPU" in out
    assert "https://" in out


def test_explain_has_load_of_probes(flags: list[str], config: Path, capsys: Captured) -> None:
    config.write_text(
        config.read_text()
        + "probes: [{kind: read-latency, disks: [vdb]}, {kind: write-latency, disks: [vdc]}]\n"
    )
    assert main(["explain", "--for=300ms", "vdb", *flags, f"--config.file={config}"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(
        r"read-latency: 5 IOPS of 4 KiB for 5 s, 0\.\d\d% of the limit, lowered from 20 IOPS", out
    )
    assert "write-latency" not in out


def test_explain_custom_terms(flags: list[str], config: Path, capsys: Captured) -> None:
    assert main(["explain", "--for=300ms", "vda1", *flags, f"--config.file={config}"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "written out in the configuration" in out
    assert "partition of vda" in out
    assert "2 ms, guaranteed" in out
    assert "8000 I/Os, 4.71 s at the burst rate, 26.7 s to refill" in out


def test_explain_unmonitored_disk(flags: list[str], capsys: Captured) -> None:
    assert main(["explain", "--for=300ms", "loop0", *flags]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "monitored no: loop device; an entry under disks changes that" in out
    assert "without limits" not in out
    assert "no entry of the configuration or of terms.d matches" in out


def test_explain_unknown_device_lists_known_ones(flags: list[str], capsys: Captured) -> None:
    assert main(["explain", "--for=300ms", "/dev/sda", *flags]) == 2
    assert (
        capsys.readouterr().err
        == "disksla: no disk named '/dev/sda'; expected a kernel name, a link in /dev, a path, a"
        " volume, a serial number or a claim, of: vda, vdb, vda1, loop0\n"
    )


def test_check_config_of_good_file(config: Path, capsys: Captured) -> None:
    assert main(["check-config", "--config.file", str(config)]) == 0
    assert capsys.readouterr().out == f"{config}: good: 2 disks, 0 probes\n"


def test_size_in_the_gb_of_the_provider(flags: list[str], config: Path, capsys: Captured) -> None:
    config.write_text(config.read_text().replace("300GiB", "300GB"))
    assert main(["check-config", "--config.file", str(config)]) == 0
    note = f"{config}: note: disks[0]: Yandex Cloud writes GB for GiB: 300GB is 300 GiB\n"
    assert note in capsys.readouterr().out
    assert main(["explain", "--for=300ms", "vdb", *flags, f"--config.file={config}"]) == 0
    assert "300 GiB (configuration); 100 GiB (kernel)" in capsys.readouterr().out


def test_check_config_names_an_entry_that_is_shadowed_on_any_machine(
    config: Path, capsys: Captured
) -> None:
    config.write_text(
        config.read_text() + "  - {match: {device: vda1, model: x}, terms: vk.ceph-ssd}\n"
    )
    assert main(["check-config", "--config.file", str(config)]) == 0
    note = f"{config}: note: disks[2] applies to no disk: disks[1] comes first\n"
    assert note in capsys.readouterr().out


def test_check_config_of_web_configuration(config: Path, tmp_path: Path, capsys: Captured) -> None:
    web = tmp_path / "web.yml"
    web.write_text("rate_limit: {interval: 1s, burst: 5}\n")
    assert main(["check-config", "--config.file", str(config), f"--web.config.file={web}"]) == 0
    assert capsys.readouterr().out == (
        f"{config}: good: 2 disks, 0 probes\n{web}: good: no TLS, no passwords, rate limit\n"
    )
    web.write_text("rate_limit: {interval: 1s}\nusers: {}\n")
    assert main(["check-config", f"--web.config.file={web}"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.partition(": ")[0] for line in captured.err.splitlines()] == [
        f"{web}:1",
        f"{web}:2",
    ]


def test_check_config_needs_a_file(capsys: Captured) -> None:
    assert main(["check-config"]) == 2
    said = capsys.readouterr().err
    assert "nothing to check: no /etc/disksla/disksla.yml; expected --config.file FILE" in said


@pytest.mark.parametrize("command", ["verify", "sweep", "sweep --identify", "verify --latency"])
def test_nothing_is_measured_on_a_mount(command: str, tmp_path: Path, capsys: Captured) -> None:
    flags = flags_of_host("vm-virtio-6.x", tmp_path / "host")
    assert main([*command.split(), *flags, "10.0.0.5:/export"]) == 2
    assert "10.0.0.5:/export, an NFS mount; expected a block device" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["10.0.0.5:/export", "/mnt/share", "/mnt/share/deep/file"])
def test_explain_a_mount(name: str, tmp_path: Path, capsys: Captured) -> None:
    flags = flags_of_host("vm-virtio-6.x", tmp_path / "host")
    assert main(["explain", *flags, name]) == 0
    assert capsys.readouterr().out.startswith("10.0.0.5:/export, NFS mount\n")


@pytest.mark.parametrize("kind", ["cifs", "virtiofs", "lustre", "ceph", "nfs4"])
def test_a_path_on_a_network_file_storage_is_not_looked_at(kind: str) -> None:
    """It does not exist here, and its server may never answer."""
    mount = Mount(0, 60, "/", "/no-such-mount", "fs1.example:/export", kind)
    configuration = Configuration(Settings(), load_catalog())
    context = HostContext(nfs_disks([mount]), configuration, (mount,), is_this_machine=True)
    if kind == "nfs4":
        assert context.find("/no-such-mount/file").name == "fs1.example:/export"
    else:
        with pytest.raises(DiskslaError, match="only those of NFS are monitored"):
            context.find("/no-such-mount/file")
