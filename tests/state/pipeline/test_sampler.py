"""The sampler thread, and ticks that fail."""

import logging
import os
from collections.abc import Collection
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

from disksla.base.operating_system.machine import Roots
from disksla.kernel.disks.disk import nfs_disks
from disksla.kernel.procfs.mountinfo import parse_mountinfo
from disksla.promise.configuration.configuration import Configuration
from disksla.promise.configuration.settings import (
    DevicePattern,
    DiscoverySettings,
    DiskEntry,
    Settings,
)
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.advance import advance, advance_in_parts
from disksla.state.pipeline.sampler import Sampler, read_clocks
from disksla.state.pipeline.sampler_stats import SamplerStats
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import Tick
from disksla.verdict.interval.interval import Clocks
from support.log_events import Event, events
from support.nfs_client import Export, NfsClient
from support.simulated_host import CATALOG, a_disk
from support.waiting import eventually

LINE = " 254 {minor} {name} {reads} 0 8 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
WITHIN_S = 20.0
BEFORE = State(Configuration(Settings(), CATALOG))


@pytest.fixture
def paths(tmp_path: Path) -> Roots:
    (tmp_path / "diskstats").write_text(LINE.format(minor=0, name="vda", reads=1))
    (tmp_path / "stat").write_text("cpu  100 0 50 1000 250 0 0 0 0 0\n")
    return Roots(procfs=tmp_path, sysfs=tmp_path)


def write(paths: Roots, text: str) -> None:
    """Replace the text of /proc/diskstats."""
    (paths.procfs / "diskstats").write_text(text)


def a_sampler(paths: Roots, ticks: list[Tick] | None = None) -> Sampler:
    recorded = [] if ticks is None else ticks
    sampler = Sampler(paths, BEFORE, on_tick=recorded.append)
    sampler.post((a_disk("vda"),))
    return sampler


def test_ticks_follow_the_configured_interval(paths: Roots) -> None:
    ticks: list[Tick] = []
    sampler = a_sampler(paths, ticks)
    sampler.start()
    assert eventually(lambda: len(ticks) >= 5, WITHIN_S)
    sampler.stop()
    assert ticks[0].disks == (a_disk("vda"),)
    assert all(tick.disks is None for tick in ticks[1:])
    due_s = [tick.clocks.monotonic_s - tick.lateness_s for tick in ticks]
    assert all(
        (each_s - due_s[0]) / 0.1 == pytest.approx(round((each_s - due_s[0]) / 0.1), abs=1e-3)
        for each_s in due_s
    )


def test_tick_is_judged_in_parts_before_the_next_is_taken(paths: Roots) -> None:
    disks = tuple(a_disk(f"vd{number}", number) for number in range(40))
    ticks: list[Tick] = []

    def on_tick(tick: Tick) -> None:
        ticks.append(tick)
        write(
            paths,
            "".join(
                LINE.format(minor=disk.minor, name=disk.name, reads=len(ticks)) for disk in disks
            ),
        )
        if len(ticks) == 15:  # a second ends among them
            sampler.stop()

    sampler = Sampler(paths, BEFORE, on_tick)
    sampler.post(disks)
    sampler.run_for(WITHIN_S)
    states = list(accumulate(ticks, advance, initial=BEFORE))
    assert sampler.state == states[-1]
    assert len(list(advance_in_parts(states[-2], ticks[-1]))) == len(disks)


