"""Probes that are repeated, of a real device, by a fake fio."""

import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from disksla.core.namepattern import NamePattern
from disksla.core.pipeline import State
from disksla.core.probeledger import ProbeLedger
from disksla.core.probeoutcome import ProbeOutcome
from disksla.core.settings import Discovery, ProbeEntry, ProbeTarget, Settings
from disksla.core.settings import State as StateSettings
from disksla.runtime.alone import alone
from disksla.runtime.blockdevices import read_disks
from disksla.runtime.paths import Paths
from disksla.runtime.prober import MOST_JITTER_S, Prober, times_of
from disksla.runtime.sampler import Sampler
from disksla.runtime.schedule import Schedule, Times
from fakefio import ANSWERS, HANGS, fake_fio
from loopdevice import attached, eventually, needs_loop
from machine import CATALOG

ANSWER = Path(__file__).parent.parent / "core" / "fio" / "reads.json"
WITHIN_S = 20.0
OFTEN = ProbeEntry(kind="read-latency", every_s=0.1, runtime_s=0.05)
LOOK_S = 0.5


class Bench:
    """A prober at work on a loop device, with a fio that can be exchanged."""

    def __init__(self, directory: Path, device: str, undo: ExitStack) -> None:
        self.device = device
        self.room = directory / "bin"
        self.room.mkdir()
        shutil.copy(ANSWER, self.room / "answer")
        self.state_directory = directory / "state"
        self.state_directory.mkdir()
        self.sampler = Sampler(Paths(), State(self.settings(OFTEN), CATALOG))
        self.sampler.post(read_disks(Paths()).disks)
        self.schedule = Schedule()
        self.posted: list[ProbeOutcome] = []
        self.prober = Prober(
            Paths(),
            "machine",
            self.schedule,
            lambda: self.sampler.state,
            self.post,
            search_path=str(self.room),
            least_look_s=LOOK_S,
        )
        self.sampler.start()
        undo.callback(self.sampler.stop)
        undo.callback(self.schedule.stop)
        undo.callback(self.prober.stop)
        assert eventually(lambda: device in self.sampler.state.watched, WITHIN_S)
        self.schedule.start()

    def settings(self, *entries: ProbeEntry) -> Settings:

        only = NamePattern(f"^{self.device}$")
        return Settings(
            discovery=Discovery(include=(only,)),
            probes=entries,
            state=StateSettings(directory=str(self.state_directory)),
        )

    def post(self, outcome: ProbeOutcome) -> None:
        self.posted.append(outcome)
        self.sampler.post(outcome)

    def is_wanted(self) -> bool:
        return self.prober.is_wanted

    def trouble(self) -> str | None:
        return self.prober.trouble

    @property
    def ledger(self) -> ProbeLedger:
        probes = self.sampler.state.watched[self.device].probes
        return probes.get("read-latency", ProbeLedger())


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    file = tmp_path / "disk"
    file.write_bytes(bytes(2**20))
    with ExitStack() as undo:
        device = undo.enter_context(attached(file))
        yield Bench(tmp_path, device, undo)


@needs_loop
def test_a_quiet_disk_is_probed_again_and_again(bench: Bench) -> None:
    fake_fio(bench.room, ANSWERS)
    bench.prober.configure(bench.settings(OFTEN))
    assert eventually(lambda: bench.ledger.runs >= 3, WITHIN_S), bench.posted
    ledger = bench.ledger
    assert sum(ledger.failures.values()) == sum(ledger.skips.values()) == 0
    assert ledger.latency_s.count == ledger.requests > 0
    assert ledger.last is not None
    assert ledger.last.is_success
    assert ledger.last.target_iops == 20
    assert ledger.spent_bytes(ledger.last.timestamp_s) == ledger.transferred_bytes
    assert (bench.room / "told-to-read-only").exists()
    assert not (bench.room / "may-write").exists()
    assert bench.trouble() is None


@needs_loop
def test_a_probe_that_is_no_longer_wanted_ends(bench: Bench) -> None:
    fake_fio(bench.room, ANSWERS)
    bench.prober.configure(bench.settings(OFTEN))
    assert bench.is_wanted()
    assert eventually(lambda: bench.ledger.runs >= 1, WITHIN_S)
    bench.prober.configure(bench.settings())
    assert not bench.is_wanted()
    idle = threading.Semaphore(0)
    bench.schedule.at(Times(every_s=0.1), idle.release, "after what was begun")
    assert idle.acquire(timeout=WITHIN_S)
    posted = len(bench.posted)
    for _ in range(5):
        assert idle.acquire(timeout=WITHIN_S)
    assert len(bench.posted) == posted


