"""Batches: which ticks are read first and processed together later.

A tick takes three times as long after a sleep as right after another one, because the caches of
the CPU have lost its code and data. Ticks of a batch are read in time, and processed in order.
"""

from collections.abc import Sequence

from disksla.pipeline.state import State
from disksla.pipeline.tick import Tick

LONGEST_S = 0.4
"""Longest batch, which is how old a published state may be."""


def is_complete(state: State, ticks: Sequence[Tick]) -> bool:
    """Return whether the ticks that were read since `state` have to be processed now.

    Those of a load may wait. At once: other block devices, and results of probes; what begins
    after all disks were idle; and every tick while a disk is at its limit, because then the state
    decides what is read at the next tick.
    """
    tick = ticks[-1]
    if (len(ticks) + 0.5) * state.settings.sampling.interval_s > LONGEST_S:
        return True
    if tick.disks is not None or tick.probes or tick.host is not None or tick.close:
        return True
    return not state.active and not is_idle(state, tick.diskstats)


def is_idle(state: State, diskstats: str | None) -> bool:
    """Return whether no disk did anything since `state`, by the text of /proc/diskstats."""
    return not state.active and state.lines is not None and diskstats == state.lines.text
