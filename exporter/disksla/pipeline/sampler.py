"""The thread that takes a tick every 100 ms and is alone in making the state."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from disksla.config import Configuration
from disksla.disks import Disk
from disksla.pipeline.advance import advance, configure
from disksla.pipeline.deadlines import next_deadline
from disksla.pipeline.probe_results import ProbeResult
from disksla.pipeline.state import State, wants_host
from disksla.pipeline.tick import Tick
from disksla.procfs.files import DiskstatsFile, InflightFiles
from disksla.procfs.iowait_files import HostWaitFiles
from disksla.system.log import fields
from disksla.system.roots import Roots
from disksla.verdict import Clocks

LONGEST_NAP_S = 0.25
LONGEST_END_S = 3.0
CLOCK_SET_S = 1.0
"""A step of the wall clock that others have to know of."""

log = logging.getLogger("disksla.sampler")


Event = tuple[Disk, ...] | Configuration | ProbeResult
"""All block devices; other settings; how a probe went."""


class Posted(NamedTuple):
    """What others posted for one tick."""

    disks: tuple[Disk, ...] | None
    probes: tuple[ProbeResult, ...]


def read_clocks() -> Clocks:
    """Read the machine's clocks."""
    return Clocks(
        monotonic_s=time.monotonic(),
        boottime_s=time.clock_gettime(time.CLOCK_BOOTTIME),
        realtime_s=time.time(),
    )


class Sampler:
    """Samples until it is stopped. Others read `state`, and post what they learned.

    `on_tick` is called in the thread with each tick, for a recorder; `clocks` reads the clocks.
    """

    def __init__(
        self,
        roots: Roots,
        state: State,
        on_tick: Callable[[Tick], None] = lambda _: None,
        clocks: Callable[[], Clocks] = read_clocks,
    ) -> None:
        """Take all that is needed; nothing is read before `start` or `run_for`."""
        self.state = state
        self.ticked_at_s = time.monotonic()
        """Monotonic time of the last tick that came through."""
        self.on_unknown_device: Callable[[], None] = lambda: None
        """Called in the thread when /proc/diskstats lists other devices than are known; whoever
        looks for devices sets it."""
        self.on_tick_done: Callable[[Tick], None] = lambda _: None
        """Called in the thread when a tick came through and `state` is what it made of it."""
        self.on_clock_set: Callable[[], None] = lambda: None
        """Called in the thread when the wall clock was set; whoever has jobs in wall time sets
        it."""
        self._diskstats = DiskstatsFile(roots.procfs)
        self._inflight = InflightFiles(roots.sysfs)
        self._host = HostWaitFiles(roots.procfs)
        self._on_tick = on_tick
        self._clocks = clocks
        self._wall_ahead_s: float | None = None
        """Of the time since boot."""
        self._posted: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._failure: str | None = None
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def post(self, news: Event) -> None:
        """Hand over what was learned; the next tick takes it."""
        self._posted.put(news)

    def start(self) -> None:
        """Begin to sample."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the end, but not for a file that does not answer."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(LONGEST_END_S)
            if self._thread.is_alive():
                log.warning("sampler did not stop: a read is blocked")

    def run_for(self, duration_s: float) -> None:
        """Sample in the calling thread for a while."""
        until_s = time.monotonic() + duration_s
        self._run(until_s)

    def _run(self, until_s: float = float("inf")) -> None:
        due_s = time.monotonic()
        missed = 0
        while due_s <= until_s and self._sleep_until(due_s):
            try:
                self._tick(due_s, missed)
            except Exception as error:  # a tick that fails must not end the watch
                if self._failure != str(error):
                    self._failure = str(error)
                    log.exception("tick failed by a bug of disksla, please report it")
            interval_s = self.state.settings.sampling.interval_s
            due_s, missed = next_deadline(due_s, time.monotonic(), interval_s)
        self._diskstats.close()
        self._inflight.close()

    def _sleep_until(self, due_s: float) -> bool:
        """Sleep, in naps so that `stop` is heard soon; False if it was.

        Waiting for an event instead would cost a third more CPU time at each tick.
        """
        while not self._stopping.is_set():
            left_s = due_s - time.monotonic()
            if left_s <= 0:
                return True
            time.sleep(min(left_s, LONGEST_NAP_S))
        return False

    def _tick(self, due_s: float, missed_ticks: int) -> None:
        before = self.state
        state, told = self._take_posted(before)
        tick = self._listen(state, due_s, missed_ticks, told)
        self._on_tick(tick)
        self.state = advance(state, tick)
        self.ticked_at_s = tick.clocks.monotonic_s
        _log_changes(before, self.state)
        if self._failure is not None:
            log.info("sampling recovered")
            self._failure = None
        if tick.disks is None and _devices_moved(before, self.state):
            self.on_unknown_device()
        self.on_tick_done(tick)
        self._watch_wall_clock(tick.clocks)

    def _watch_wall_clock(self, clocks: Clocks) -> None:
        before_s, self._wall_ahead_s = self._wall_ahead_s, clocks.realtime_s - clocks.boottime_s
        if before_s is not None and abs(self._wall_ahead_s - before_s) > CLOCK_SET_S:
            step_s = round(self._wall_ahead_s - before_s)
            log.info("wall clock was set", extra=fields(step_seconds=step_s))
            self.on_clock_set()

    def _take_posted(self, state: State) -> tuple[State, Posted]:
        disks: tuple[Disk, ...] | None = None
        probes: list[ProbeResult] = []
        while not self._posted.empty():
            match self._posted.get():
                case Configuration() as new:
                    state = configure(state, new.settings, new.catalog)
                case ProbeResult() as outcome:
                    probes.append(outcome)
                case tuple() as disks:
                    pass
        return state, Posted(disks, tuple(probes))

    def _listen(self, state: State, due_s: float, missed_ticks: int, told: Posted) -> Tick:
        clocks = self._clocks()
        text: str | None = None
        problems = {}
        try:
            text = self._diskstats.read()
        except OSError as error:
            problems["diskstats"] = str(error)
        inflight, unread = self._inflight.read(state.active)
        host = None
        if wants_host(state):
            host, not_told = self._host.read()
            problems |= not_told
        return Tick(
            clocks,
            text,
            lateness_s=max(0.0, clocks.monotonic_s - due_s),
            missed_ticks=missed_ticks,
            inflight=inflight,
            disks=told.disks,
            host=host,
            problems=problems | unread,
            probes=told.probes,
        )


def _log_changes(before: State, after: State) -> None:
    was, now = before.sampler_stats.problems, after.sampler_stats.problems
    if was is now:
        return
    for where in now.keys() - was.keys():
        log.warning("cannot read source", extra=_source_fields(where, now[where]))
    for where in was.keys() - now.keys():
        log.info("source readable again", extra=_source_fields(where))


def _source_fields(where: str, problem: str | None = None) -> dict[str, dict[str, object]]:
    """Return the fields for `source` or `source:device`."""
    source, _, device = where.partition(":")
    return fields(source=source, device=device or None, err=problem)


def _devices_moved(before: State, after: State) -> bool:
    """Tell whether /proc/diskstats lists other devices than it did, or one began anew."""
    if before.sampler_stats.gaps["reset"] != after.sampler_stats.gaps["reset"]:
        return True
    if before.lines is None or after.lines is None or before.lines.heads is after.lines.heads:
        return False
    return set(before.lines.heads) != set(after.lines.heads)
