"""What a person reads of a disk, as words and sentences.

- `condition`: who or what makes requests wait, in the words that a person reads first.
- `shown`: what strips and charts show, in words and colours.
- `summary`: the history of a disk by verdict and limit.
- `sentences`: the answer to "is it me or the disk?"; `who`: who used it.
- `past`: the history of the daemon, as pages and documents show it.
"""

from disksla.tell.explanation.condition import (
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
from disksla.tell.explanation.past import RECENT_S, HistoryView, seconds_of
from disksla.tell.explanation.rates_text import describe_rates, read_and_write
from disksla.tell.explanation.sentences import (
    MachineLimit,
    describe_machine,
    explain,
    explain_writes,
)
from disksla.tell.explanation.shown import (
    PROBLEMS,
    SHOWN,
    SHOWN_WORDS,
    VERDICT_COLOURS,
    VERDICT_STYLE,
    Shown,
    shown_seconds,
)
from disksla.tell.explanation.who import ConsumerShare
