"""`disksla doctor` on machines made of files, and its output."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from disksla.commands.cli import main
from disksla.commands.doctor import print_results
from disksla.commands.doctor_checks import examine
from disksla.commands.doctor_checks.facts import (
    AccessFacts,
    ClockFacts,
    DaemonFacts,
    FioFacts,
    MachineFacts,
    StateFacts,
)
from support import ttar
from support.fake_fio import ANSWERS, fake_fio
from support.machine_facts import DISK, KERNEL, NOW_S, configured, machine, terms_file

HOSTS = Path(__file__).parent.parent / "hosts"
EXPECTED = Path(__file__).parent / "doctor"
UNIT = Path(__file__).parents[2] / "systemd" / "disksla-exporter.service"

DETECTED = """
source: api
origin: EC2 API
as_of: 2027-01-15T04:50:00Z
max_age: 2h
provider: aws
disks:
  - {match: {volume: vol-0a1b}, api_type: gp3, size: 500GiB}
  - {match: {volume: vol-0c2d}, api_type: gp9}
problems:
  - source: api
    reason: denied
    message: "DescribeVolumes failed: ec2:DescribeVolumes was denied to role db; add it"
"""
BROKEN = machine(
    kernel=msgspec.structs.replace(KERNEL, release="6.1.0-26-amd64", has_pressure=False),
    disks=(
        DISK,
        msgspec.structs.replace(DISK, name="nvme2n1", serial="vol0c2d", volume="vol-0c2d"),
        msgspec.structs.replace(
            DISK, name="nvme3n1", serial="vol0e3f", volume="vol-0e3f", write_back=True
        ),
        msgspec.structs.replace(DISK, name="nvme4n1", serial="AWS1", volume=None, is_local=True),
    ),
    iostats={"nvme3n1": "0"},
    why_not_exact="cannot open performance events: Permission denied; kernel.perf_event_paranoid"
    " is 3, at which this kernel requires CAP_SYS_ADMIN",
    configuration=msgspec.structs.replace(
        configured(
            "disks: [{match: {serial: vol0e3}, terms: aws.io2, iops: 9000}]\n"
            "probes: [{kind: read-latency, disks: [nvme1n1]}]\n",
            terms_file(DETECTED, "/var/lib/disksla-detect/cloud.json"),
        ),
        terms_problems=("/etc/disksla/terms.d/db.yml:3: disks[0].iosp: unknown key",),
    ),
    state=StateFacts("/var/lib/disksla", None, 12 * 2**20),
    access=AccessFacts("disksla", None, ("/etc/disksla/web.yml",)),
    fio=FioFacts(problem="fio is not installed; expected fio 3.1 or newer"),
    clock=ClockFacts(is_synchronised=False),
    daemon=DaemonFacts("http://127.0.0.1:10056/metrics", "Connection refused"),
    now_s=NOW_S,
)

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(("name", "facts"), [("healthy", machine()), ("broken", BROKEN)])
def test_output_at_80_columns(
    name: str,
    facts: MachineFacts,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
    golden: Callable[[Path, str], None],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_results(list(examine(facts)))
    out = capsys.readouterr().out
    golden(EXPECTED / f"{name}.txt", out)
    lines = [line for line in out.splitlines() if "fix: " not in line]
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in out


def test_names_of_disks_do_not_control_the_terminal(capsys: Captured) -> None:
    bad = msgspec.structs.replace(DISK, serial="\x1b[2Jx", volume=None)
    print_results(list(examine(machine(disks=(bad,), configuration=configured("")))))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2Jx" in out


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    """Return the flags for the machine aws-nitro, without a unit and without a daemon."""
    for archive in (HOSTS / "aws-nitro").glob("*.ttar"):
        ttar.unpack(archive, tmp_path)
    (tmp_path / "state").mkdir()
    (tmp_path / "disksla.yml").write_text(
        f"""
disks:
  - {{match: {{volume: vol-0fedcba9876543210}}, terms: aws.gp3}}
  - {{match: {{serial: gone}}, terms: aws.gp3}}
