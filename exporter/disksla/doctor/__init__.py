"""`disksla doctor`: what must be right on a machine, examined by pure functions of its facts."""

from disksla.doctor.examine import examine
from disksla.doctor.facts import (
    AccessFacts,
    ClockFacts,
    ConfigurationFacts,
    DaemonFacts,
    FioFacts,
    KernelFacts,
    MachineFacts,
    Sample,
    StateFacts,
    UnitFacts,
    WebFacts,
)
from disksla.doctor.result import GROUPS, CheckResult, Status, counts, in_groups, worst
from disksla.doctor.unit import parse_unit

__all__ = [
    "GROUPS",
    "AccessFacts",
    "CheckResult",
    "ClockFacts",
    "ConfigurationFacts",
    "DaemonFacts",
    "FioFacts",
    "KernelFacts",
    "MachineFacts",
    "Sample",
    "StateFacts",
    "Status",
    "UnitFacts",
    "WebFacts",
    "counts",
    "examine",
    "in_groups",
    "parse_unit",
    "worst",
]
