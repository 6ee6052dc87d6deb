"""The probe scheduler with a loop device and a fake fio."""

import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.scheduler import JobTimes, Scheduler
from disksla.base.operating_system.state_file import measurement_lock
from disksla.kernel.disks.inventory import read_disks
from disksla.measure.probes.probe_scheduler import ProbeScheduler
from disksla.promise.configuration import Configuration
from disksla.promise.configuration.settings import (
    DevicePattern,
    DiscoverySettings,
    ProbeEntry,
    Settings,
    StateSettings,
)
from disksla.state.pipeline.probe_results import ProbeResult, ProbeTotals
from disksla.state.pipeline.sampler import Sampler
from disksla.state.pipeline.state import State
from support.fake_fio import ANSWERS, HANGS, fake_fio
from support.log_events import events
from support.loop_device import attached, needs_loop
from support.simulated_host import CATALOG
from support.waiting import eventually

ANSWER = Path(__file__).parent.parent / "measure" / "fio" / "results" / "reads.json"

WITHIN_S = 20.0

FREQUENT = ProbeEntry(kind="read-latency", every_s=0.1, runtime_s=0.05)

OBSERVATION_S = 0.5


class Bench:
    """A probe scheduler with a loop device, and a fake fio that can be replaced."""

    def __init__(self, directory: Path, device: str, cleanup: ExitStack) -> None:
        self.device = device
        self.bin_dir = directory / "bin"
        self.bin_dir.mkdir()
        shutil.copy(ANSWER, self.bin_dir / "answer")
        self.state_directory = directory / "state"
        self.state_directory.mkdir()
        self.sampler = Sampler(Roots(), State(Configuration(self.settings(FREQUENT), CATALOG)))
        self.sampler.post(read_disks(Roots()).disks)
        self.scheduler = Scheduler()
        self.posted: list[ProbeResult] = []
        self.probes = ProbeScheduler(
            Roots(),
            "machine",
            self.scheduler,
            lambda: self.sampler.state,
            self.post,
            search_path=str(self.bin_dir),
            min_observation_s=OBSERVATION_S,
        )
        self.sampler.start()
        cleanup.callback(self.sampler.stop)
        cleanup.callback(self.scheduler.stop)
        cleanup.callback(self.probes.stop)
        assert eventually(lambda: device in self.sampler.state.monitored, WITHIN_S)
        self.scheduler.start()

    def settings(self, *entries: ProbeEntry) -> Settings:
        only = DevicePattern(f"^{self.device}$")
        return Settings(
            discovery=DiscoverySettings(include=(only,)),
            probes=entries,
            state=StateSettings(directory=str(self.state_directory)),
        )

    def post(self, result: ProbeResult) -> None:
        self.posted.append(result)
        self.sampler.post(result)

    def is_configured(self) -> bool:
        return self.probes.health() is not None

    def problem(self) -> str | None:
        return self.probes.problem

    @property
    def totals(self) -> ProbeTotals:
        probes = self.sampler.state.monitored[self.device].probes
        return probes.get("read-latency", ProbeTotals())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    file = tmp_path / "disk"
    file.write_bytes(bytes(2**20))
    with ExitStack() as cleanup:
        device = cleanup.enter_context(attached(file))
        yield Bench(tmp_path, device, cleanup)


@pytest.mark.in_check
@needs_loop
def test_idle_disk_is_probed_repeatedly(bench: Bench) -> None:
    fake_fio(bench.bin_dir, ANSWERS)
    bench.probes.configure(bench.settings(FREQUENT))
    assert eventually(lambda: bench.totals.runs >= 3, WITHIN_S), bench.posted
    totals = bench.totals
    assert sum(totals.failures.values()) == sum(totals.skips.values()) == 0
    assert totals.latency_s.count == totals.requests > 0
    assert totals.last is not None
    assert totals.last.is_success
    assert totals.last.target_iops == 20
    assert totals.spent_bytes(totals.last.timestamp_s) == totals.transferred_bytes
    assert (bench.bin_dir / "read-only").exists()
    assert not (bench.bin_dir / "may-write").exists()
    assert bench.problem() is None


