"""What each disk did in the last hour, and the sentences that say what that means.

- `slot`: what a disk did in a second or a minute, as the difference of two totals.
- `packed_slots`: the last slots of a disk, packed.
- `history`: the last five minutes of each disk by seconds, and the last hour by minutes. The
  daemon updates it once a second.
- `summary`: slots by verdict and limit.
- `sentences`: the answer to "is it me or the disk?"; `who`: who used it.
- `condition`: who or what makes requests wait, in the words that a person reads first.
- `past`: the history of the daemon, as pages and documents show it.
"""

from disksla.history.condition import (
    SHOWN_OF,
    Condition,
    ConditionSeconds,
    PeriodSeconds,
    describe_condition,
    describe_load,
    headline,
    present_condition,
    shown_load,
    watched_period,
)
from disksla.history.history import History, history_of
from disksla.history.past import RECENT_S, HistoryView, seconds_of
from disksla.history.rates_text import describe_rates, read_and_write
from disksla.history.sentences import MachineLimit, describe_machine, explain, explain_writes
from disksla.history.slot import COLUMNS, Slot, columns_of, joined
from disksla.history.who import ConsumerShare
