"""State files as a previous daemon leaves them, with known credits, on a host of files."""

import time
from pathlib import Path

import msgspec

from disksla.base.operating_system.machine import read_boot_id, read_machine_id
from disksla.state.pipeline.sampler import read_clocks
from disksla.state.pipeline.saved_state import SavedCredits, SavedDisk, SavedState, encode
from disksla.verdict.interval.interval import Clocks
from support.daemon_process import PATIENCE_S, Daemon
from support.fake_host import CAPACITY, FakeMachine
from support.waiting import eventually

LEVEL = 8000.0
"""Saved level of credits, exactly known. An idle disk gains as many only in 27 s."""
BASELINE_IOPS = 300.0
_WINDOW_S = 0.1
"""The upper bound is ahead by what the baseline adds in one window."""


class Elapsed:
    """Time since the object was made, to bound what a disk gained since then."""

    def __init__(self) -> None:
        self._started_s = time.monotonic()

    def gain(self) -> float:
        """Return the most credits that the baseline can have added, and one window more."""
        return BASELINE_IOPS * (time.monotonic() - self._started_s + _WINDOW_S)


def saved_state(machine: FakeMachine, /, **changes: object) -> SavedState:
    """Return a state that was saved just now, with some fields changed."""
    credits_ = SavedCredits(CAPACITY, LEVEL, LEVEL, LEVEL, 1.0)
    state = SavedState(
        read_machine_id(),
        read_boot_id(machine.paths),
        read_clocks(),
        {"serial:vol-1": SavedDisk("custom", {"iops": credits_})},
    )
    return msgspec.structs.replace(state, **changes)


def shifted_clocks(seconds: float) -> Clocks:
    """Return the clocks of now, all shifted by some seconds."""
    return Clocks(*(clock + seconds for clock in msgspec.structs.astuple(read_clocks())))


def write_state(machine: FakeMachine, state: SavedState) -> Path:
    """Write a state to the file that the next daemon reads."""
    machine.state.mkdir(exist_ok=True)
    file = machine.state / "state.json"
    file.write_bytes(encode(state))
    return file


def first_bounds(daemon: Daemon) -> tuple[float, float]:
    """Return the lower and upper bound of the credits, from the first scrape that has them."""
    samples: dict[str, float] = {}

    def are_published() -> bool:
        samples.update(daemon.samples(device="vdx"))
        return "disksla_burst_credits" in samples

    assert eventually(are_published, PATIENCE_S)
    return (
        samples["disksla_burst_credits_lower_bound"],
        samples["disksla_burst_credits_upper_bound"],
    )
