"""A day of a restless machine in minutes: every tick of it through the real pipeline, as replay.

Each tick is written as a line of a recording and read again, as `disksla replay` does; beside it
goes on what the daemon does: scrapes, the status page, saving and reading the state, reloads.
What is measured is the memory of this process, once it has been warmed up.
"""

import gc
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from disksla.config.settings_file import read_settings
from disksla.limits.catalog import load_catalog
from disksla.metrics.build_info import read_build_info
from disksla.pipeline.advance import advance, configure
from disksla.pipeline.recording import decode_tick, encode
from disksla.pipeline.restore import PreviousRun
from disksla.pipeline.saved_state import decode as decode_saved
from disksla.pipeline.saved_state import encode as encode_saved
from disksla.pipeline.snapshot import take_snapshot
from disksla.pipeline.state import State, to_saved_state
from disksla.system.state_file import StateFile
from disksla.verdict.verdict import VERDICTS
from disksla.web.app import App
from disksla.web.http import Request
from faults.restless import CONFIG, OTHER_CONFIG, RestlessMachine

DAY_TICKS = 864_000
WARM_UP_SHARE = 0.1
CHECKPOINTS = 20
ALLOWED_BYTES = 2 * 2**20
SCRAPE_EVERY, SAVE_EVERY, RELOAD_EVERY, PAGE_EVERY = 150, 600, 3000, 900
"""In ticks: 15 s, a minute, five minutes, a minute and a half."""
_PAGE_BYTES = 4096


class Weight(NamedTuple):
    """What the process weighs after so many ticks."""

    ticks: int
    elapsed_s: float
    resident_bytes: int
    allocated_blocks: int
    """Of Python's allocator (sys.getallocatedblocks)."""
    objects: int
    """That the collector follows."""


class Soak:
    """The daemon's work without its threads and its clock."""

    def __init__(self, directory: Path, seed: int) -> None:
        """Take a directory for a configuration and a state."""
        self._directory = directory
        self._catalog = load_catalog()
        self._configs = [directory / "one.yml", directory / "other.yml"]
        for config, text in zip(self._configs, (CONFIG, OTHER_CONFIG), strict=True):
            config.write_text(text, encoding="utf-8")
        self._file = StateFile(directory)
        self._machine = RestlessMachine(seed)
        self.state = State(read_settings(self._configs[0], self._catalog), self._catalog)
        about = read_build_info()
        self._site = App(
            lambda: take_snapshot(self.state),
            lambda: about,
            healthy=lambda: True,
            ready=lambda: True,
            reload=lambda: None,
        )

    def run(self, ticks: int) -> Iterator[Weight]:
        """Take so many ticks; give the weight now and then, first at the end of the warm-up."""
        begun_s = time.monotonic()
        warm = int(ticks * WARM_UP_SHARE)
        every = max(1, (ticks - warm) // CHECKPOINTS)
        for number in range(1, ticks + 1):
            self._tick(number)
            if number >= warm and (number - warm) % every == 0:
                yield weigh(number, time.monotonic() - begun_s)

    def _tick(self, number: int) -> None:
        line = encode(self._machine.tick(self.state))
        self.state = advance(self.state, decode_tick(line, number))
        if number % SCRAPE_EVERY == 0:
            self._get("/metrics", "application/openmetrics-text" if number % 2 else "")
        if number % PAGE_EVERY == 0:
            self._get("/")
        if number % SAVE_EVERY == 0:
            self._save()
        if number % RELOAD_EVERY == 0:
            config = self._configs[number // RELOAD_EVERY % 2]
            self.state = configure(self.state, read_settings(config, self._catalog))

    def _get(self, path: str, accept: str = "") -> None:
        headers = {"accept": accept, "accept-encoding": "gzip"}
        response = self._site(Request("GET", path, headers=headers))
        if response.status != 200 or not response.body:
            raise AssertionError(f"{path}: {response.status}")

    def _save(self) -> None:
        """Save, and let disks that come later remember it, as after a restart."""
        saved = to_saved_state(self.state, "machine", "boot")
        if saved is None or self.state.clocks is None:
            return
        if not self._file.write(encode_saved(saved)):
            raise AssertionError(self._file.problem)
        clocks = self.state.clocks
        read = self._file.read(lambda text: decode_saved(text, "machine", clocks))
        if read is None:
            raise AssertionError(self._file.problem)
        self.state = msgspec.structs.replace(self.state, previous_run=PreviousRun(read, "boot"))


def weigh(ticks: int, elapsed_s: float) -> Weight:
    """Weigh this process, once what is garbage is gone."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    return Weight(ticks, elapsed_s, resident, sys.getallocatedblocks(), len(gc.get_objects()))


def growth_bytes(weights: list[Weight]) -> int:
    """Give by how much the process was ever heavier than when it was warm."""
    first, *later = (weight.resident_bytes for weight in weights)
    return max(0, *(resident - first for resident in later))


def report(soak: Soak, weights: list[Weight]) -> str:
    """Give the table, and what the machine has been through."""
    lines = ["| ticks | hours | s | RSS MiB | blocks | objects |", "|--:|--:|--:|--:|--:|--:|"]
    lines += [
        f"| {weight.ticks} | {weight.ticks / 36000:.1f} | {weight.elapsed_s:.0f} |"
        f" {weight.resident_bytes / 2**20:.2f} | {weight.allocated_blocks} | {weight.objects} |"
        for weight in weights
    ]
    view = take_snapshot(soak.state)
    ledgers = [disk.verdict_totals.seconds for disk in view.disks]
    by_verdict: dict[str, float] = {
        verdict: sum(seconds)
        for verdict, seconds in zip(VERDICTS, zip(*ledgers, strict=True), strict=True)
    }
    lines += [
        "",
        f"verdicts of the disks at the end, s: {_told(by_verdict)}",
        f"gaps: {_told(view.sampler.gaps)}; errors: {_told(view.sampler.errors)}",
        f"RSS grew by {growth_bytes(weights) / 2**20:.2f} MiB at most",
    ]
    return "\n".join(lines)


def _told(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {count:.0f}" for name, count in counts.items() if count)
