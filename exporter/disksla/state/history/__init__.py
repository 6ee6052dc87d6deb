"""What each disk did in the last hour.

- `slot`: what a disk did in a second or a minute, as the difference of two totals.
- `packed_slots`: the last slots of a disk, packed.
- `history`: the last five minutes of each disk by seconds, and the last hour by minutes. The
  daemon updates it once a second.
"""

from disksla.state.history.history import DiskHistory, History, history_of
from disksla.state.history.slot import COLUMNS, Slot, columns_of, total_slot
