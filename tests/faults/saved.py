"""A saved state as a daemon on a machine made of files leaves it, with credits that were known."""

from pathlib import Path

import msgspec

from disksla.pipeline.sampler import read_clocks
from disksla.pipeline.saved_state import SavedCredits, SavedDisk, SavedState, encode
from disksla.system.machine_id import read_boot_id, read_machine_id
from disksla.verdict.interval import Clocks
from support.daemon_process import PATIENCE_S, Daemon
from support.fake_host import CAPACITY, FakeMachine
from support.loop_device import eventually

LEVEL = 1000.0
"""Credits that were surely there."""
REFILL_IOPS = 300.0
A_WINDOW_OR_TWO_S = 0.2
"""By which the upper bound is ahead: the bucket is filled once per window."""


def state_of(made: FakeMachine, **told: object) -> SavedState:
    """Give a state that was saved just now."""
    credits_ = SavedCredits(CAPACITY, LEVEL, LEVEL, LEVEL, 1.0)
    state = SavedState(
        read_machine_id(),
        read_boot_id(made.paths),
        read_clocks(),
        {"serial:vol-1": SavedDisk("configuration", {"iops": credits_})},
    )
    return msgspec.structs.replace(state, **told)


def later(seconds: float) -> Clocks:
    """Give the clocks so much later than now."""
    return Clocks(*(clock + seconds for clock in msgspec.structs.astuple(read_clocks())))


def leave(machine: FakeMachine, state: SavedState) -> Path:
    """Write a state where the next daemon looks for it."""
    machine.state.mkdir(exist_ok=True)
    file = machine.state / "state.json"
    file.write_bytes(encode(state))
    return file


def bounds(daemon: Daemon) -> tuple[float, float]:
    """Give the bounds of the credits, once there are any."""
    found: dict[str, float] = {}

    def are_there() -> bool:
        found.update(daemon.samples(device="vdx"))
        return "disksla_burst_credits" in found

    assert eventually(are_there, PATIENCE_S)
    return (
        found["disksla_burst_credits_lower_bound"],
        found["disksla_burst_credits_upper_bound"],
    )