@needs_loop
def test_a_disk_that_is_no_longer_watched_is_left(bench: Bench) -> None:
    fake_fio(bench.room, ANSWERS)
    bench.prober.configure(bench.settings(OFTEN))
    bench.sampler.post(())
    assert eventually(lambda: not bench.sampler.state.watched, WITHIN_S)
    bench.prober.configure(bench.settings(OFTEN))
    idle = threading.Semaphore(0)
    bench.schedule.at(Times(every_s=0.1), idle.release, "after what was begun")
    assert idle.acquire(timeout=WITHIN_S)
    assert bench.posted == []


@needs_loop
def test_a_hanging_fio_is_ended_with_the_daemon(bench: Bench) -> None:
    fake_fio(bench.room, HANGS)
    bench.prober.configure(bench.settings(OFTEN))
    assert eventually((bench.room / "hangs").exists, WITHIN_S)
    bench.prober.stop()
    bench.schedule.stop()
    assert bench.posted == []


@needs_loop
@pytest.mark.parametrize("version", [None, "fio-2.99"])
def test_without_a_fio_of_use_nothing_is_probed_until_there_is_one(
    bench: Bench, version: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    if version is not None:
        fake_fio(bench.room, ANSWERS, version=version)
    for _ in range(2):
        bench.prober.configure(bench.settings(OFTEN))
    trouble = bench.trouble() or ""
    assert "expected fio 3.1 or newer" in trouble
    assert bench.prober.errors == 2
    said = [record.getMessage() for record in caplog.records]
    assert said == [f"nothing is probed until the next reload: {trouble}"]
    fake_fio(bench.room, ANSWERS)
    bench.prober.configure(bench.settings(OFTEN))
    assert bench.trouble() is None
    assert eventually(lambda: bench.ledger.runs >= 1, WITHIN_S)


@needs_loop
def test_while_somebody_else_measures_nothing_is_probed(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    fake_fio(bench.room, ANSWERS)
    with alone(bench.state_directory):
        bench.prober.configure(bench.settings(OFTEN))
        assert eventually(lambda: bench.ledger.skips["another"] >= 2, WITHIN_S)
        assert bench.ledger.runs == 0
    assert eventually(lambda: bench.ledger.runs >= 1, WITHIN_S)
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"read-latency of {bench.device} is skipped: another measurement runs on this machine",
        f"read-latency of {bench.device} works",
    ]


@needs_loop
def test_nonsense_of_fio_is_a_failure_with_its_reason(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    (bench.room / "answer").write_text("all is well\n")
    fake_fio(bench.room, ANSWERS)
    bench.prober.configure(bench.settings(OFTEN))
    assert eventually(lambda: bench.ledger.failures["garbage"] >= 2, WITHIN_S)
    assert bench.ledger.runs == bench.ledger.failures["garbage"]
    assert bench.ledger.last is not None
    assert not bench.ledger.last.is_success
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert said[0].startswith(f"read-latency of {bench.device} failed: ")


@needs_loop
def test_a_disk_of_which_nothing_is_seen_is_skipped(bench: Bench) -> None:
    fake_fio(bench.room, ANSWERS)
    bench.sampler.stop()
    bench.prober.configure(bench.settings(OFTEN))
    assert eventually(lambda: bool(bench.posted), WITHIN_S)
    assert bench.posted[0].skipped == "unseen"


@needs_loop
def test_a_lock_that_cannot_be_had_is_a_failure(bench: Bench) -> None:
    fake_fio(bench.room, ANSWERS)
    settings = bench.settings(OFTEN)
    state = StateSettings(directory=f"/{'x' * 300}")
    bench.prober.configure(msgspec.structs.replace(settings, state=state))
    assert eventually(lambda: bool(bench.posted), WITHIN_S)
    assert bench.posted[0].failure == "error"
    assert "another measurement" in bench.posted[0].words


@pytest.mark.parametrize(
    ("told", "every_s", "cron", "jitter_s"),
    [
        ({}, 600.0, None, MOST_JITTER_S),
        ({"every_s": 20.0, "splay_s": 10.0}, 20.0, None, 0.5),
        ({"cron": "0 4 * * *"}, 0.0, "0 4 * * *", MOST_JITTER_S),
    ],
)
def test_when_a_probe_is_due(
    told: dict[str, ProbeTarget], every_s: float, cron: str | None, jitter_s: float
) -> None:
    times = times_of(ProbeEntry(kind="read-latency", **told), 12.5)  # type: ignore[arg-type]
    assert (times.every_s, times.cron, times.offset_s) == (every_s, cron, 12.5)
    assert times.jitter_s == pytest.approx(jitter_s)
