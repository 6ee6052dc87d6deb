"""Commands on what others recorded of disks."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from disksla.commands.cli import main
from support.node_series import NodeDisk
from support.report_api import Api, serving
from support.report_series import Server

Captured = pytest.CaptureFixture[str]
HOUR = ("--from", "2026-10-01", "--to", "2026-10-01T01:00:00Z")
GP3 = ("--terms", "aws.gp3", "--size", "500GiB")


@pytest.fixture
def api() -> Iterator[Api]:
    slow = NodeDisk("vdb", serial="vol-1").does(100, reads=100, writes=50)
    slow.does(40, inflight=12, reads=2000, writes=995).does(100, reads=100)
    other = NodeDisk("vdc").does(240, reads=1000)
    with serving(Server(slow.series + other.series)) as api:
        yield api


def explained(api: Api, capsys: Captured, *options: str) -> str:
    assert main(["explain", "--prometheus", api.address, *HOUR, *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    return " ".join(" ".join(lines).split())


def test_disk_that_ran_at_its_limit(api: Api, capsys: Captured) -> None:
    text = explained(api, capsys, *GP3)
    assert "1 of 2 with known limits ran at a limit: db-1:9100 vdb." in text
    assert "vdb, aws.gp3, 500 GiB: ran at its limit for 10 min, 16.7 % of the time" in text
    assert "10 min from 2026-10-01 00:25:00 to 2026-10-01 00:35:00" in text
    assert "latency at it reads 4.01 ms, writes 4.01 ms" in text
    assert "vdc, aws.gp3, 500 GiB: never at a limit, at most at 33.3 %" in text
    assert "throttled for" not in text.replace("throttled for less", "")
    assert "What happens within 15 s is not seen" in text
    assert "disksla advise db-1:9100:vdb --series node_exporter, and the same" in text


def test_burst_and_what_is_beyond_it(capsys: Captured) -> None:
    disk = NodeDisk("vdb").does(40, reads=3000).does(20, reads=5000)
    with serving(Server(disk.series)) as api:
        text = explained(api, capsys, "--terms", "aws.gp2", "--size", "100GiB")
    assert "at its burst limit of IOPS 10 min from 2026-10-01 00:00:00" in text
    assert "burst 3000 IOPS and 128 MiB/s" in text
    assert "credits (iops) about 0 % at the end, between 0 % and 100 %; used up" in text
    assert "For 5 min it did more than these limits permit" in text


def test_machine_has_the_sum_of_its_disks(api: Api, capsys: Captured) -> None:
    text = explained(api, capsys, *GP3, "--machine", "m5.large")
    assert "db-1:9100 m5.large (vdb, vdc): never at a limit, at most at 111 %" in text
    assert "type all EBS volumes of the instance together" in text


def test_terms_of_files(api: Api, capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "disksla.yml"
    file.write_text(
        "disks:\n"
        "- {match: {serial: vol-1}, terms: aws.gp3, size: 500GiB}\n"
        "- {match: {device: vdc}, terms: {budget: sum, iops: 1000}}\n"
    )
    text = explained(api, capsys, "--config.file", str(file), "vdb", "db-1:vdc")
    assert "2 of 2 with known limits ran at a limit: db-1:9100 vdc, db-1:9100 vdb." in text
    assert "vdc, terms written out: ran at its limit for 60 min" in text


FILES = Path(__file__).parents[1] / "measure" / "means" / "sysstat"


@pytest.mark.parametrize("file", sorted(FILES.glob("*12.6.1*")), ids=lambda file: file.name)
def test_output_of_sysstat_is_a_recording(file: Path, capsys: Captured) -> None:
    command = ["explain", "--recording", str(file), *GP3]
    assert main(command) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "0 of 1 with known limits ran at a limit. vm vda, aws.gp3, 500 GiB: never" in text
    assert "3 s in intervals of 1 s" in text
    assert main([*command, "loop0", "--json"]) == 0
    [disk] = json.loads(capsys.readouterr().out)["disks"]
    assert disk["title"] == "vm loop0"
    assert main([*command, "vdz"]) == 2
    assert "found vda, loop0 in" in capsys.readouterr().err.replace("loop0, vda", "vda, loop0")


def test_iostat_without_times(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "iostat.txt"
    head, row = "Device r/s w/s rkB/s wkB/s aqu-sz", "sda 2990.00 0.00 11960.00 0.00 8.00"
    file.write_text(f"{head}\n{row}\n\n" * 3)
    command = ["explain", "--recording", str(file), *GP3]
    assert main(command) == 2
    assert f"cannot read {file}: the reports of iostat have no times" in capsys.readouterr().err
    assert main([*command, "--every", "5s"]) == 0
    assert "sda, aws.gp3, 500 GiB: ran at its limit for 15 s" in capsys.readouterr().out
    assert main(["explain", "--recording", str(tmp_path / "none"), *GP3]) == 2


def test_json(api: Api, capsys: Captured) -> None:
    command = ["explain", "--prometheus", api.address, *HOUR, *GP3, "--json", "vdb"]
    assert main(command) == 0
    [disk] = json.loads(capsys.readouterr().out)["disks"]
    assert disk["use"]["at_limit"] == [
        {"start_s": 1_790_814_300, "end_s": 1_790_814_900, "level": "base", "limit": "iops"}
    ]


def node(api: Api, command: str, *options: str) -> int:
    return main(
        [command, "--prometheus", api.address, "--series", "node_exporter", *HOUR, *options]
    )


def test_report(api: Api, capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert node(api, "report", *GP3, "--html", str(file), "--match", '{job="node"}') == 1
    assert "1 of 2 with known limits ran at a limit: db-1:9100 vdb." in file.read_text()
    assert "ran at its limit for 10 min" in capsys.readouterr().out
    assert node(api, "report", *GP3, "--disk", "db-1:vdc") == 0
    assert node(api, "report") == 2
    assert "No limits are known" in capsys.readouterr().out
    assert node(api, "report", *GP3, "--objective", "99") == 2
    assert "found --objective with --series node_exporter" in capsys.readouterr().err


def test_advice(capsys: Captured) -> None:
    disk = NodeDisk("vdb").does(80, reads=100).does(160, inflight=12, reads=3000)
    fastest = NodeDisk("sdz").does(240, inflight=64, reads=256_000)
    others = NodeDisk("vdc").does(240, reads=1).series
    with serving(Server([*disk.series, *others, *fastest.series])) as api:
        assert node(api, "advise", "vdb", *GP3, "--machine", "m5.large") == 0
        text = " ".join(capsys.readouterr().out.split())
        assert "60 min recorded, at its limit for 66.7 % of the time" in text
        assert "closed loop: 12 requests are in flight while the disk is at its limit" in text
        assert "a request waits up to 2 ms, not 4 ms, and up to 6000 are served" in text
        assert "The m5.large would throttle first: it allows the disk 3600 IOPS" in text
        fast = ("--terms", "aws.io2", "--size", "1TiB", "--iops", "256000")
        assert node(api, "advise", "sdz", *fast) == 1
        text = " ".join(capsys.readouterr().out.split())
        assert "No disk of this provider halves the waiting; a limit of 512000 IOPS does." in text
        assert node(api, "advise", "vdb") == 2
        assert "cannot advise on db-1:9100 vdb: no entry" in capsys.readouterr().err
        assert node(api, "advise", "vd*", *GP3) == 2
        assert "found db-1:9100 vdb, db-1:9100 vdc for 'vd*'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("vdz",), "no two scrapes of node_disk_* of vdz in this period"),
        (("--terms", "aws.gp3"), "--terms needs --size"),
        (("--size", "1GiB"), "expected them with --terms"),
        (("--terms", "aws.gp9", "--size", "1GiB"), "aws.gp9"),
        ((*GP3, "--machine", "m5.tiny"), "m5.tiny"),
        (("--last", "1d"), "expected --last, or --from and --to"),
    ],
)
def test_what_cannot_be_explained(
    api: Api, options: tuple[str, ...], expected: str, capsys: Captured
) -> None:
    assert main(["explain", "--prometheus", api.address, *HOUR, *options]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize("options", [("--terms", "aws.gp3"), ("--last", "1d"), HOUR])
def test_options_that_mean_nothing_of_what_disksla_saw(
    options: tuple[str, ...], capsys: Captured
) -> None:
    assert main(["explain", *options]) == 2
    assert f"found {options[0]}" in capsys.readouterr().err
