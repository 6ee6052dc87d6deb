"""What each disk did in the last hour, and the sentences that say what that means.

- `slot`: what a disk did in a second or a minute, as the difference of two totals.
- `packed_slots`: the last slots of a disk, packed.
- `history`: the last five minutes of each disk by seconds, and the last hour by minutes. The
  daemon updates it once a second; it takes at most `BYTES_PER_DISK` for a disk.
- `summary`: slots, or the windows of a recording, by verdict and limit.
- `sentences`: the answer to "is it me or the disk?".
- `provider`: what the provider counts of a disk.
"""

from disksla.history.history import BYTES_PER_DISK, DiskHistory, History
from disksla.history.provider import explain_provider
from disksla.history.sentences import (
    MachineLimit,
    describe_machine,
    explain,
    explain_writes,
    headline,
)
from disksla.history.slot import Slot, joined
from disksla.history.summary import Summary, summary_of_records, summary_of_slots

__all__ = [
    "BYTES_PER_DISK",
    "DiskHistory",
    "History",
    "MachineLimit",
    "Slot",
    "Summary",
    "describe_machine",
    "explain",
    "explain_provider",
    "explain_writes",
    "headline",
    "joined",
    "summary_of_records",
    "summary_of_slots",
]