@needs_loop
def test_probe_ends_when_removed_from_the_configuration(bench: Bench) -> None:
    fake_fio(bench.bin_dir, ANSWERS)
    bench.probes.configure(bench.settings(FREQUENT))
    assert bench.is_configured()
    assert eventually(lambda: bench.totals.runs >= 1, WITHIN_S)
    bench.probes.configure(bench.settings())
    assert not bench.is_configured()
    idle = threading.Semaphore(0)
    bench.scheduler.at(JobTimes(every_s=0.1), idle.release, "after the running probe")
    assert idle.acquire(timeout=WITHIN_S)
    posted = len(bench.posted)
    for _ in range(5):
        assert idle.acquire(timeout=WITHIN_S)
    assert len(bench.posted) == posted


@needs_loop
def test_disk_no_longer_monitored_is_not_probed(bench: Bench) -> None:
    fake_fio(bench.bin_dir, ANSWERS)
    bench.probes.configure(bench.settings(FREQUENT))
    bench.sampler.post(())
    assert eventually(lambda: not bench.sampler.state.monitored, WITHIN_S)
    bench.probes.configure(bench.settings(FREQUENT))
    idle = threading.Semaphore(0)
    bench.scheduler.at(JobTimes(every_s=0.1), idle.release, "after the running probe")
    assert idle.acquire(timeout=WITHIN_S)
    assert bench.posted == []


@pytest.mark.in_check
@needs_loop
def test_hanging_fio_is_ended_by_stop(bench: Bench) -> None:
    fake_fio(bench.bin_dir, HANGS)
    bench.probes.configure(bench.settings(FREQUENT))
    assert eventually((bench.bin_dir / "hangs").exists, WITHIN_S)
    bench.probes.stop()
    bench.scheduler.stop()
    assert bench.posted == []


@needs_loop
def test_probes_are_skipped_during_a_measurement(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="disksla.probe")
    fake_fio(bench.bin_dir, ANSWERS)
    with measurement_lock(bench.state_directory):
        bench.probes.configure(bench.settings(FREQUENT))
        assert eventually(lambda: bench.totals.skips["measurement_running"] >= 2, WITHIN_S)
        assert bench.totals.runs == 0
    assert eventually(lambda: bench.totals.runs >= 1, WITHIN_S)
    probe = {"device": bench.device, "kind": "read-latency"}
    reason = "measurement_running"
    message = "another measurement is running on this machine"
    assert events(caplog) == [
        ("info", "probe skipped", {**probe, "reason": reason, "err": message}),
        ("info", "probe succeeded", probe),
    ]


@needs_loop
def test_bad_output_is_a_failure_with_its_reason(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    (bench.bin_dir / "answer").write_text("all is well\n")
    fake_fio(bench.bin_dir, ANSWERS)
    bench.probes.configure(bench.settings(FREQUENT))
    assert eventually(lambda: bench.totals.failures["bad_output"] >= 2, WITHIN_S)
    assert bench.totals.runs == bench.totals.failures["bad_output"]
    assert bench.totals.last is not None
    assert not bench.totals.last.is_success
    [event] = events(caplog)
    assert (event.level, event.message) == ("warning", "probe failed")
    assert event.fields["device"] == bench.device
    assert event.fields["reason"] == "bad_output"


@needs_loop
def test_unusable_lock_is_a_failure(bench: Bench) -> None:
    fake_fio(bench.bin_dir, ANSWERS)
    settings = bench.settings(FREQUENT)
    state = StateSettings(directory=f"/{'x' * 300}")
    bench.probes.configure(msgspec.structs.replace(settings, state=state))
    assert eventually(lambda: bool(bench.posted), WITHIN_S)
    assert bench.posted[0].failure == "error"
    assert "another measurement" in bench.posted[0].message
