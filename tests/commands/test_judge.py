"""`disksla judge` on results of fio and DiskSpd."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from disksla.commands.cli import main
from support.shell import refusals
from support.sysfs_tree import host_of_files

Captured = pytest.CaptureFixture[str]

PUBLIC = Path(__file__).parent.parent / "measure" / "verification" / "public"
RESULTS = Path(__file__).parent.parent / "measure" / "verification" / "results"
VK = ("--terms", "vk.ceph-ssd", "--size", "20GiB")
YANDEX = ("--terms", "yandex.network-ssd", "--size", "100GiB")
PROVISIONED = ("--terms", "aws.io2", "--size", "1TiB", "--iops", "256000")


@pytest.mark.parametrize(
    ("name", "terms", "status", "verdicts"),
    [
        ("diskspd-2.1-randread-4k.txt", VK, 3, {"randread-4k": "pass"}),
        ("diskspd-2.0.20-randwrite-4k.txt", VK, 1, {"randwrite-4k": "fail"}),
        # Of a cache: its own disk_util has five reads.
        ("fio-3.33-eight-clones.json", YANDEX, 2, {"randread-4k": "untested"}),
        ("fio-3.33-eight-clones.json", PROVISIONED, 3, {"randread-4k-q128": "pass"}),
        ("fio-3.33-buffered-at-a-rate.json", VK, 2, {}),
    ],
)
def test_imported_result_is_judged(
    name: str, terms: tuple[str, ...], status: int, verdicts: dict[str, str], capsys: Captured
) -> None:
    assert main(["judge", str(RESULTS / name), *terms, "--json"]) == status
    report = json.loads(capsys.readouterr().out)
    judged = {
        result["test"]: result["verdict"]
        for result in report["tests"]
        if result["measured"] is not None
    }
    assert judged == verdicts
    assert report["target"] == "elsewhere"
    assert bool(report["unjudged"]) is not bool(verdicts)


def test_what_cannot_be_bought_is_said(capsys: Captured) -> None:
    path = str(RESULTS / "fio-3.33-eight-clones.json")
    main(["judge", path, "--terms", "aws.gp3", "--size", "20GiB", "--iops", "15000"])
    note = "15000 IOPS of aws.gp3: above what AWS sells (catalogue: 3000 to 10000 at this size)"
    assert note in capsys.readouterr().err


def test_html_report_is_written(tmp_path: Path, capsys: Captured) -> None:
    page = tmp_path / "page.html"
    path = str(RESULTS / "diskspd-2.1-randread-4k.txt")
    assert main(["judge", path, *VK, f"--html={page}"]) == 3
    html = page.read_text()
    assert "imported result, terms vk.ceph-ssd" in html
    assert "Not tested: randread-8k, randread-16k," in html
    summary = "1 of 10 tests present: passed"
    assert f"{summary}. PASSED IN PART" in html
    assert f"{summary}. PASSED IN PART:" in capsys.readouterr().out.splitlines()[1]


def test_the_whole_suite_passes(tmp_path: Path, capsys: Captured) -> None:
    """Only all tests of the suite together are status 0."""
    run = json.loads((RESULTS / "fio-3.33-two-jobs.json").read_text())
    [job, _] = run["jobs"]
    jobs = []
    for number, (pattern, size, depth) in enumerate(
        (("randread", "4k", 32), ("read", "1M", 16), ("randwrite", "4k", 32), ("write", "1M", 16))
    ):
        options = job["job options"] | {"rw": pattern, "bs": size, "iodepth": str(depth)}
        done, other = ("read", "write") if "read" in pattern else ("write", "read")
        requests = 75_000 if size == "4k" else 3_000
        sums = {"total_ios": requests, "io_bytes": requests * (2**20 if size == "1M" else 4096)}
        results = {done: job["read"] | sums, other: job["write"]}
        jobs.append(job | results | {"groupid": number, "job options": options})
    config = tmp_path / "disksla.yml"
    config.write_text("disks: []\n")
    result = tmp_path / "result.json"
    for count, status, summary in (
        (4, 0, "4 of 4 tests present: passed"),
        (3, 3, "3 of 4 tests present: passed"),
    ):
        result.write_text(json.dumps(run | {"jobs": jobs[:count]}))
        command = ["judge", str(result), "--terms", "hetzner.volume", "--size", "100GiB"]
        assert main([*command, "--suite", "terms"]) == status
        assert capsys.readouterr().out.splitlines()[1].startswith(summary)


def test_normal_output_needs_to_be_known_as_direct(capsys: Captured) -> None:
    path = str(PUBLIC / "vps-comparison-google.txt")
    command = ["judge", path, "--terms", "vk.ceph-ssd", "--size", "100GiB"]
    assert main(command) == 2
    assert "1 not judged" in capsys.readouterr().out
    assert main([*command, "--direct"]) == 3
    assert "1 other load: passed" in capsys.readouterr().out


CONFIGURATION = """
disks:
  - match: {device: vdb}
    terms: {budget: sum, iops: 30000, bandwidth: 500MiB}
"""


def test_terms_of_a_disk_of_this_machine(tmp_path: Path, capsys: Captured) -> None:
    paths = host_of_files(tmp_path, "vdb 254:16 20GiB")
    config = tmp_path / "disksla.yml"
    config.write_text(CONFIGURATION)
    path = str(PUBLIC / "fio-2.1-mix.txt")
    command = ["judge", path, "--device", "vdb", f"--config.file={config}", *paths, "--json"]
    assert main(command) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["device"], report["terms"]) == ("vdb", "custom")
    assert report["summary"] == "0 of 4 tests present; 1 other load: failed"
    for options, message in (
        (["--size", "1GiB"], "--size needs --terms"),
        (["--iops", "5"], "--iops needs --terms"),
    ):
        assert main([*command, *options]) == 2
        assert message in capsys.readouterr().err
    config.write_text("disks: []\n")
    assert main(command) == 2
    assert "cannot judge by the terms of vdb: no limits:" in capsys.readouterr().err


EXPECTED = Path(__file__).parent / "refused" / "judge.txt"
REFUSED = """
nothing --terms vk.ceph-ssd --size 20GiB
HERE --terms vk.ceph-ssd --size 20GiB
LARGE --terms vk.ceph-ssd --size 20GiB
HERE --terms vk.ceph-ssd
HERE --terms vk.ceph --size 1GiB
HERE --terms vk.ceph-ssd --size big
HERE --terms vk.ceph-ssd --size 0GiB
HERE --terms generic.ssd --size 1GiB
HERE --terms vk.ceph-ssd --size 20GiB --html /nowhere/page.html
"""


def test_invalid_requests_are_refused(
    tmp_path: Path, capsys: Captured, golden: Callable[[Path, str], None]
) -> None:
    here, large = tmp_path / "here", tmp_path / "large"
    here.write_text("hello")
    with large.open("wb") as file:
        file.truncate(64 * 1024**2 + 1)
    paths = {"HERE": here, "LARGE": large}
    golden(EXPECTED, refusals(capsys, "judge", REFUSED, paths=paths))
