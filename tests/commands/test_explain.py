"""`disksla explain` of all disks, of arrays and as JSON; test_context.py has that of one disk."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from disksla.commands._recent import RecentDisks, print_recent
from disksla.commands.cli import main
from disksla.promise.catalogue import Rates
from disksla.promise.configuration import Configuration, ConfigurationText
from disksla.state.history import History
from disksla.state.pipeline import Snapshot, advance
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import FORMAT, RecordingHeader, encode
from disksla.tell.api import DiskDocument
from disksla.tell.api.disks_document import disks_document
from disksla.tell.explanation.past import HistoryView
from support import ttar
from support.answering import answering, page
from support.consumed import with_consumers
from support.fake_host import FakeMachine
from support.scenario_verdicts import lived
from support.scenarios import SCENARIOS
from support.simulated_host import CATALOG
from support.simulated_limiter import DEVICE, run
from support.snapshots import BURST_LIMITS, disk_view, view

Golden = Callable[[Path, str], None]

ROOT = Path(__file__).resolve().parents[2]
TWO_DISKS = ROOT / "tests" / "hosts" / "counter-wrap" / "ticks.jsonl"
OF_API = set(DiskDocument.__struct_encode_fields__)

Captured = pytest.CaptureFixture[str]


@cache
def throttled() -> DiskDocument:
    """Return what the daemon says of a disk that was throttled."""
    [disk] = disks_document(*lived("iops-300-deep"), "db-1", "1").disks
    return disk


def idle(name: str, **changes: Any) -> DiskDocument:
    """Return what the daemon says of a disk without load."""
    calm = msgspec.structs.replace(
        throttled(),
        device=name,
        condition="idle",
        sentences=("For 300 of the last 300 s the disk was idle.",),
        verdict_seconds=dict.fromkeys(throttled().verdict_seconds, 0.0) | {"idle": 300.0},
    )
    return msgspec.structs.replace(calm, **changes)


def printed(capsys: Captured, order: list[str], *disks: DiskDocument) -> str:
    by_name = {disk.device: disk for disk in disks}
    print_recent(RecentDisks("the last five minutes", 300.0, 0.0, by_name, "daemon"), order)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    return "\n".join([*lines, ""])


def test_what_is_printed_of_each_kind_of_disk(capsys: Captured, golden: Golden) -> None:
    """Disks with problems come first, then those in this order."""
    why = "the controller io of the control groups is off; switch it on"
    bad = msgspec.structs.replace(throttled(), device="vdz", why_no_consumers=why)
    calm = idle("vdw", why_no_consumers=why, throttled_seconds={})
    place = "/var/lib/kubelet/pods/1/mount"
    claimed = idle("vdc", mount_points=(place,), claim="db/data-pg-0")
    points = ("/a b", "/c\x1b[2J")
    unknown = idle("vdu", terms="unknown", mount_points=points, size_bytes=2**30)
    mount = msgspec.structs.replace(unknown, device="fs1:/data", size_bytes=0)
    view_of_credits = view(disk_view("vdk", limits=BURST_LIMITS))
    [known] = disks_document(view_of_credits, HistoryView(), "h", "v").disks
    [level] = known.credits
    nothing = msgspec.structs.replace(level, lower_ratio=0.0, upper_ratio=1.0)
    any_level = idle("vdn", credits=(nothing,))
    disks = (idle("vdb10"), idle("vdb"), idle("gone"), bad, calm, claimed, unknown, mount)
    text = printed(capsys, ["vdb", "vdb10", "vdz"], *disks, known, any_level)
    golden(Path(__file__).parent / "explain" / "recent.txt", text)


def test_no_disk(capsys: Captured) -> None:
    assert printed(capsys, []) == "No disk is monitored; disksla disks shows why.\n"


def test_all_disks_of_a_recording(capsys: Captured) -> None:
    assert main(["explain", "--recording", str(TWO_DISKS)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("What these disks were sold as is not known")
    start = lines.index("No problem was seen in the last 2 s.") + 1
    named = [line.partition(",")[0] for line in lines[start:] if line and not line.startswith(" ")]
    assert named == ["vda", "vdb"]


def document(capsys: Captured, *arguments: str) -> Any:
    assert main(["explain", "--json", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_json_of_a_recording(capsys: Captured) -> None:
    every = document(capsys, "--recording", str(TWO_DISKS))
    assert every.keys() == {"host", "version", "source", "timestamp_s", "disks", "arrays"}
    assert (every["host"], every["source"]) == (None, "recording")
    assert [disk["device"] for disk in every["disks"]] == ["vda", "vdb"]
    one = document(capsys, "vdb", "--recording", str(TWO_DISKS))
    assert one == every | {"disks": every["disks"][1:]}


def test_json_has_the_keys_of_other_documents(tmp_path: Path, capsys: Captured) -> None:
    machine = FakeMachine(tmp_path)
    assert main(["disks", "--json", *machine.options]) == 0
    [known] = json.loads(capsys.readouterr().out)
    found = document(capsys, "--for=300ms", *machine.options)
    [disk] = found["disks"]
    assert found["source"] == "sample"
    assert disk.keys() == OF_API | known.keys() | {"machine"}
    assert {key: disk[key] for key in known} == known
    assert disk["machine"] == []
    documented = (ROOT / "docs" / "what-it-shows.md").read_text(encoding="utf-8")
    assert {key for key in (*found, *disk) if f"`{key}`" not in documented} == set()
    assert sum(disk["verdict_seconds"].values()) == pytest.approx(0.3, abs=0.2)
    rates = {field: disk["limits"][field] for field in Rates.__struct_fields__}
    assert msgspec.convert(disk | {"limits": rates}, DiskDocument).limits.read_iops == 300


def test_json_of_a_disk_that_is_not_monitored(tmp_path: Path, capsys: Captured) -> None:
    machine = FakeMachine(tmp_path)
    machine.config.write_text("discovery: {exclude: [vdx]}\n")
    [disk] = document(capsys, "vdx", *machine.options)["disks"]
    assert (disk["device"], disk["monitored"], disk["size_bytes"]) == ("vdx", False, 2**20)
    assert {disk[key] for key in ("verdict", "sentences", "limits", "terms")} == {None}
    assert document(capsys, *machine.options, "--for=200ms")["disks"] == []


def test_machine_in_json(tmp_path: Path, capsys: Captured) -> None:
    recording = ROOT / "tests/state/pipeline/recordings/yandex-two-vcpus.jsonl.gz"
    config = tmp_path / "disksla.yml"
    config.write_text(
        "discovery: {include: [^loop0$]}\n"
        "disks: [{match: {device: loop0}, terms: yandex.network-ssd, size: 300GiB}]\n"
    )
    options = ("--recording", str(recording), "--config.file", str(config))
    [disk] = document(capsys, *options)["disks"]
    [machine] = disk["machine"]
    assert (machine["machine"], machine["limits"]["read_iops"]) == ("2 vCPUs", 7000)
    assert disk["latency_s"] > 0.005
    assert main(["explain", *options]) == 0
    assert "had a problem in the last" in capsys.readouterr().out


def test_a_recording_says_who_used_a_disk_as_the_daemon_does(
    capsys: Captured, tmp_path: Path
) -> None:
    scenario = SCENARIOS["iops-300-deep"]
    used = {"postgresql.service": (250.0, None), "backup.service": (50.0, None)}
    ticks = with_consumers(run(scenario).ticks, DEVICE, used)
    header = RecordingHeader(
        FORMAT,
        interval_s=0.1,
        kernel="6.1.0",
        disksla="1",
        configuration=ConfigurationText(settings=f"disks: [{{match: {{device: {DEVICE}}}, "
        "terms: {budget: sum, iops: 300}}]"),
    )  # fmt: skip
    file = tmp_path / "ticks.jsonl"
    file.write_bytes(encode(header) + b"".join(map(encode, ticks)))
    [disk] = document(capsys, "--recording", str(file))["disks"]
    [who] = [each for each in disk["sentences"] if "of its requests" in each]
    assert "83 % of its requests came from postgresql.service, 17 % from backup.service." in who
    assert [each["consumer"] for each in disk["consumers"]] == [*used]
    state, history = State(Configuration(scenario.settings(), CATALOG)), History()
    for tick in ticks:
        state = advance(state, tick)
        history = history.after(state)
    [said] = disks_document(Snapshot(state), HistoryView(history), "db-1", "1").disks
    assert who in said.sentences


def remote(url: str) -> str:
    """Return the URL as one that no command knows to be of this machine."""
    return url.replace("127.0.0.1", "127.1")


def answer(*disks: DiskDocument) -> bytes:
    """Return the answer of a daemon on db-1."""
    document = {"host": "db-1", "version": "9", "timestamp_s": 2.5, "disks": disks}
    return page(msgspec.json.encode(document).decode())


def test_disks_of_another_machine(capsys: Captured, tmp_path: Path) -> None:
    """What is known of this machine is not asked for: the configuration here is wrong."""
    config = tmp_path / "disksla.yml"
    config.write_text("nonsense: 1\n")
    password = tmp_path / "password"
    password.write_text("x:y\n")
    asked: list[bytes] = []
    options = ("--config.file", str(config), "--url.password-file", str(password))
    disks = (idle("vda"), idle("vdb", mount_points=("/data",)), idle("vdc"))
    with answering(answer(*disks), asked=asked) as url:
        assert main(["explain", "/data", "vdc", "--url", remote(url), *options]) == 0
    out = capsys.readouterr().out
    named = [line.partition(",")[0] for line in out.splitlines() if ", " in line][-2:]
    assert named == ["vdb", "vdc"]
    assert b"Authorization: Basic eDp5" in asked[0]
    with answering(answer(*disks)) as url:
        found = document(capsys, "vda", "--url", remote(url))
    assert (found["host"], found["version"], found["source"]) == ("db-1", "9", "daemon")
    assert [disk["device"] for disk in found["disks"]] == ["vda"]


def test_what_another_machine_does_not_have(capsys: Captured) -> None:
    with answering(answer(idle("vda"))) as url:
        assert main(["explain", "vdz", "--url", remote(url)]) == 2
    assert "the daemon does not monitor vdz; it monitors vda" in capsys.readouterr().err
    assert main(["explain", "--url", "http://db-1", "--for", "1s"]) == 2
    assert "found --for with --url or --recording" in capsys.readouterr().err
    assert main(["explain", "--url.ca-file", "ca.crt", "vda"]) == 2


def test_several_disks(capsys: Captured) -> None:
    options = ("--recording", str(TWO_DISKS))
    assert main(["explain", "vdb", "vda", "vdb", *options]) == 0
    out = capsys.readouterr().out
    assert [line.split(",")[0] for line in out.splitlines() if re.match(r"vd[ab], ", line)] == [
        "vdb",
        "vda",
    ]
    found = document(capsys, "vdb", "vda", *options)
    assert [disk["device"] for disk in found["disks"]] == ["vdb", "vda"]


def test_a_sample_says_how_to_record_it(tmp_path: Path, capsys: Captured) -> None:
    machine = FakeMachine(tmp_path)
    assert main(["explain", "--for=300ms", *machine.options]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "vdx, " in out
    assert "with --output slow.jsonl.gz, and attach that file." in out


def test_the_file_says_the_same_on_any_machine(tmp_path: Path, capsys: Captured) -> None:
    machine, file = FakeMachine(tmp_path), tmp_path / "slow.jsonl.gz"
    assert main(["explain", "--for=300ms", "--output", str(file), *machine.options]) == 0
    said, _, offer = capsys.readouterr().out.partition("\nAttach ")
    assert f"disksla explain --recording {file.name}" in " ".join(offer.split())
    assert main(["explain", "--recording", str(file)]) == 0
    assert capsys.readouterr().out == said
    assert main(["explain", "--for=300ms", "--output", str(file), *machine.options]) == 2
    assert "already exists; choose another name" in capsys.readouterr().err


HOST = Path(__file__).parents[1] / "hosts" / "stacked-6.1"
SLOW = "rl"
"""Letters of the disks with 3000 IOPS; the others have 6000."""


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the options for the machine, whose disks do nothing."""
    directory = tmp_path_factory.mktemp("host")
    for archive in HOST.glob("*.ttar"):
        ttar.unpack(archive, directory)
    numbers = {
        link.name: (link / "dev").read_text().strip().replace(":", " ")
        for link in (directory / "sys" / "class" / "block").iterdir()
    }
    lines = [f"{number} {name}{' 0' * 17}\n" for name, number in numbers.items()]
    (directory / "proc" / "diskstats").write_text("".join(lines))
    config = directory / "disksla.yml"
    config.write_text(
        "disks:\n"
        + "".join(
            f"  - match: {{serial: serial-{letter}}}\n    terms: {{budget: sum, iops:"
            f" {3000 if letter in SLOW else 6000}, bandwidth: 250MB/s}}\n"
            for letter in "abcdefghijklmnopqrst"
        )
        + "machine: {limits: {budget: sum, iops: 20000, bandwidth: 800MB/s}}\n"
    )
    paths = {"sysfs": "sys", "procfs": "proc", "udev-data": "udev"}
    named = [f"--path.{name}={directory / path}" for name, path in paths.items()]
    return [*named, f"--config.file={config}", "--for=200ms"]


