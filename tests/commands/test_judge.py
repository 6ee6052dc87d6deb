"""`disksla judge` on results of fio and DiskSpd."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from disksla.cli import main

RESULTS = Path(__file__).parent.parent / "verification" / "results"
VK = ("--terms", "vk.ceph-ssd", "--size", "20GiB")
YANDEX = ("--terms", "yandex.network-ssd", "--size", "100GiB")


@pytest.mark.parametrize(
    ("name", "terms", "status", "verdicts"),
    [
        ("diskspd-2.1-randread-4k.txt", VK, 0, {"randread-4k": "pass"}),
        ("diskspd-2.0.20-randwrite-4k.txt", VK, 1, {"randwrite-4k": "fail"}),
        ("diskspd-2.2-two-targets-8k.txt", VK, 0, {"randread-8k": "pass"}),
        (
            "diskspd-2.2-two-timespans.xml",
            VK,
            0,
            {"randwrite-16k": "pass", "latency-randread-4k": "shown"},
        ),
        ("fio-3.33-two-jobs.json", VK, 0, {"randread-4k": "pass", "randread-8k": "pass"}),
        ("fio-3.33-eight-clones.json", YANDEX, 0, {"randread-4k": "pass"}),
        ("fio-3.33-eight-clones.json", VK, 2, {}),
        ("fio-3.33-buffered-at-a-rate.json", VK, 2, {}),
    ],
)
def test_imported_result_is_judged(
    name: str,
    terms: tuple[str, ...],
    status: int,
    verdicts: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["judge", str(RESULTS / name), *terms, "--json"]) == status
    report = json.loads(capsys.readouterr().out)
    judged = {
        result["test"]: result["verdict"]
        for result in report["tests"]
        if result["verdict"] != "skipped"
    }
    assert judged == verdicts
    assert report["target"] == "elsewhere"
    assert bool(report["unjudged"]) is (status == 2)


def test_table_fits_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = str(RESULTS / "fio-3.33-buffered-at-a-rate.json")
    assert main(["judge", path, *VK]) == 2
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    message = " ".join(printed.split())
    assert "not judged: randread: found buffered I/O" in message
    assert "INCOMPLETE: not all tests were measured" in message


def test_failed_result_shows_its_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(RESULTS / "diskspd-2.0.20-randwrite-4k.txt")
    assert main(["judge", path, *VK]) == 1
    printed = capsys.readouterr().out.split()
    assert "70.0%" in printed
    assert "FAILED:" in printed


def test_html_and_junit_reports_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, junit = tmp_path / "page.html", tmp_path / "junit.xml"
    path = str(RESULTS / "diskspd-2.1-randread-4k.txt")
    assert main(["judge", path, *VK, f"--html={page}", f"--junit={junit}"]) == 0
    assert "imported result, terms vk.ceph-ssd" in page.read_text()
    assert ET.fromstring(junit.read_bytes()).attrib["tests"] == "10"
    assert "randread-4k" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nothing", *VK], "cannot read nothing: No such file or directory"),
        (["{here}", *VK], "expected fio JSON"),
        (["{large}", *VK], "is larger than 64 MiB"),
        (["{here}", "--terms", "vk.ceph", "--size", "1GiB"], "unknown terms 'vk.ceph'"),
        (
            ["{here}", "--terms", "vk.ceph-ssd", "--size", "big"],
            "--size: found 'big'; expected a size",
        ),
        (["{here}", "--terms", "vk.ceph-ssd", "--size", "0GiB"], "--size: expected a size above"),
        (["{here}", "--terms", "generic.ssd", "--size", "1GiB"], "cannot judge by generic.ssd"),
        (
            ["{here}", *VK, "--html", "/nowhere/page.html"],
            "cannot write /nowhere/page.html; choose a file",
        ),
    ],
)
def test_invalid_request_is_rejected(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, large = tmp_path / "here", tmp_path / "large"
    here.write_text("hello")
    with large.open("wb") as file:
        file.truncate(64 * 1024**2 + 1)
    command = [
        word.replace("{here}", str(here)).replace("{large}", str(large)) for word in options
    ]
    assert main(["judge", *command]) == 2
    assert message in capsys.readouterr().err
