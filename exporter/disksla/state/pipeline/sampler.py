"""The sampler thread: reads a tick every 100 ms, advances the state and publishes it.

The thread is the only writer of the state (`Sampler.state`).
"""

import logging
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from disksla.base.operating_system import SourceHealth
from disksla.base.operating_system.log import fields
from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.unix_socket import DEFAULT_EVENTS_SOCKET
from disksla.clouds.ebs_statistics import Failure, Reading
from disksla.kernel.consumers import ConsumerReading
from disksla.kernel.consumers.readers import ConsumerReaders
from disksla.kernel.disks import Disk
from disksla.kernel.nfs import MountReading
from disksla.kernel.nfs.nfs_files import MountstatsFile
from disksla.kernel.performance_events.data_writes import Counts, DataWriteCounters
from disksla.kernel.performance_events.opened import open_events
from disksla.kernel.performance_events.opening import EventFiles
from disksla.kernel.performance_events.source import EventSource
from disksla.kernel.procfs.files import DiskstatsFile, InflightFiles, StatFiles
from disksla.kernel.procfs.iowait_files import HostWaitFiles
from disksla.promise.configuration import Configuration, Matched, changes, match_disks
from disksla.state.pipeline.advance import advance_in_parts, configure
from disksla.state.pipeline.changed_lines import DiskstatsLines
from disksla.state.pipeline.probe_results import ProbeResult
from disksla.state.pipeline.state import (
    State,
    is_idle,
    needs_host_wait,
    needs_inflight,
    to_look_at,
    to_watch,
)
from disksla.state.pipeline.tick import Tick, close_deadlines, next_deadline
from disksla.verdict.interval import Clocks

LONGEST_SLEEP_S = 0.25
STEP_S = 0.01
"""Time between close samples: pauses of 20 ms are seen, and a disk costs 4 ms of CPU a second."""
STOP_TIMEOUT_S = 3.0
MOST_WAITING = 10
"""Ticks that wait for their turn: judging the last second of 500 busy disks takes several."""
LATEST_COUNT_S = 0.01
"""Data writes that were counted later than this after the clocks were read are not of the window:
a tenth of the shortest, as much as the bounds of credits allow."""
CLOCK_SET_S = 1.0  # a larger step of the wall clock is logged and passed to `on_clock_set`

log = logging.getLogger("disksla.sampler")


_Message = ProbeResult | Reading | Failure | ConsumerReading
Event = tuple[Disk, ...] | Configuration | _Message
"""A new list of all block devices, a new configuration, the result of a probe, or a reading of a
statistics page or of consumers."""


class _NewMatch(NamedTuple):
    """The disks and their terms, after a change of one or the other."""

    matched: Matched
    has_new_disks: bool


def read_clocks() -> Clocks:
    """Return the current time of all clocks."""
    return Clocks(
        monotonic_s=time.monotonic(),
        boottime_s=time.clock_gettime(time.CLOCK_BOOTTIME),
        realtime_s=time.time(),
    )