def test_disk_at_which_requests_wait_is_looked_at_closer(paths: Roots) -> None:
    """Every 10 ms, from when it is known that it is busy; an idle disk is not."""
    for name, inflight in (("vda", 3), ("vdb", 0)):
        directory = paths.sysfs / "class" / "block" / name
        directory.mkdir(parents=True)
        (directory / "stat").write_text(f"1 0 8 0 0 0 0 0 {inflight} 0 0\n")
    busy = LINE.format(minor=0, name="vda", reads=1).replace(" 8 0 0 0 0 0 0", " 8 0 0 0 0 0 3")
    write(paths, busy + LINE.format(minor=16, name="vdb", reads=1))
    ticks: list[Tick] = []
    sampler = Sampler(paths, BEFORE, on_tick=ticks.append)
    sampler.post((a_disk("vda"), a_disk("vdb", 16)))
    sampler.run_for(1.0)
    looked = [tick for tick in ticks if tick.close]
    assert 5 <= len(looked) < len(ticks)
    assert all(list(tick.close) == ["vda"] for tick in looked)
    samples = [sample for tick in looked for sample in tick.close["vda"]]
    assert len(samples) > 3 * len(looked)
    times_s = [sample.at_s for sample in samples]
    assert times_s == sorted(times_s)
    assert {(sample.reads, sample.inflight) for sample in samples} == {(1, 3)}
    for before, after in pairwise(looked):
        first, last = after.close["vda"][0].at_s, after.close["vda"][-1].at_s
        assert before.clocks.monotonic_s - 1e-5 < first <= last
        assert last >= after.clocks.monotonic_s - 1e-5  # the last is read with the tick
    assert sampler.state.sampler_stats.collectors["close_samples"]


def test_posted_settings_apply_at_next_tick(paths: Roots) -> None:
    sampler = a_sampler(paths)
    sampler.start()
    assert eventually(lambda: "vda" in sampler.state.monitored, WITHIN_S)
    settings = Settings(discovery=DiscoverySettings(exclude=(DevicePattern("^vda$"),)))
    sampler.post(Configuration(settings, CATALOG))
    assert eventually(lambda: not sampler.state.monitored, WITHIN_S)
    sampler.stop()
    assert sampler.state.sampler_stats.gaps["vanished"] == 0


