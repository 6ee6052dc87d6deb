"""Soak test: a day of ticks of a simulated machine through the real pipeline, in minutes.

Each tick is encoded as a line of a recording and decoded again, as by `disksla replay`. In
between, the test does what the daemon does: it scrapes, renders the status page, saves and reads
the state, and reloads the configuration. It measures the memory of this process after a warm-up.
"""

import gc
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from disksla.base.operating_system.state_file import StateFile
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.configuration.configuration import Configuration
from disksla.promise.configuration.matched import match_disks
from disksla.promise.configuration.settings_file import read_settings
from disksla.serve.http_server.http_protocol import RequestHead
from disksla.serve.metrics.render import read_build_info
from disksla.serve.pages.app import App, Controls
from disksla.state.history.history import History
from disksla.state.pipeline.advance import advance, configure
from disksla.state.pipeline.restore import PreviousRun
from disksla.state.pipeline.saved_state import decode as decode_saved
from disksla.state.pipeline.saved_state import encode as encode_saved
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State, to_saved_state
from disksla.state.pipeline.tick import Tick, decode_tick, encode
from disksla.verdict.throttling.verdict import VERDICTS, DetectorState
from faults.soak_machine import CONFIG, OTHER_CONFIG, SoakMachine

DAY_TICKS = 864_000
WARM_UP_SHARE = 0.1
CHECKPOINTS = 20
ALLOWED_BYTES = 2**20
COUNTED_S = 0.5
"""By how much the seconds of a disk may differ from the truth."""
YOUNG_SHARE = 1 / 7
"""The second daemon starts this share of the ticks before the end: on the last of seven days."""
SCRAPE_EVERY, SAVE_EVERY, RELOAD_EVERY, PAGE_EVERY = 150, 600, 3000, 900
"""In ticks: 15 s, a minute, five minutes, a minute and a half."""
_PAGE_BYTES = 4096


class MemoryUsage(NamedTuple):
    """Memory of the process after a number of ticks."""

    ticks: int
    elapsed_s: float
    resident_bytes: int
    allocated_blocks: int
    """Blocks of Python's allocator (sys.getallocatedblocks)."""
    objects: int
    """Objects that the garbage collector tracks."""


