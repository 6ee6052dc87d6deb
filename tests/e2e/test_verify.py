"""`disksla verify` on real disks: one that passes, one that fails, one with burst credits."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from lab.__main__ import missing
from lab.disk import made
from lab.scenario import read_scenario
from support.daemon_process import DISKSLA, PATIENCE_S
from support.loop_device import attached, attached_and_closed
from support.visible_processes import seeing_all
from support.waiting import eventually

UNABLE = missing()
pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(UNABLE is not None, reason=f"NOT TESTED: the lab {UNABLE}"),
]

RUNTIME = "10s"
"""The shortest runtime for a tolerance of 3 %."""
TERMS = "{budget: separate, read_iops: 300, write_iops: 300}"
BURST_TERMS = "{budget: sum, iops: 150, burst: {iops: 500, iops_credits: 1000}}"


@contextmanager
def limited_disk(meters: str, directory: Path) -> Iterator[str]:
    """Create a disk with these meters, yield its kernel name, and remove it afterwards."""
    scenario = directory / "scenario.yml"
    scenario.write_text(f"caption: x\ndisks: [{{disk: {{meters: {meters}}}, load: []}}]\n")
    with made(scenario, 0, read_scenario(scenario).disks[0], directory) as disk:
        disk.begin()
        yield disk.device


def verify_command(device: str, terms: str, directory: Path, *extra: str) -> list[str]:
    config = directory / "config.yml"
    config.write_text(
        f"state: {{directory: {directory}}}\n"
        f"disks: [{{match: {{device: {device}}}, terms: {terms}}}]\n"
    )
    options = [f"--config.file={config}", f"--runtime={RUNTIME}", *extra]
    return [str(DISKSLA), "verify", device, *options]


def verify(
    device: str, terms: str, directory: Path, *extra: str
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Verify with a tolerance of 10 %, for which a runtime of 3 s is long enough."""
    (directory / "quick.yml").write_text(
        f"assessment: {{tolerance: 10%}}\nstate: {{directory: {directory}}}\n"
        f"disks: [{{match: {{device: {device}}}, terms: {terms}}}]\n"
    )
    options = [f"--config.file={directory / 'quick.yml'}", "--runtime=3s", "--json", *extra]
    process = subprocess.run(
        seeing_all([str(DISKSLA), "verify", device, *options]),
        check=False,
        capture_output=True,
        text=True,
    )
    report = json.loads(process.stdout or "{}") | {"stderr": process.stderr}
    measured = {
        result["test"]: result for result in report.get("tests", []) if result["iops"] is not None
    }
    return process.returncode, report, measured


@pytest.mark.in_check
def test_disk_at_its_limit_passes_and_one_below_fails(tmp_path: Path) -> None:
    """Both are verified at the same time."""

    def verify_at(iops: int) -> tuple[int, dict[str, Any], dict[str, Any]]:
        directory = tmp_path / str(iops)
        directory.mkdir()
        with limited_disk(f"[{{limit: iops, read_iops: {iops}}}]", directory) as device:
            return verify(device, TERMS, directory, "--suite=vk")

    with ThreadPoolExecutor() as pool:
        at_its_limit, below = pool.map(verify_at, (300, 180))

    assert [result["required_ratio"] for result in at_its_limit[2].values()] == [1.0, 0.75, 0.5]
    for (status, report, results), ratio, verdicts in (
        (at_its_limit, 1.0, ["pass", "pass", "pass"]),
        (below, 0.6, ["fail", "fail", "pass"]),
    ):
        assert list(results) == ["randread-4k", "randread-8k", "randread-16k"]
        assert [result["verdict"] for result in results.values()] == verdicts
        failed = verdicts.count("fail")
        assert (status, report["verdict"]) == ((1, "broken") if failed else (0, "kept")), report
        for result in results.values():
            assert result["ratio"] == pytest.approx(ratio, rel=0.1)
            assert result["other_share"] < 0.01