def test_unreadable_source_is_logged_once_with_recovery(
    paths: Roots, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    (paths.procfs / "diskstats").unlink()
    (paths.procfs / "diskstats").mkdir()
    sampler = a_sampler(paths)
    sampler.start()
    assert eventually(lambda: sampler.state.sampler_stats.errors["diskstats"] >= 3, WITHIN_S)
    (paths.procfs / "diskstats").rmdir()
    write(paths, LINE.format(minor=0, name="vda", reads=1))
    assert eventually(lambda: not sampler.state.sampler_stats.problems, WITHIN_S)
    sampler.stop()
    failed, recovered = problems(caplog)
    assert (failed.message, failed.fields["source"]) == ("cannot read source", "diskstats")
    assert "Is a directory" in failed.fields["err"]
    assert recovered == ("info", "source readable again", {"source": "diskstats"})


def test_failed_tick_is_logged_and_sampling_continues(
    paths: Roots, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    failing = True

    def on_tick(_: Tick) -> None:
        if failing:
            raise RuntimeError("out of order")

    sampler = Sampler(paths, BEFORE, on_tick=on_tick)
    sampler.start()
    assert eventually(lambda: bool(caplog.records), WITHIN_S)
    before_s = sampler.ticked_at_s
    failing = False
    assert eventually(lambda: sampler.ticked_at_s > before_s, WITHIN_S)
    sampler.stop()
    assert [event.message for event in events(caplog)] == [
        "tick failed by a bug of disksla, please report it",
        "sampling recovered",
    ]
    assert caplog.records[0].exc_info is not None


def sample(paths: Roots, ticks: int, failing: Collection[int]) -> list[SamplerStats]:
    """Return the statistics of a sampler after each of so many ticks."""
    before: list[SamplerStats] = []

    def on_tick(_: Tick) -> None:
        before.append(sampler.state.sampler_stats)
        if len(before) == ticks:
            sampler.stop()
        if len(before) - 1 in failing:
            raise RuntimeError(f"out of order at {len(before) - 1}")

    sampler = Sampler(paths, BEFORE, on_tick=on_tick)
    sampler.post((a_disk("vda"),))
    sampler.run_for(WITHIN_S)
    return [*before[1:], sampler.state.sampler_stats]


def test_failed_ticks_are_counted_until_a_good_one_clears_the_problem(paths: Roots) -> None:
    after = sample(paths, 7, failing={2, 3, 5})
    assert [stats.errors["sampler"] for stats in after] == [0, 0, 1, 2, 2, 3, 3]
    assert [stats.collectors["sampler"] for stats in after] == [
        *(True, True, False, False),
        *(True, False, True),
    ]
    assert [stats.ticks for stats in after] == [1, 2, 2, 2, 3, 3, 4]
    assert after[3].problems == {"sampler": "out of order at 3"}


def test_stop_does_not_wait_for_a_blocked_read(
    paths: Roots, caplog: pytest.LogCaptureFixture
) -> None:
    (paths.procfs / "diskstats").unlink()
    os.mkfifo(paths.procfs / "diskstats")
    ticks: list[Tick] = []
    sampler = a_sampler(paths, ticks)
    sampler.start()
    sampler.stop()
    [event] = events(caplog)
    assert event.message == "sampler did not stop: a read is blocked"
    assert ticks == []
    os.close(os.open(paths.procfs / "diskstats", os.O_RDWR))  # unblocks the read, which then fails
    assert eventually(lambda: bool(ticks), WITHIN_S)
    assert "diskstats" in ticks[0].problems


def test_clock_step_is_reported_and_drift_is_not(
    paths: Roots, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    offsets_s = [0.0, 0.0, -7200.0, -7200.0, -7199.5, -7199.0, 0.0]
    next_offset_s = iter(offsets_s)
    steps_at: list[int] = []
    ticks: list[Tick] = []

    def clocks() -> Clocks:
        now = read_clocks()
        return Clocks(now.monotonic_s, now.boottime_s, now.realtime_s + next(next_offset_s, 0.0))

    sampler = Sampler(paths, BEFORE, ticks.append, clocks)
    sampler.on_clock_set = lambda: steps_at.append(len(ticks))
    sampler.start()
    assert eventually(lambda: len(ticks) > len(offsets_s), WITHIN_S)
    sampler.stop()
    assert steps_at == [3, 7]
    assert events(caplog) == [
        ("info", "wall clock was set", {"step_seconds": -7200}),
        ("info", "wall clock was set", {"step_seconds": 7199}),
    ]
    assert sampler.state.sampler_stats.gaps["clock_step"] >= 2


def test_unknown_device_or_reset_requests_a_rescan(paths: Roots) -> None:
    requests: list[None] = []
    sampler = a_sampler(paths)
    sampler.on_unknown_device = lambda: requests.append(None)
    sampler.start()
    assert eventually(lambda: "vda" in sampler.state.monitored, WITHIN_S)
    assert requests == []
    write(
        paths,
        LINE.format(minor=0, name="vda", reads=1) + LINE.format(minor=16, name="vdb", reads=1),
    )
    assert eventually(lambda: len(requests) == 1, WITHIN_S)
    write(
        paths,
        LINE.format(minor=0, name="vda", reads=0) + LINE.format(minor=16, name="vdb", reads=1),
    )
    assert eventually(lambda: len(requests) == 2, WITHIN_S)
    sampler.stop()
    assert sampler.state.sampler_stats.gaps["reset"] == 1


def test_helper_that_fails_is_logged_once_and_sampling_continues(
    paths: Roots, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    helper = paths.procfs / "events.sock"
    helper.touch()
    online = paths.sysfs / "devices" / "system" / "cpu" / "online"
    online.parent.mkdir(parents=True)
    online.write_text("0\n")
    ticks: list[Tick] = []
    sampler = Sampler(paths, BEFORE, ticks.append, helper=helper)
    sampler.post((a_disk("vda", write_back=True),))
    sampler.start()
    assert eventually(lambda: sampler.events_health is not None, WITHIN_S)
    sampled = len(ticks)
    assert eventually(lambda: len(ticks) >= sampled + 3, WITHIN_S)
    sampler.stop()
    assert sampler.events_health == ("events", 1, False, sampler.why_not_exact)
    assert not sampler.state.sampler_stats.problems
    (event,) = problems(caplog)
    assert (event.level, event.message) == ("warning", "events not opened")
    assert "Connection refused" in str(event.fields["err"])


def problems(caplog: pytest.LogCaptureFixture) -> list[Event]:
    """Return the events but that of the number of disks."""
    return [event for event in events(caplog) if event.message != "disks monitored"]


def test_number_of_disks_is_logged_when_it_changes(
    paths: Roots, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    entry = DiskEntry(match=DiskMatch(device="vda"), terms="vk.ceph-ssd")
    sampler = Sampler(paths, State(Configuration(Settings(disks=(entry,)), CATALOG)))
    for disks in (("vda",), ("vda",), ("vda", "vdb")):
        sampler.post(tuple(a_disk(name, minor) for minor, name in enumerate(disks)))
        sampler.run_for(0.2)
    numbers = [each.fields for each in events(caplog) if each.message == "disks monitored"]
    assert numbers == [{"disks": 1, "unknown_type": 0}, {"disks": 2, "unknown_type": 1}]


def test_entries_are_matched_and_logged_by_the_thread_that_posts_them(
    paths: Roots, caplog: pytest.LogCaptureFixture
) -> None:
    """One line of the log, whatever their number; the sampler does not run in this test."""
    caplog.set_level(logging.INFO)
    entries = tuple(
        DiskEntry(match=DiskMatch(serial=f"gone-{number}"), terms="vk.ceph-ssd")
        for number in range(2_000)
    )
    sampler = a_sampler(paths)
    for settings in (
        Settings(disks=entries),
        Settings(disks=entries),
        Settings(disks=entries[:7]),
    ):
        sampler.post(Configuration(settings, CATALOG))
    (event,) = problems(caplog)
    assert (event.level, event.message) == ("warning", "entries apply to no disk")
    assert event.fields["entries"] == 2_000
    err = event.fields["err"]
    assert err.startswith(
        "disks[0] of the configuration (serial gone-0) matches no disk; disks[1]"
    )
    assert err.endswith("; and 1995 more")
    assert sampler.state.unused == ()


def test_unprivileged_sampling_says_once_why_counts_are_not_exact(
    paths: Roots, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sampler = Sampler(paths, BEFORE)
    sampler.post((a_disk("vda", write_back=True),))
    sampler.run_for(0.5)
    assert sampler.events_health is None
    (event,) = problems(caplog)
    assert event.level == "info"
    assert str(event.fields["err"]) == sampler.why_not_exact


def test_nfs_mounts_are_read_at_every_tick_through_one_open_file(tmp_path: Path) -> None:
    client = NfsClient(Export())
    (tmp_path / "diskstats").write_text("")
    client.write(tmp_path)
    ticks: list[Tick] = []
    sampler = Sampler(Roots(procfs=tmp_path, sysfs=tmp_path), BEFORE, on_tick=ticks.append)
    sampler.post(nfs_disks(parse_mountinfo(client.mountinfo())))
    sampler.start()
    try:
        assert eventually(lambda: sum(tick.mounts is not None for tick in ticks) >= 3, WITHIN_S)
        client.exports[0].does("READ", 7, 4096)
        client.write(tmp_path)
        read = "fs1.example:/export"
        assert eventually(
            lambda: any(tick.mounts and tick.mounts[read].reads == 7 for tick in ticks), WITHIN_S
        )
    finally:
        sampler.stop()
    assert sampler.state.monitored["fs1.example:/export"].is_listed


def test_mountstats_that_cannot_be_read_is_a_counted_error(tmp_path: Path) -> None:
    client = NfsClient(Export())
    (tmp_path / "diskstats").write_text("")
    sampler = Sampler(Roots(procfs=tmp_path, sysfs=tmp_path), BEFORE)
    sampler.post(nfs_disks(parse_mountinfo(client.mountinfo())))
    sampler.run_for(0.5)
    assert sampler.state.sampler_stats.errors["mountstats"] >= 1
    assert not sampler.state.sampler_stats.collectors["mountstats"]


def test_a_machine_without_nfs_mounts_does_not_read_mountstats(paths: Roots) -> None:
    ticks: list[Tick] = []
    sampler = a_sampler(paths, ticks)
    sampler.run_for(0.5)
    assert [tick.mounts for tick in ticks] == [None] * len(ticks)
    assert sampler.state.sampler_stats.errors["mountstats"] == 0
