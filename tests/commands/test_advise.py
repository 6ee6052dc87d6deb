"""The command advise: tables, sentences, JSON and errors, on recordings of throttled disks."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from disksla.base.units import GIB, MIB
from disksla.commands.cli import main
from disksla.measure.prometheus.query import Series
from disksla.promise.catalogue import derive_limits
from disksla.promise.catalogue.catalog import load_catalog
from support.report_api import serving
from support.report_series import INFO, START_S, DiskSeries, Server, gauge

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "benches" / "lab" / "recordings"
EXAMPLE = ("steady-90", "--terms", "vk.ceph-hdd", "--size", "100GiB")
"""That of docs/advise.md."""

EXPECTED = Path(__file__).parent / "advise"

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def advise(recording: str, *arguments: str) -> int:
    directory = RECORDINGS / recording
    config = str(directory / "config.yml")
    file = str(directory / "ticks.jsonl.gz")
    return main(["advise", "--recording", file, "--config.file", config, *arguments])


def text(captured: Captured) -> str:
    """Return what was printed, in one line."""
    out = captured.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    return " ".join(out.split())


def document(captured: Captured) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(captured.readouterr().out)
    return found


def shown(pattern: str) -> list[str]:
    """Return the blocks of the documentation that begin so."""
    page = (ROOT / "docs" / "advise.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{pattern}(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.fixture
def prices(tmp_path: Path) -> tuple[str, str]:
    """Return the option for the prices of the documentation."""
    [content] = shown("yaml\n")
    file = tmp_path / "prices.yml"
    file.write_text(content, encoding="utf-8")
    return "--prices", str(file)


def test_examples_of_the_documentation(prices: tuple[str, str], capsys: Captured) -> None:
    loop = ("postgresql-8-fsync", "--terms", "aws.gp2", "--size", "50GiB", *prices)
    examples = shown(r"console\n\$ disksla advise [^\n]*\n")
    for example, text in zip((loop, EXAMPLE), examples, strict=True):
        assert advise(*example) == 0
        lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
        assert "\n".join(lines) + "\n" == text.replace("vdb", "loop0")


RECORDED = (
    "steady-90 --terms aws.io1 --size 100GiB --iops 500",
    "steady-90 --terms aws.standard --size 100GiB",
    "steady-90",
    # Throttled by the machine: the recording does not contain the answer.
    "machine-two-busy --terms aws.gp2 --size 50GiB",
    "machine-two-busy loop0 --terms vk.high-iops",
    "machine-two-busy --terms vk.high-iops --size 100GiB",
    # PostgreSQL with eight clients, on a disk with 192 IOPS.
    "postgresql-8-fsync",
    "postgresql-8-fsync --terms aws.io1 --size 100GiB --iops 200 --prices",
)


def test_recorded_loads(
    prices: tuple[str, str], capsys: Captured, golden: Callable[[Path, str], None]
) -> None:
    found = []
    for command in RECORDED:
        recording, *options = command.removesuffix(" --prices").split()
        status = advise(recording, *options, *(prices if "--prices" in command else ()))
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= 80
        lines = [line.rstrip() for line in out.splitlines()]
        found += [f"$ disksla advise {command}   # status {status}", *lines, ""]
    golden(EXPECTED / "recorded.txt", "\n".join(found))


def test_json_has_ranges_in_base_units(prices: tuple[str, str], capsys: Captured) -> None:
    assert advise(*EXAMPLE, "--json") == 0
    found = document(capsys)
    assert found["devices"] == ["loop0"]
    assert found["present"]["limits"]["read_iops"] == 300
    assert found["present"]["answer"] == "not enough"
    assert 0 < found["present"]["throttled_share"]["least"] < 1
    assert found["enough"] == found["enough_of_type"]
    assert found["enough"]["size_bytes"] == 452 * 2**30
    assert found["machine"] == []
    bought = ("--terms", "aws.io1", "--size", "100GiB", "--iops", "200", *prices)
    assert advise("postgresql-8-fsync", *bought, "--json") == 0
    found = document(capsys)
    assert (found["currency"], found["next_step"]["price_per_month"]) == ("USD", 8)
    assert found["closed_loop"]["steps"][1]["iops"] == 384
    by_type = {each["terms"]: each["price_per_month"] for each in found["disks"]}
    assert by_type["aws.io2"] is None


def test_price_of_an_unknown_type_is_an_error(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "prices.yml"
    file.write_text("currency: USD\nprices: {gp3: {gib: 0.08}}\n")
    assert advise(*EXAMPLE, "--prices", str(file)) == 2
    assert "unknown terms 'gp3'; did you mean aws.gp3?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("machine", "entry", "expected"),
    [
        ("m5.large", {"iops": 4000},
         "The m5.large would throttle first: it allows the disk 3600 IOPS of this load."),
        ("t3.nano", {}, "Enough of a machine: t3.micro; the t3.nano would throttle for 0 to"),
    ],
)  # fmt: skip
def test_machines_of_the_tables(
    machine: str, entry: dict[str, Any], expected: str, tmp_path: Path, capsys: Captured
) -> None:
    config = tmp_path / "config.yml"
    disk = {"match": {"device": "loop0"}, "terms": "aws.gp3", "size": "100GiB", **entry}
    config.write_text(
        json.dumps({"machine": {"type": machine}, "disks": [disk]}), encoding="utf-8"
    )
    assert advise("steady-90", "--config.file", str(config)) == 0
    assert expected in text(capsys)


def test_disks_that_share_the_limits_of_their_type(tmp_path: Path, capsys: Captured) -> None:
    config = tmp_path / "config.yml"
    disks = [{"match": {"device": f"loop{each}"}, "terms": "gcp.pd-ssd"} for each in range(2)]
    config.write_text(json.dumps({"disks": disks}), encoding="utf-8")
    assert advise("machine-two-busy", "--config.file", str(config), "--json") in {0, 1}
    found = document(capsys)
    assert found["devices"] == ["loop0", "loop1"]
    assert found["machine"] == []


def test_a_disk_that_is_not_monitored(tmp_path: Path, capsys: Captured) -> None:
    config = tmp_path / "config.yml"
    config.write_text("discovery: {include: ['^loop1$']}", encoding="utf-8")
    assert advise("machine-two-busy", "loop0", "--config.file", str(config)) == 2
    assert "loop0 is not monitored: not in discovery.include" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--size", "1GiB"), "found --size or provisioned values; expected them with --terms"),
        (("--terms", "aws.io1"), "aws.io1 needs provisioned IOPS"),
        (("--terms", "aws.gp9"), "unknown terms 'aws.gp9'"),
        (("--tolerance", "lots"), "--tolerance: found 'lots'; expected a percentage"),
        (("--tolerance", "101%"), "--tolerance: found '101%'; expected a percentage"),
        (("vdz", "--terms", "aws.gp3"), "no disk named 'vdz'"),
    ],
)
def test_invalid_questions(arguments: tuple[str, ...], message: str, capsys: Captured) -> None:
    assert advise("steady-90", *arguments) == 2
    assert message in capsys.readouterr().err


def test_a_recording_without_windows(tmp_path: Path, capsys: Captured) -> None:
    host = ROOT / "tests" / "hosts" / "counter-wrap" / "ticks.jsonl"
    first = host.read_text(encoding="utf-8").splitlines(keepends=True)[:2]
    file = tmp_path / "ticks.jsonl"
    file.write_text("".join(first), encoding="utf-8")
    assert main(["advise", "--recording", str(file)]) == 2
    assert "found no window in the recording" in capsys.readouterr().err


PERIOD = ("--from", "2026-10-01", "--to", "2026-10-01T01:00:00Z")
SERIES = (*PERIOD, "--terms", "aws.gp3", "--size", "1TiB")


def ebs(device: str, terms: str = "aws.gp3", **limits: float) -> DiskSeries:
    """Return the series of a volume of AWS with 100 GiB, without samples."""
    disk = DiskSeries(
        INFO | {"device": device, "serial": device, "provider": "aws", "terms": terms}
    )
    iops, bandwidth = limits.get("iops", 3000.0), limits.get("bandwidth", 125.0 * MIB)
    disk.gauges = {
        "disksla_disk_size_bytes": 100.0 * GIB,
        "disksla_limit_read_iops": iops,
        "disksla_limit_write_iops": iops,
        "disksla_limit_read_bytes_per_second": bandwidth,
        "disksla_limit_written_bytes_per_second": bandwidth,
    }
    return disk


def reads(disk: DiskSeries, per_second: float) -> list[Series]:
    """Return the series of half an hour of reads, evenly spread."""
    peaks = {
        "disksla_peak_read_iops": per_second,
        "disksla_peak_write_iops": 0.0,
        "disksla_peak_read_bytes_per_second": per_second * 4096,
        "disksla_peak_written_bytes_per_second": 0.0,
    }
    disk.gauges |= peaks
    for minute in range(31):
        for name, rate in {
            "disksla_reads_completed_total": per_second,
            "disksla_read_bytes_total": per_second * 4096,
            "disksla_writes_completed_total": 0.0,
            "disksla_written_bytes_total": 0.0,
        }.items():
            disk.counts(name, rate * disk.every_s if minute else 0.0)
        if minute:
            disk.does(1, unproven=disk.every_s)
        else:
            disk.scrape()
    return disk.series


def of_series(series: list[Series], *arguments: str) -> int:
    with serving(Server(series)) as api:
        return main(["advise", "db-1:vdb", "--prometheus", api.address, *PERIOD, *arguments])


def monitored(machine: str) -> Series:
    """Return the info of the limits of a machine."""
    samples = [(START_S + 60.0 * minute, 1.0) for minute in range(31)]
    about = {"group": "ebs", "machine": machine, "title": "all volumes", "budget": "sum"}
    return gauge("disksla_machine_info", samples, **about)


def test_what_a_disk_was_sold_as_is_in_its_series(capsys: Captured) -> None:
    assert of_series(reads(ebs("vdb", iops=4200, bandwidth=250.0 * MIB), 3900)) == 0
    out = text(capsys)
    assert "db-1:10056 vdb, aws.gp3, 100 GiB, with 4200 IOPS, 250 MiB/s: 30 min" in out
    assert "The disk is enough as it is." in out


def test_options_say_more_than_the_series(capsys: Captured) -> None:
    series = reads(ebs("vdb", terms="unknown"), 3900)
    assert of_series(series, "--terms", "aws.io1", "--iops", "4000", "--json") == 0
    found = document(capsys)
    assert found["present"]["size_bytes"] == 100 * GIB
    assert found["present"]["provisioned"]["iops"] == 4000
    assert found["machine"] == []


def test_disks_of_the_machine_that_is_monitored(capsys: Captured) -> None:
    """Of the disks, two are volumes; both read more than the machine allows them together."""
    disks = [*reads(ebs("vdb"), 2500), *reads(ebs("vdc", terms="aws.gp2"), 2500)]
    local = reads(ebs("nvme1n1", terms="unknown"), 2500)
    assert of_series([*disks, *local, monitored("m5.large")], "--json") == 0
    [group] = document(capsys)["machine"]
    assert group["devices"] == ["db-1:10056 vdb", "db-1:10056 vdc"]
    assert group["machines"][0]["machine"] == "m5.large"
    assert group["machines"][0]["throttled_share"] == {"least": 0, "most": 1}  # has credits
    assert [each["answer"] for each in group["machines"]] == ["maybe", "enough"]


def test_machine_of_the_options(capsys: Captured) -> None:
    series = [*reads(ebs("vdb"), 2500), monitored("m5.large")]
    assert of_series(series, "--machine", "t3.nano", "--json") == 0
    [group] = document(capsys)["machine"]
    assert group["machines"][0]["machine"] == "t3.nano"
    assert group["disk_iops"] == 250


@pytest.mark.parametrize("machine", ["", "m99.huge"])
def test_a_machine_that_is_not_in_the_tables_is_not_compared(
    machine: str, capsys: Captured
) -> None:
    assert of_series([*reads(ebs("vdb"), 2500), monitored(machine)], "--json") == 0
    assert document(capsys)["machine"] == []


def test_limits_by_the_vcpus_of_the_machine(capsys: Captured) -> None:
    series = reads(ebs("vdb"), 2500)
    sold = ("--terms", "yandex.network-ssd", "--size", "1TiB", "--json")
    for arguments in (("--vcpus", "2"), ()):
        assert of_series([*series, monitored("2 vCPUs")], *sold, *arguments) in {0, 1}
        [group] = document(capsys)["machine"]
        assert group["machines"][0]["machine"] == "2 vCPUs"


def test_disks_of_the_series_that_share_the_limits_of_their_type(capsys: Captured) -> None:
    series: list[Series] = []
    for device in ("vdb", "vdc"):
        disk = ebs(device, terms="gcp.pd-ssd")
        limits = derive_limits(load_catalog()["gcp.pd-ssd"], 200 * GIB).rates
        disk.gauges = {
            "disksla_disk_size_bytes": 100.0 * GIB,
            "disksla_limit_read_iops": limits.read_iops or 0.0,
            "disksla_limit_write_iops": limits.write_iops or 0.0,
            "disksla_limit_read_bytes_per_second": limits.read_bytes_per_second or 0.0,
            "disksla_limit_written_bytes_per_second": limits.write_bytes_per_second or 0.0,
        }
        series += reads(disk, 500)
    assert of_series(series, "--json") == 0
    found = document(capsys)
    assert found["devices"] == ["db-1:10056 vdb", "db-1:10056 vdc"]
    assert found["present"]["size_bytes"] == 200 * GIB
    assert found["requests"] == pytest.approx(2 * 500 * 1800)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "cannot advise without the load of the disk: expected one of\n"),
        (("--prometheus", "http://localhost:1", *SERIES), "--prometheus needs DEVICE"),
        (("vdb", "--prometheus", "http://localhost:1"), "expected --last, or --from and --to"),
        (("vdb", "--prometheus", "localhost:1", *SERIES), "expected an address such as"),
        (("vdb", "--prometheus", "http://localhost:1", *SERIES), "--prometheus is right"),
        (("--recording", "x", "--machine", "m5.large"), "expected it with --prometheus"),
    ],
)
def test_invalid_questions_on_series(
    arguments: tuple[str, ...], message: str, capsys: Captured
) -> None:
    assert main(["advise", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("terms", "arguments", "message"),
    [
        ("unknown", (), "its series do not say of which type of the catalogue it is"),
        ("aws.io2", (), "its limits do not follow from aws.io2 and its size"),
        ("aws.gp3", ("--iops", "4000"), "expected them with --terms"),
        ("aws.gp3", ("--machine", "m99.huge"), "unknown machine type 'm99.huge' of aws"),
        ("aws.gp3", ("--terms", "vk.ceph-hdd", "--machine", "x"), "of VK Cloud are not known"),
    ],
)
def test_series_that_do_not_say_enough(
    terms: str, arguments: tuple[str, ...], message: str, capsys: Captured
) -> None:
    assert of_series(reads(ebs("vdb", terms=terms, bandwidth=1.0), 100), *arguments) == 2
    assert message in capsys.readouterr().err


def test_series_without_size_or_scrapes(capsys: Captured) -> None:
    disk = ebs("vdb")
    disk.gauges.pop("disksla_disk_size_bytes")
    disk.scrape()
    assert of_series(disk.series) == 2
    assert "the server has no disksla_disk_size_bytes" in capsys.readouterr().err
    assert of_series(disk.series, "--terms", "aws.gp3", "--size", "100GiB") == 2
    assert "found no two scrapes of db-1:10056 vdb" in capsys.readouterr().err
