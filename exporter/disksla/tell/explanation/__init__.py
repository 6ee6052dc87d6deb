"""What a person reads of a disk, as words and sentences.

- `words`: the words and colours of conditions, strips and charts.
- `condition`: who or what makes requests wait, and what to do about it.
- `summary`: the history of a disk by verdict and limit.
- `sentences`: the answer to "is it me or the disk?"; `who`: who used it.
- `arrays`: what several disks are promised that are used as one.
- `past`: the history of the daemon and its events, as pages and documents show them.
"""

from disksla.tell.explanation.arrays import array_name, explain_array
from disksla.tell.explanation.condition import (
    ConditionSeconds,
    PeriodSeconds,
    describe_condition,
    describe_load,
    headline,
    present_condition,
    shown_load,
    watched_period,
    without_terms,
)
from disksla.tell.explanation.past import RECENT_S, HistoryView, seconds_of
from disksla.tell.explanation.sentences import (
    MachineLimit,
    describe_machine,
    explain,
    explain_writes,
)
from disksla.tell.explanation.who import ConsumerShare
from disksla.tell.explanation.words import (
    CONDITION_TEXT,
    PROBLEMS,
    SHOWN,
    SHOWN_TEXT,
    VERDICT_STYLE,
    Condition,
    Shown,
    describe_rates,
    read_and_write,
    shown_seconds,
)