class Sampler:
    """Samples until it is stopped. Other threads read `state` and `post` events.

    `on_tick` is called in the sampler thread with each tick, before `advance`: `disksla record`
    writes the tick to its file there.
    """

    def __init__(
        self,
        roots: Roots,
        state: State,
        on_tick: Callable[[Tick], None] = lambda _: None,
        clocks: Callable[[], Clocks] = read_clocks,
        helper: Path = DEFAULT_EVENTS_SOCKET,
    ) -> None:
        """Prepare to sample; no file is read before `start` or `run_for`.

        `helper` is the socket of `disksla open-events`.
        """
        self.state = state
        self.ticked_at_s = time.monotonic()  # monotonic time of the last tick that was completed
        self.on_unknown_device: Callable[[], None] = lambda: None
        """Called in the sampler thread when /proc/diskstats lists other devices than before. Set
        by the owner of the device discovery."""
        self.on_tick_done: Callable[[Tick], None] = lambda _: None
        """Called in the sampler thread with each tick, after the new `state` is published."""
        self.on_clock_set: Callable[[], None] = lambda: None
        """Called in the sampler thread when the wall clock was set. Set by the owner of jobs that
        are scheduled by wall time."""
        self._diskstats = DiskstatsFile(roots.procfs)
        self._mountstats = MountstatsFile(roots.mountstats, roots.procfs)
        self._inflight = InflightFiles(roots.sysfs)
        self._stat = StatFiles(roots.sysfs)
        self._host = HostWaitFiles(roots.procfs)
        opener = partial(open_events, helper=helper, files=EventFiles(roots))
        self._data_writes = DataWriteCounters(EventSource(opener, "events", roots.sysfs))
        self.consumers = ConsumerReaders(roots, opener, self.post, lambda: to_watch(self.state))
        """Reads who uses disks, in a thread of its own, while this one runs."""
        self._on_tick = on_tick
        self._clocks = clocks
        self._wall_offset_s: float | None = None
        """Wall time minus time since boot, at the last tick."""
        self._events: queue.SimpleQueue[_NewMatch | _Message] = queue.SimpleQueue()
        self._matching = threading.Lock()  # held by the thread that matches disks and terms
        self._matched = match_disks(state.configuration, state.inventory)
        """What was matched last; the sampler's thread may not know of it yet."""
        self._stopping = threading.Event()
        self._failure: str | None = None
        """Why the last tick failed, so that a lasting failure is logged once."""
        self._work: deque[Iterator[None]] = deque()  # what is left to do for the last ticks
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def post(self, event: Event) -> None:
        """Queue an event for the next tick; may be called from any thread.

        Disks and terms are matched here, in the thread of the caller: with thousands of entries
        that takes longer than a tick may.
        """
        match event:
            case Configuration():
                self._match(configuration=event)
            case tuple():
                self._match(disks=event)
            case _:
                self._events.put(event)

    def _match(
        self, disks: tuple[Disk, ...] | None = None, configuration: Configuration | None = None
    ) -> None:
        """Queue the disks with their terms, one of which is new, and log what changed."""
        with self._matching:
            before = self._matched
            self._matched = match_disks(
                configuration or before.configuration,
                before.inventory if disks is None else disks,
                before.cpus if disks is None else os.cpu_count(),
            )
            self._events.put(_NewMatch(self._matched, has_new_disks=disks is not None))
            for event in changes(before, self._matched):
                level = logging.WARNING if event.is_problem else logging.INFO
                log.log(level, event.message, extra=fields(**event.values))

    def start(self) -> None:
        """Start the sampler thread."""
        self.consumers.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for the thread for at most STOP_TIMEOUT_S: a read may be blocked."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_TIMEOUT_S)
            if self._thread.is_alive():
                log.warning("sampler did not stop: a read is blocked")

    def run_for(self, duration_s: float) -> None:
        """Sample in the calling thread for this long, or until `stop`."""
        self.consumers.start()
        until_s = time.monotonic() + duration_s
        self._run(until_s)

    def _run(self, until_s: float = float("inf")) -> None:
        due_s = time.monotonic()
        missed = 0
        while due_s <= until_s and self._look_until(due_s) and self._sleep_until(due_s):
            with self._counting_failure():
                self._tick(due_s, missed)
            interval_s = self.state.settings.sampling.interval_s
            due_s, missed = next_deadline(due_s, time.monotonic(), interval_s)
        self._go_on()
        self.consumers.stop()
        self._diskstats.close()
        self._mountstats.close()
        self._inflight.close()
        self._stat.close()
        self._data_writes.close()

    @property
    def why_not_exact(self) -> str | None:
        """Why data writes are not counted exactly; None while they are, or may be."""
        return self._data_writes.why_not

    @property
    def events_health(self) -> SourceHealth | None:
        """How the helper that opens events works; None without one."""
        return self._data_writes.source.health

    def _look_until(self, due_s: float) -> bool:
        """Read close samples every STEP_S before the deadline; return False after `stop`.

        The last one is read with the tick.
        """
        self._go_on(time.monotonic() + STEP_S)
        state = self.state
        devices = to_look_at(state, due_s)
        lines = state.lines or DiskstatsLines()
        counted_at = {device: lines.counted_at(device) for device in devices}
        self._stat.look_at(counted_at, lines.partitioned)
        interval_s = state.settings.sampling.interval_s
        for step_due_s in close_deadlines(due_s, interval_s, STEP_S) if devices else ():
            if step_due_s > time.monotonic():
                if not self._sleep_until(step_due_s):
                    return False
                self._stat.read()
        return True

    def _sleep_until(self, due_s: float) -> bool:
        """Go on with the last ticks, then sleep; return False if `stop` was called meanwhile.

        It sleeps in short pieces to notice `stop` soon. Waiting for a threading.Event instead
        would cost a third more CPU time at each tick.
        """
        self._go_on(due_s)
        while not self._stopping.is_set():
            left_s = due_s - time.monotonic()
            if left_s <= 0:
                return True
            time.sleep(min(left_s, LONGEST_SLEEP_S))
        return False

    def _tick(self, due_s: float, missed_ticks: int) -> None:
        """Read a tick; what is to do for it waits for its turn, but not behind many others."""
        tick = self._read_tick(self.state, due_s, missed_ticks)
        tick, matched = self._with_events(tick)
        self._on_tick(tick)
        if len(self._work) >= MOST_WAITING:
            self._go_on()
        self._work.append(self._advance(tick, matched))

    def _go_on(self, until_s: float = float("inf")) -> None:
        """Go on with the last ticks until a time, by one part at least."""
        with self._counting_failure():
            while self._work:
                for _ in self._work[0]:
                    if time.monotonic() >= until_s:
                        return
                self._work.popleft()

    @contextmanager
    def _counting_failure(self) -> Iterator[None]:
        """Log and count what fails: a failed tick must not stop sampling."""
        try:
            yield
        except Exception as error:
            self._go_on()  # with the ticks before, if this one could not be read
            if self._failure != str(error):
                self._failure = str(error)
                log.exception("tick failed by a bug of disksla, please report it")
            stats = self.state.sampler_stats
            stats = stats.with_problems({"sampler": str(error)}, not_read=stats.problems)
            self.state = msgspec.structs.replace(self.state, sampler_stats=stats)

    def _advance(self, tick: Tick, matched: Matched | None) -> Iterator[None]:
        """Advance the state by a tick in parts, publish it, and tell others what is new."""
        before = state = self.state
        if matched is not None:
            state = configure(state, matched, tick.clocks)
        # `tick.disks` is for those who read the recording: here the disks are matched already.
        without_disks = msgspec.structs.replace(tick, disks=None)
        self.state = yield from advance_in_parts(state, without_disks)
        self.ticked_at_s = tick.clocks.monotonic_s
        _log_source_changes(before, self.state)
        if self._failure is not None:
            log.info("sampling recovered")
            self._failure = None
        if tick.disks is None and _devices_changed(before, self.state):
            self.on_unknown_device()
        self.on_tick_done(tick)
        self._check_wall_clock(tick.clocks)

    def _check_wall_clock(self, clocks: Clocks) -> None:
        before_s, self._wall_offset_s = self._wall_offset_s, clocks.realtime_s - clocks.boottime_s
        if before_s is not None and abs(self._wall_offset_s - before_s) > CLOCK_SET_S:
            step_s = round(self._wall_offset_s - before_s)
            log.info("wall clock was set", extra=fields(step_seconds=step_s))
            self.on_clock_set()

    def _with_events(self, tick: Tick) -> tuple[Tick, Matched | None]:
        """Return a tick with what was posted since the last, and the new match, if any."""
        if self._events.empty():
            return tick, None
        events = []
        while not self._events.empty():
            events.append(self._events.get())
        tick = msgspec.structs.replace(
            tick,
            probes=tuple(each for each in events if isinstance(each, ProbeResult)),
            provider=tuple(each for each in events if isinstance(each, Reading | Failure)),
        ).with_readings(each for each in events if isinstance(each, ConsumerReading))
        matches = [each for each in events if isinstance(each, _NewMatch)]
        if not matches:
            return tick, None
        matched = matches[-1].matched
        if any(each.has_new_disks for each in matches):
            disks = matched.inventory
            tick = msgspec.structs.replace(tick, disks=disks, cpus=matched.cpus)
        return tick, matched

    def _read_tick(self, state: State, due_s: float, missed_ticks: int) -> Tick:
        clocks = self._clocks()
        text: str | None = None
        problems = {}
        try:
            text = self._diskstats.read()
        except OSError as error:
            problems["diskstats"] = str(error)
        self._stat.read()
        close, close_problems = self._stat.take()
        data_writes, data_write_problems = self._read_data_writes(state, text, clocks)
        inflight, inflight_problems = self._inflight.read(needs_inflight(state))
        mounts, mount_problems = self._read_mounts(state, clocks)
        host = None
        if needs_host_wait(state):
            host, host_problems = self._host.read()
            problems |= host_problems
        for more in (inflight_problems, close_problems, data_write_problems, mount_problems):
            problems |= more
        return Tick(
            clocks,
            text,
            lateness_s=max(0.0, clocks.monotonic_s - due_s),
            missed_ticks=missed_ticks,
            inflight=inflight,
            data_writes=data_writes,
            close=close,
            mounts=mounts,
            host=host,
            problems=problems,
        )

    def _read_mounts(
        self, state: State, clocks: Clocks
    ) -> tuple[dict[str, MountReading] | None, dict[str, str]]:
        """Return the counters of NFS mounts, if they are to be read now, and errors by source."""
        now_s = clocks.monotonic_s
        if not state.device_at or not self._mountstats.is_due(len(state.mounts), now_s):
            return None, {}
        try:
            found = self._mountstats.read(state.device_at, now_s)
        except OSError as error:
            return None, {"mountstats": str(error)}
        problems = {f"mountstats:{device}": why for device, why in found.problems.items()}
        return found.readings, problems

    def _read_data_writes(
        self, state: State, text: str | None, clocks: Clocks
    ) -> tuple[Counts, dict[str, str]]:
        """Return exact counts of data writes, and errors by source.

        They are read after the counters of the kernel, and only if these changed or a disk was
        active: each read interrupts all CPUs.
        """
        counters, disks = self._data_writes, state.with_write_cache
        if counters.may_wait(disks) and (not counters.counts or is_idle(state, text)):
            return {}, {}
        counts, problems = counters.read(disks)
        if time.monotonic() - clocks.monotonic_s > LATEST_COUNT_S:
            counts = {}
        return counts, problems


def _log_source_changes(before: State, after: State) -> None:
    was, now = before.sampler_stats.problems, after.sampler_stats.problems
    if was is now:
        return
    for key in now.keys() - was.keys():
        log.warning("cannot read source", extra=_source_fields(key, now[key]))
    for key in was.keys() - now.keys() - {"sampler"}:  # a failed tick logs its own end
        log.info("source readable again", extra=_source_fields(key))


def _source_fields(key: str, problem: str | None = None) -> dict[str, dict[str, object]]:
    """Return the fields for `source` or `source:device`."""
    source, _, device = key.partition(":")
    return fields(source=source, device=device or None, err=problem)


def _devices_changed(before: State, after: State) -> bool:
    """Return whether /proc/diskstats lists other devices, or the counters of one were reset."""
    if before.sampler_stats.gaps["reset"] != after.sampler_stats.gaps["reset"]:
        return True
    if before.lines is None or after.lines is None or before.lines.heads is after.lines.heads:
        return False
    return set(before.lines.heads) != set(after.lines.heads)