def test_wait_for_base_uses_up_burst_credits(tmp_path: Path) -> None:
    meters = "[{limit: iops, iops: 150, peak: 500, credits: 1000}]"
    with limited_disk(meters, tmp_path) as device:
        _, _, burst = verify(device, BURST_TERMS, tmp_path)
        status, report, base = verify(device, BURST_TERMS, tmp_path, "--wait-for-base")
    assert status == 0, report
    assert burst["randread-4k"]["level"] in {"burst", "burst_then_base"}
    assert burst["randread-4k"]["measured"] > 300
    assert base["randread-4k"]["level"] == "base", report
    assert base["randread-4k"]["measured"] == pytest.approx(150, rel=0.1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_leaves_a_report_and_no_fio(tmp_path: Path, number: signal.Signals) -> None:
    with limited_disk("[{limit: iops, read_iops: 300}]", tmp_path) as device:
        command = verify_command(device, TERMS, tmp_path, "--json")
        with (
            terminal() as (stderr, output),
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
        ):
            # The progress bar shows the test a second after fio was started.
            assert eventually(lambda: b"randread-4k" in output, PATIENCE_S)
            started = fio_processes(psutil.Process(process.pid))
            process.send_signal(number)
            printed, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 128 + number
        assert json.loads(printed)["verdict"] == "incomplete"
        assert started
        assert not any(fio.is_running() for fio in started)


@contextmanager
def terminal() -> Iterator[tuple[int, bytearray]]:
    """Yield a pseudo-terminal to write to, and the output so far; a thread reads it."""
    parent, child = os.openpty()
    output = bytearray()

    def read() -> None:
        with suppress(OSError):  # EIO once the other end is closed
            while piece := os.read(parent, 4096):
                output.extend(piece)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield child, output
    finally:
        os.close(child)
        reader.join()
        os.close(parent)


def fio_processes(process: psutil.Process) -> list[psutil.Process]:
    return [child for child in process.children(recursive=True) if child.name() == "fio"]


def test_disk_in_use_is_not_valid(tmp_path: Path) -> None:
    with limited_disk("[{limit: iops, read_iops: 300}]", tmp_path) as device:
        load = ["fio", "--name=other", f"--filename=/dev/{device}", "--rw=randread", "--bs=4k"]
        limits = ["--rate_iops=30", "--runtime=60", "--time_based", "--direct=1", "--readonly"]
        with subprocess.Popen([*load, *limits], stdout=subprocess.DEVNULL) as other:
            try:
                io = Path(f"/sys/block/{device}/stat")
                assert eventually(lambda: int(io.read_text().split()[0]) > 100, PATIENCE_S)
                status, report, results = verify(device, TERMS, tmp_path)
                forced, loaded, measured = verify(device, TERMS, tmp_path, "--force")
            finally:
                other.terminate()
    assert (status, report["verdict"], results) == (2, "not_valid", {})
    assert [each["precondition"] for each in report["violations"]] == ["other_load"]
    assert "other load" in report["violations"][0]["message"]
    assert (forced, loaded["verdict"]) == (2, "not_valid")
    assert 0.02 < measured["randread-4k"]["other_share"] < 0.2


@contextmanager
def formatted(directory: Path) -> Iterator[tuple[str, Path]]:
    """Mount ext4 on a new loop device; yield its kernel name and the mount point."""
    image, mount_point = directory / "image", directory / "mounted"
    with image.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 128 * 2**20)
    mount_point.mkdir()
    with attached(image) as device:
        options = "lazy_itable_init=0,lazy_journal_init=0"  # otherwise the kernel writes later
        subprocess.run(["mkfs.ext4", "-q", "-E", options, f"/dev/{device}"], check=True)
        subprocess.run(["mount", f"/dev/{device}", str(mount_point)], check=True)
        os.sync()
        try:
            yield device, mount_point
        finally:
            subprocess.run(["umount", str(mount_point)], check=True)


@pytest.mark.in_check
def test_writes_use_a_scratch_file_that_is_removed(tmp_path: Path) -> None:
    with formatted(tmp_path) as (device, mount_point):
        (mount_point / "data").write_text("mine")
        (mount_point / ".disksla").mkdir(mode=0o700)
        (mount_point / ".disksla" / f"disksla-probe-7-{'0' * 16}.tmp").touch()  # of one killed
        status, report, results = verify(
            device, TERMS, tmp_path, f"--file={mount_point}", "--file-size=16MiB", "--suite=vk"
        )
        assert sorted(path.name for path in mount_point.iterdir()) == ["data", "lost+found"]
        assert (mount_point / "data").read_text() == "mine"
    assert status == 0, report
    assert report["target"] == "file"
    assert len(results) == 6
    assert {result["writes"] for result in results.values()} == {True, False}


def test_interrupt_removes_the_scratch_file(tmp_path: Path) -> None:
    with formatted(tmp_path) as (device, mount_point):
        options = [f"--file={mount_point}", "--file-size=16MiB", "--json"]
        command = verify_command(device, TERMS, tmp_path, *options)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            parent = psutil.Process(process.pid)
            assert eventually(lambda: bool(fio_processes(parent)), PATIENCE_S)
            process.send_signal(signal.SIGINT)
            printed, _ = process.communicate(timeout=PATIENCE_S)
        assert [path.name for path in mount_point.iterdir()] == ["lost+found"]
    assert json.loads(printed)["verdict"] == "incomplete"


@pytest.mark.in_check
def test_raw_device_must_be_empty_and_named(tmp_path: Path) -> None:
    with formatted(tmp_path) as (device, _):
        status, report, _ = verify(device, TERMS, tmp_path, f"--write-to-raw-device={device}")
        assert status == 2
        assert "refusing to overwrite" in report["stderr"]
    image = tmp_path / "empty"
    with image.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 16 * 2**20)
    with attached_and_closed(image) as device:
        status, report, _ = verify(device, TERMS, tmp_path, "--write-to-raw-device=vdb")
        assert status == 2
        assert f"found 'vdb'; expected '{device}'" in report["stderr"]
        assert not image.read_bytes().strip(b"\0")
        status, report, results = verify(
            device, TERMS, tmp_path, f"--write-to-raw-device={device}"
        )
        assert status == 0, report
        assert set(results) == {"randread-4k", "randwrite-4k"}
        content = image.read_bytes()
        assert content.strip(b"\0")
        edge = 4 * 2**20
        assert not (content[:edge] + content[-edge:]).strip(b"\0"), "these are not written"
        number = Path(f"/sys/class/block/{device}/dev").read_text().strip()
        (tmp_path / f"b{number}").write_text("E:ID_SERIAL_SHORT=S1\n")
        again = [f"--write-to-raw-device={device}", f"--path.udev-data={tmp_path}"]
        status, report, _ = verify(device, TERMS, tmp_path, *again)
        assert (status, "it contains data at byte" in report["stderr"]) == (2, True)
        status, report, _ = verify(device, TERMS, tmp_path, *again, "--destroy-data=S2")
        assert (status, "found 'S2'; expected 'S1'" in report["stderr"]) == (2, True)
        assert image.read_bytes() == content
        status, report, results = verify(device, TERMS, tmp_path, *again, "--destroy-data=S1")
        assert status == 0, report
        assert image.read_bytes() != content