state: {{directory: {tmp_path / "state"}}}
"""
    )
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    return [
        f"--path.sysfs={tmp_path}/sys",
        f"--path.procfs={tmp_path}/proc",
        f"--path.udev-data={tmp_path}/udev",
        f"--path.rootfs={tmp_path}",
        f"--config.file={tmp_path}/disksla.yml",
        f"--url=http://127.0.0.1:{port}",
    ]


class Checks:
    """The results of a run with --json."""

    def __init__(self, text: str) -> None:
        self.document = json.loads(text)
        self.all = self.document["checks"]

    def of(self, check: str) -> list[tuple[str | None, str]]:
        """Return subject and status of each result of a check."""
        found = [each for each in self.all if each["check"] == check]
        return [(each["subject"], each["status"]) for each in found]


@pytest.fixture
def run(flags: list[str], capsys: Captured) -> Callable[..., Checks]:
    def run_doctor(*more: str, status: int = 1) -> Checks:
        assert main(["doctor", "--json", *flags, *more]) == status
        return Checks(capsys.readouterr().out)

    return run_doctor


def test_machine_of_files(run: Callable[..., Checks], tmp_path: Path) -> None:
    checks = run()
    assert checks.document.keys() == {"version", "status", "checks"}
    keys = {"check", "subject", "status", "found", "expected", "fix"}
    assert all(each.keys() == keys for each in checks.all)
    assert checks.of("provider.machine") == [(None, "ok")]
    terms = dict(checks.of("disks.terms"))
    assert terms["nvme1n1"] == "ok"
    assert terms["nvme2n1"] == "ok"  # instance store
    assert checks.of("disks.entries") == [("disks[1] of the configuration", "wrong")]
    assert checks.of("kernel.hotplug") == [(None, "note")]
    assert checks.of("configuration.file") == [(None, "ok")]
    assert checks.of("state.directory") == [(None, "ok")]
    assert checks.of("daemon.running") == [(None, "wrong")]
    assert (tmp_path / "disksla.yml").exists()


def test_disks_by_their_storage_class(run: Callable[..., Checks], tmp_path: Path) -> None:
    """The class is in the terms file, and the volume handle in a file of kubelet."""
    directory = "/var/lib/kubelet/plugins/kubernetes.io/csi/ebs.csi.aws.com/1"
    mounted = tmp_path / f"{directory}/globalmount".lstrip("/")
    mounted.mkdir(parents=True)
    handle = "vol-0fedcba9876543210"
    (mounted.parent / "vol_data.json").write_text(
        json.dumps({"driverName": "ebs.csi.aws.com", "volumeHandle": handle})
    )
    (tmp_path / "proc" / "1").mkdir(exist_ok=True)
    number = (tmp_path / "sys" / "class" / "block" / "nvme1n1" / "dev").read_text().strip()
    (tmp_path / "proc" / "1" / "mountinfo").write_text(
        f"30 22 {number} / {directory}/globalmount rw - xfs /dev/nvme1n1 rw\n"
    )
    (tmp_path / "terms.d").mkdir()
    volume = {"driver": "ebs.csi.aws.com", "volume_handle": handle, "storage_class": "fast"}
    (tmp_path / "terms.d" / "k8s.json").write_text(json.dumps({"volumes": [volume]}))
    (tmp_path / "disksla.yml").write_text(
        "disks: [{match: {storage_class: fast}, terms: aws.gp3}]\n"
        f"state: {{directory: {tmp_path / 'state'}}}\n"
    )
    checks = run()
    assert checks.of("disks.entries") == []
    assert dict(checks.of("disks.terms"))["nvme1n1"] == "ok"


def test_configuration_that_cannot_be_reached(run: Callable[..., Checks], tmp_path: Path) -> None:
    """As for a user who may not enter its directory; root, who runs tests, may."""
    checks = run(f"--config.file={tmp_path / ('x' * 300) / 'disksla.yml'}")
    assert set(checks.of("configuration.file")) == {(None, "wrong")}
    [*problems] = [each["found"] for each in checks.all if each["check"] == "configuration.file"]
    assert all("File name too long" in problem for problem in problems)


def test_broken_files(run: Callable[..., Checks], tmp_path: Path) -> None:
    (tmp_path / "disksla.yml").write_text("sampling: {interval: 1}\nprobes: [{kind: none}]\n")
    (tmp_path / "web.yml").write_text("users: {}\n")
    (tmp_path / "sys" / "class" / "block" / "nvme1n1" / "queue").mkdir(exist_ok=True)
    (tmp_path / "sys" / "class" / "block" / "nvme1n1" / "queue" / "iostats").write_text("0\n")
    checks = run(f"--web.config.file={tmp_path / 'web.yml'}")
    assert checks.of("configuration.file") == [(None, "wrong")] * 2
    assert checks.of("configuration.web") == [(None, "wrong")]
    assert checks.of("disks.terms") == [(None, "note")]
    assert checks.of("disks.iostats") == [("nvme1n1", "wrong")]


def test_terms_files_and_own_catalogue(run: Callable[..., Checks], tmp_path: Path) -> None:
    for name in ("terms.d", "state-detect", "catalog.d"):
        (tmp_path / name).mkdir()
    (tmp_path / "terms.d" / "bad.yml").write_text("disks: [")
    (tmp_path / "state-detect" / "cloud.json").write_text(
        '{"source": "api", "origin": "EC2 API", "as_of": "2026-01-01T00:00:00Z", "max_age": "1h",'
        ' "provider": "aws", "disks": [{"match": {"device": "nvme0n1"}, "api_type": "gp3"}],'
        ' "problems": [{"source": "api", "reason": "denied", "message": "denied"}]}'
    )
    checks = run()
    assert checks.of("configuration.terms") == [(None, "wrong")]
    assert checks.of("disks.age") == [("nvme0n1", "wrong")]
    assert [status for _, status in checks.of("provider.detect")] == ["wrong"]
    (tmp_path / "catalog.d" / "own.yml").write_text("terms: [")
    assert run().of("configuration.file") == [(None, "wrong")]


def test_missing_files(run: Callable[..., Checks], tmp_path: Path) -> None:
    (tmp_path / "disksla.yml").write_text(f"state: {{directory: {tmp_path / 'none'}}}\n")
    (tmp_path / "proc" / "diskstats").unlink(missing_ok=True)
    (tmp_path / "udev").rename(tmp_path / "elsewhere")
    checks = run()
    assert checks.of("state.directory") == [(str(tmp_path / "none"), "note")]  # without a unit
    assert checks.of("kernel.diskstats") == [(None, "wrong")]
    assert checks.of("kernel.udev") == [(None, "note")]
    (tmp_path / "disksla.yml").write_text(f"state: {{directory: {tmp_path / 'proc' / 'file'}}}\n")
    (tmp_path / "proc" / "file").touch()
    assert run().of("state.directory") == [(str(tmp_path / "proc" / "file"), "note")]
    checks = run(f"--path.sysfs={tmp_path / 'nothing'}")
    assert checks.of("kernel.sysfs") == [(None, "wrong")]
    checks = run(f"--config.file={tmp_path / 'nothing.yml'}")
    assert checks.of("configuration.file") == [(None, "wrong")]


@pytest.mark.parametrize(
    ("version", "status"), [("fio-3.33", "ok"), ("fio-2.1", "wrong"), ("unknown", "wrong")]
)
def test_fio_of_the_path(
    version: str,
    status: str,
    run: Callable[..., Checks],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (tmp_path / "disksla.yml").open("a") as file:
        file.write("probes: [{kind: read-latency}]\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    fake_fio(programs, ANSWERS, version=version)
    monkeypatch.setenv("PATH", str(programs))
    assert run().of("measuring.fio") == [(None, status)]


def test_unit_with_drop_ins(run: Callable[..., Checks], tmp_path: Path) -> None:
    """The user of the unit does not exist here; a drop-in of /etc replaces that of /usr."""
    with (tmp_path / "disksla.yml").open("a") as file:
        file.write("probes: [{kind: read-latency, disks: [nvme1n1]}]\n")
    systemd = tmp_path / "usr" / "lib" / "systemd" / "system"
    systemd.mkdir(parents=True)
    unit = UNIT.read_text().replace("User=disksla", "User=no-such-user")
    (systemd / UNIT.name).write_text(unit)
    checks = run()
    assert checks.of("configuration.access") == [(None, "wrong")]
    assert checks.of("measuring.probes") == [("nvme1n1", "wrong")]
    for directory, value in ((systemd, "yes"), (tmp_path / "etc/systemd/system", "no")):
        drop_ins = directory / f"{UNIT.name}.d"
        drop_ins.mkdir(parents=True)
        (drop_ins / "10-x.conf").write_text(f"[Service]\nPrivateDevices={value}\n")
    assert run().of("measuring.probes") == [("nvme1n1", "ok")]


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: needs root")
def test_files_that_the_user_of_the_unit_may_not_read(
    run: Callable[..., Checks], tmp_path: Path
) -> None:
    systemd = tmp_path / "etc" / "systemd" / "system"
    systemd.mkdir(parents=True)
    (systemd / UNIT.name).write_text("[Service]\nUser=games\n")
    (tmp_path / "disksla.yml").chmod(0o600)
    checks = run()
    assert checks.of("configuration.access") == [(str(tmp_path / "disksla.yml"), "wrong")]
    assert checks.of("state.directory") == [(str(tmp_path / "state"), "wrong")]


def test_other_machines_are_not_asked(flags: list[str], capsys: Captured) -> None:
    assert main(["doctor", *flags, "--url=http://192.0.2.1:10056"]) == 2
    assert "expected an address of this machine" in capsys.readouterr().err


def test_nothing_is_written(run: Callable[..., Checks], tmp_path: Path) -> None:
    def files() -> dict[str, int]:
        return {str(path): path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}

    before = files()
    run()
    assert files() == before