class Soak:
    """The daemon's work without its threads and its clock."""

    def __init__(self, directory: Path, seed: int) -> None:
        """Set the directory for configurations and saved state."""
        self._directory = directory
        self._catalog = load_catalog()
        self._configs = [directory / "one.yml", directory / "other.yml"]
        for config, text in zip(self._configs, (CONFIG, OTHER_CONFIG), strict=True):
            config.write_text(text, encoding="utf-8")
        self._file = StateFile(directory)
        self._machine = SoakMachine(seed)
        settings = read_settings(self._configs[0], self._catalog)
        self.state = State(Configuration(settings, self._catalog))
        self.history = History()
        self.young: Soak | None = None
        """A daemon that starts later and is given the same ticks."""
        self.began_s = 0.0
        """Monotonic time of its first tick."""
        self.wrong: list[str] = []
        """What differs from the truth, or between the daemons."""
        self._never_done: set[str] = set()
        """Disks with requests that look as if they were never done."""
        build_info = read_build_info()
        self._app = App(
            lambda: Snapshot(self.state),
            lambda: build_info,
            controls=Controls(lambda: True, lambda: True, lambda: None),
        )

    def run(self, ticks: int) -> Iterator[MemoryUsage]:
        """Run the ticks; yield the memory used at the end of the warm-up and at intervals.

        In the last of seven parts, a second daemon is given the same ticks, and in the half of it
        both must say the same.
        """
        started_s = time.monotonic()
        warm = int(ticks * WARM_UP_SHARE)
        every = max(1, (ticks - warm) // CHECKPOINTS)
        young_ticks = int(ticks * YOUNG_SHARE)
        begin = ticks - young_ticks
        for number in range(1, ticks + 1):
            if number == begin:
                yield measure_memory(number, time.monotonic() - started_s)
                self.young = Soak(self._directory, 0)
            self._tick(number)
            if self.young is not None and number > ticks - young_ticks // 2:
                self._compare(self.young, number)
            if number >= warm and number < begin and (number - warm) % every == 0:
                self._check(number)
                yield measure_memory(number, time.monotonic() - started_s)
        self._check(ticks)

    def _check(self, number: int) -> None:
        """Compare the counters and seconds of each disk with the truth."""
        for disk in Snapshot(self.state).disks:
            truth, name = self._machine.disks[disk.disk.name], disk.disk.name
            reads = 0 if disk.counters is None else disk.counters.reads
            if truth.is_listed and reads != truth.reads:
                self.wrong.append(f"tick {number}: {name}: {reads} reads of {truth.reads}")
            undecided = self.state.monitored[name].totals.undecided.windows
            assessed_s = sum(disk.verdict_totals.seconds) + sum(each.seconds for each in undecided)
            if abs(assessed_s - truth.assessed_s) > COUNTED_S:
                found = f"{assessed_s:.2f} s of {truth.assessed_s:.2f}"
                self.wrong.append(f"tick {number}: {name}: {found}")

    def _compare(self, young: "Soak", number: int) -> None:
        """Compare what both daemons say of each disk now."""
        for name, disk in self.state.monitored.items():
            other = young.state.monitored[name]
            # The machine simulates no time that stalled requests took. So they look as if they
            # were never done, which is known while the count of those in flight does not fall.
            if disk.never_done or other.never_done:
                self._never_done.add(name)
            if name in self._never_done:
                continue
            known = _since(disk.detector, other.detector, young.began_s)
            differ = [
                field
                for field in known.__struct_fields__
                if getattr(known, field) != getattr(other.detector, field)
            ]
            differ += [
                field
                for field in ("window_verdict", "decided")
                if getattr(disk, field) != getattr(other, field)
            ]
            if differ:
                found = f"the daemons differ in {', '.join(differ)}"
                self.wrong.append(f"tick {number}: {name}: {found}")

    def _tick(self, number: int) -> None:
        tick = self._machine.tick(self.state)
        self._advance(tick, number)
        if self.young is not None:
            if not self.young.state.inventory:
                inventory = tuple(disk.disk for disk in self._machine.disks.values())
                tick = msgspec.structs.replace(tick, disks=inventory)
            self.young._advance(tick, number)  # noqa: SLF001 -- another of this class

    def _advance(self, tick: Tick, number: int) -> None:
        """Do with a tick what the daemon does."""
        self.began_s = self.began_s or tick.clocks.monotonic_s
        self.state = advance(self.state, decode_tick(encode(tick), number))
        self.history = self.history.after(self.state)
        if number % SCRAPE_EVERY == 0:
            self._get("/metrics", "application/openmetrics-text" if number % 2 else "")
        if number % PAGE_EVERY == 0:
            self._get("/")
        if number % SAVE_EVERY == 0:
            self._save()
        if number % RELOAD_EVERY == 0:
            config = self._configs[number // RELOAD_EVERY % 2]
            configuration = Configuration(read_settings(config, self._catalog), self._catalog)
            matched = match_disks(configuration, self.state.inventory)
            self.state = configure(self.state, matched, self.state.clocks)

    def _get(self, path: str, accept: str = "") -> None:
        headers = {"accept": accept, "accept-encoding": "gzip"}
        response = self._app(RequestHead("GET", path, headers=headers))
        if response.status != 200 or not response.body:
            raise AssertionError(f"{path}: {response.status}")

    def _save(self) -> None:
        """Save the state and read it for disks that are added later, as after a restart."""
        saved = to_saved_state(self.state, "machine", "boot")
        if saved is None or self.state.clocks is None:
            return
        if not self._file.write(encode_saved(saved)):
            raise AssertionError(self._file.problem)
        clocks = self.state.clocks
        previous = self._file.read(lambda text: decode_saved(text, "machine", clocks))
        if previous is None:
            raise AssertionError(self._file.problem)
        run = PreviousRun(previous, "boot")
        self.state = msgspec.structs.replace(self.state, previous_run=run)


def _since(own: DetectorState, young: DetectorState, began_s: float) -> DetectorState:
    """Return what a detector knows, without what happened before the younger daemon began."""
    if young.ceiling is None:
        own = msgspec.structs.replace(own, ceiling=None)
    if own.busy_since_s is not None and own.busy_since_s < began_s:
        own = msgspec.structs.replace(own, busy_since_s=young.busy_since_s)
    return own


def measure_memory(ticks: int, elapsed_s: float) -> MemoryUsage:
    """Measure the memory of this process after a garbage collection."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    return MemoryUsage(ticks, elapsed_s, resident, sys.getallocatedblocks(), len(gc.get_objects()))


def growth_bytes(usages: list[MemoryUsage]) -> int:
    """Return the largest growth of resident memory since the end of the warm-up."""
    first, *later = (usage.resident_bytes for usage in usages)
    return max(0, *(resident - first for resident in later))


HEADER = "| ticks | hours | s | RSS MiB | blocks | objects |\n|--:|--:|--:|--:|--:|--:|"


def usage_row(usage: MemoryUsage) -> str:
    """Return the row of a table."""
    return (
        f"| {usage.ticks} | {usage.ticks / 36000:.1f} | {usage.elapsed_s:.0f} |"
        f" {usage.resident_bytes / 2**20:.2f} | {usage.allocated_blocks} | {usage.objects} |"
    )


def report(soak: Soak, usages: list[MemoryUsage]) -> str:
    """Return counts of verdicts, gaps and errors, and what is wrong."""
    snapshot = Snapshot(soak.state)
    totals = [disk.verdict_totals.seconds for disk in snapshot.disks]
    by_verdict: dict[str, float] = {
        verdict: sum(seconds)
        for verdict, seconds in zip(VERDICTS, zip(*totals, strict=True), strict=True)
    }
    lines = [
        "",
        f"verdicts of the disks at the end, s: {_list(by_verdict)}",
        f"gaps: {_list(snapshot.sampler.gaps)}; errors: {_list(snapshot.sampler.errors)}",
        f"RSS growth: {growth_bytes(usages) / 2**20:.2f} MiB",
        f"wrong: {len(soak.wrong)}",
        *soak.wrong[:20],
    ]
    return "\n".join(lines)


def _list(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {count:.0f}" for name, count in counts.items() if count)