def test_what_is_said_of_arrays(options: list[str], capsys: Captured, golden: Golden) -> None:
    names = ("/var/lib/postgresql/16/main", "dm-18", "/srv", "md1", "md2", "md3", "/mnt/mixed")
    said = []
    for name in names:
        assert main(["explain", name, *options]) == 0
        said.append(capsys.readouterr().out.partition("\nvd")[0])
    golden(Path(__file__).parent / "disks" / "arrays.text", "\n".join(said))


def test_arrays_of_all_and_of_one_disk(options: list[str], capsys: Captured) -> None:
    assert main(["explain", *options]) == 0
    text = capsys.readouterr().out
    assert "\n/var/lib/mysql (four-ten, dm-17)\n  It is on vdq, vdr, vds, vdt: LVM raid10" in text
    assert main(["explain", "--json", "vdq", *options]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [disk["device"] for disk in said["disks"]] == ["vdq"]
    assert {array["device"]: array["disks"] for array in said["arrays"]} == {
        "dm-17": ["vdq", "vdr", "vds", "vdt"],
        "dm-18": ["vdq", "vdr"],
    }
    binding = said["arrays"][1]["binding"]
    assert (binding["read_iops"], binding["read_bytes_per_second"]) == (["vdr"], ["vdq", "vdr"])
