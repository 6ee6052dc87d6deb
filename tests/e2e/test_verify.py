"""Acceptance of real disks: one that keeps its promise, one that does not, one with credits."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
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
from support.loop_device import attached, eventually

UNABLE = missing()
pytestmark = pytest.mark.skipif(UNABLE is not None, reason=f"NOT TESTED: the lab {UNABLE}")

RUNTIME = "10s"
"""The least at a tolerance of 3 %."""
PROMISE = "{budget: separate, read_iops: 1000, write_iops: 1000}"
CREDITS = "{budget: sum, iops: 300, burst: {iops: 1000, iops_credits: 2000}}"

Verify = Callable[..., subprocess.CompletedProcess[str]]


@contextmanager
def disk_that(meters: str, room: Path) -> Iterator[str]:
    """Make a disk with these meters, give its kernel name, and take it away again."""
    scenario = room / "scenario.yml"
    scenario.write_text(f"caption: x\ndisks: [{{disk: {{meters: {meters}}}, load: []}}]\n")
    with made(scenario, 0, read_scenario(scenario).disks[0], room) as disk:
        disk.begin()
        yield disk.device


def words_for(device: str, terms: str, room: Path, *more: str) -> list[str]:
    config = room / "config.yml"
    config.write_text(
        f"state: {{directory: {room}}}\ndisks: [{{match: {{device: {device}}}, terms: {terms}}}]\n"
    )
    options = [f"--config.file={config}", f"--runtime={RUNTIME}", *more]
    return [str(DISKSLA), "verify", device, *options]


def verify(
    device: str, terms: str, room: Path, *more: str
) -> tuple[int, dict[str, Any], dict[str, dict[str, Any]]]:
    """Run it; give its exit status, the account, and the lines that were measured."""
    command = words_for(device, terms, room, "--json", *more)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stdout, done.stderr
    account = json.loads(done.stdout)
    lines = {line["test"]: line for line in account["lines"] if line["iops"] is not None}
    return done.returncode, account, lines


def quickly(
    device: str, terms: str, room: Path, *more: str
) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """Verify at a tolerance of 10 %, where 3 s are enough."""
    (room / "quick.yml").write_text(
        f"assessment: {{tolerance: 10%}}\nstate: {{directory: {room}}}\n"
        f"disks: [{{match: {{device: {device}}}, terms: {terms}}}]\n"
    )
    options = [f"--config.file={room / 'quick.yml'}", "--runtime=3s", "--json", *more]
    done = subprocess.run(
        [str(DISKSLA), "verify", device, *options], check=False, capture_output=True, text=True
    )
    account = json.loads(done.stdout or "{}") | {"said": done.stderr}
    measured = {
        line["test"]: line for line in account.get("lines", []) if line["iops"] is not None
    }
    return done.returncode, account, measured


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[int, Any, Any]]:
    """Verify a disk that keeps its promise and one at 70 % of it, at the same time."""

    def verified(percent: int) -> tuple[int, Any, Any]:
        room = tmp_path_factory.mktemp(f"at-{percent}")
        with disk_that(f"[{{limit: iops, read_iops: {10 * percent}}}]", room) as device:
            return verify(device, PROMISE, room, "--suite=vk", "--junit", str(room / "junit.xml"))

    with ThreadPoolExecutor() as together:
        return dict(zip((100, 70), together.map(verified, (100, 70)), strict=True))


def test_a_disk_that_keeps_its_promise_passes(both: dict[int, tuple[int, Any, Any]]) -> None:
    status, account, lines = both[100]
    assert status == 0, account
    assert account["verdict"] == "kept"
    assert set(lines) == {"randread-4k", "randread-8k", "randread-16k"}
    for line in lines.values():
        assert line["ratio"] == pytest.approx(1.0, abs=0.03)
        assert line["other_share"] < 0.01
    assert [line["required_ratio"] for line in lines.values()] == [1.0, 0.75, 0.5]


def test_a_disk_at_70_percent_fails_at_8_kib_too(both: dict[int, tuple[int, Any, Any]]) -> None:
    status, account, lines = both[70]
    assert status == 1, account
    assert account["verdict"] == "broken"
    assert {test: line["verdict"] for test, line in lines.items()} == {
        "randread-4k": "fail",
        "randread-8k": "fail",
        "randread-16k": "pass",
    }
    for line in lines.values():
        assert line["ratio"] == pytest.approx(0.7, abs=0.02)


def test_credits_are_told_and_can_be_used_up_first(tmp_path: Path) -> None:
    meters = "[{limit: iops, iops: 300, peak: 1000, credits: 2000}]"
    with disk_that(meters, tmp_path) as device:
        _, _, burst = quickly(device, CREDITS, tmp_path)
        status, account, base = quickly(device, CREDITS, tmp_path, "--wait-for-base")
    assert status == 0, account
    assert burst["randread-4k"]["level"] in {"burst", "burst_then_base"}
    assert burst["randread-4k"]["measured"] > 600
    assert base["randread-4k"]["level"] == "base", account
    assert base["randread-4k"]["measured"] == pytest.approx(300, rel=0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_a_report_and_no_fio(tmp_path: Path, number: signal.Signals) -> None:
    with disk_that("[{limit: iops, read_iops: 1000}]", tmp_path) as device:
        command = words_for(device, PROMISE, tmp_path, "--json")
        with (
            terminal() as (stderr, shown),
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
        ):
            # The bar names the test a second after fio was started.
            assert eventually(lambda: b"randread-4k" in shown, PATIENCE_S)
            started = fios(psutil.Process(process.pid))
            process.send_signal(number)
            printed, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 128 + number
        assert json.loads(printed)["verdict"] == "incomplete"
        assert started
        assert not any(fio.is_running() for fio in started)


@contextmanager
def terminal() -> Iterator[tuple[int, bytearray]]:
    """Give a terminal to write to, and what was written so far; it is read all the time."""
    ours, theirs = os.openpty()
    shown = bytearray()

    def read() -> None:
        with suppress(OSError):  # how a terminal ends
            while piece := os.read(ours, 4096):
                shown.extend(piece)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield theirs, shown
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)


def fios(process: psutil.Process) -> list[psutil.Process]:
    return [child for child in process.children(recursive=True) if child.name() == "fio"]


def test_a_disk_in_use_proves_nothing(tmp_path: Path) -> None:
    with disk_that("[{limit: iops, read_iops: 1000}]", tmp_path) as device:
        load = ["fio", "--name=other", f"--filename=/dev/{device}", "--rw=randread", "--bs=4k"]
        limits = ["--rate_iops=100", "--runtime=60", "--time_based", "--direct=1", "--readonly"]
        with subprocess.Popen([*load, *limits], stdout=subprocess.DEVNULL) as other:
            try:
                io = Path(f"/sys/block/{device}/stat")
                assert eventually(lambda: int(io.read_text().split()[0]) > 100, PATIENCE_S)
                status, account, lines = quickly(device, PROMISE, tmp_path)
                forced, loaded, measured = quickly(device, PROMISE, tmp_path, "--force")
            finally:
                other.terminate()
    assert (status, account["verdict"], lines) == (2, "not_valid", {})
    assert [each["precondition"] for each in account["violations"]] == ["other_load"]
    assert "others used" in account["violations"][0]["message"]
    assert (forced, loaded["verdict"]) == (2, "not_valid")
    assert 0.02 < measured["randread-4k"]["other_share"] < 0.2


@contextmanager
def formatted(room: Path) -> Iterator[tuple[str, Path]]:
    """Make a loop device with ext4, mount it; give its kernel name and where it is mounted."""
    image, place = room / "image", room / "mounted"
    with image.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 128 * 2**20)
    place.mkdir()
    with attached(image) as device:
        options = "lazy_itable_init=0,lazy_journal_init=0"  # or the kernel writes later
        subprocess.run(["mkfs.ext4", "-q", "-E", options, f"/dev/{device}"], check=True)
        subprocess.run(["mount", f"/dev/{device}", str(place)], check=True)
        os.sync()
        try:
            yield device, place
        finally:
            subprocess.run(["umount", str(place)], check=True)


def test_writes_are_tested_on_a_file_that_is_removed(tmp_path: Path) -> None:
    with formatted(tmp_path) as (device, place):
        (place / "data").write_text("mine")
        status, account, lines = quickly(
            device, PROMISE, tmp_path, f"--file={place}", "--file-size=16MiB", "--suite=vk"
        )
        assert sorted(path.name for path in place.iterdir()) == ["data", "lost+found"]
        assert (place / "data").read_text() == "mine"
    assert status == 0, account
    assert account["target"] == "file"
    assert len(lines) == 6
    assert {line["writes"] for line in lines.values()} == {True, False}


def test_an_interrupt_while_the_file_is_used_leaves_no_file(tmp_path: Path) -> None:
    with formatted(tmp_path) as (device, place):
        options = [f"--file={place}", "--file-size=16MiB", "--json"]
        command = words_for(device, PROMISE, tmp_path, *options)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            ours = psutil.Process(process.pid)
            assert eventually(lambda: bool(fios(ours)), PATIENCE_S)
            process.send_signal(signal.SIGINT)
            printed, _ = process.communicate(timeout=PATIENCE_S)
        assert [path.name for path in place.iterdir()] == ["lost+found"]
    assert json.loads(printed)["verdict"] == "incomplete"


def test_a_raw_device_is_overwritten_only_if_it_is_empty_and_named(tmp_path: Path) -> None:
    with formatted(tmp_path) as (device, _):
        status, account, _ = quickly(device, PROMISE, tmp_path, f"--write-to-raw-device={device}")
        assert status == 2
        assert "refusing to overwrite" in account["said"]
    image = tmp_path / "empty"
    with image.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 16 * 2**20)
    with attached(image) as device:
        status, account, _ = quickly(device, PROMISE, tmp_path, "--write-to-raw-device=vdb")
        assert status == 2
        assert f"says 'vdb', but the disk is {device}" in account["said"]
        assert not image.read_bytes().strip(b"\0")
        status, account, lines = quickly(
            device, PROMISE, tmp_path, f"--write-to-raw-device={device}"
        )
        assert status == 0, account
        assert set(lines) == {"randread-4k", "randwrite-4k"}
        content = image.read_bytes()
        assert content.strip(b"\0")
        edge = 4 * 2**20
        assert not (content[:edge] + content[-edge:]).strip(b"\0"), "so it is empty still"
