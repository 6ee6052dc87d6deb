"""The page that `disksla limits --textfile` writes: what disks were sold as, without their I/O.

node_exporter publishes it on hosts without a daemon, and grafana/rules/node_exporter.libsonnet
compares it with its counters. Rows that the page of the daemon has are the same here.
"""

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from disksla.base.text import label_value
from disksla.promise.catalogue import Limits
from disksla.serve.metrics.collector import families_of
from disksla.serve.metrics.disk_metrics import DISK_METRICS
from disksla.serve.metrics.machine_metrics import MACHINE_METRICS
from disksla.serve.metrics.metric import Labelled, Metric, Subject
from disksla.state.pipeline import DiskSnapshot, GroupSnapshot

_UNITS = ("read", "write", "read_byte", "written_byte")
"""What a charge is for, in the order of its fields."""
_OF_DISKS = re.compile(r"disksla_(disk_info|mount_info|(burst_)?limit_\w+)")
_OF_MACHINES = re.compile(r"disksla_machine_(info|disk_info|(burst_)?limit_\w+)")


def _charges(limits: Limits) -> Labelled | None:
    """Return the seconds of a limit by limit, number of the charge, and unit; without zeros."""
    return {
        (charge.limit, str(number), unit): cost_s
        for number, charge in enumerate(limits.throttled_charges)
        for unit, cost_s in zip(_UNITS, msgspec.structs.astuple(charge)[1:], strict=True)
        if cost_s
    } or None


def _law_rows(name: str, limits_of: Callable[[Subject], Limits]) -> tuple[Metric[Subject], ...]:
    """Return the rows of how a limit is used, which no page of a daemon has."""
    return (
        Metric(
            f"disksla_{name}_charge_seconds",
            "Seconds of a limit that a unit uses, at the rates that are enforced. unit is read,"
            " write, read_byte or written_byte. Times the rates, and added up over the units, it"
            " is the load, 1 at the limit; of the charges to a limit, the highest load counts.",
            lambda subject: _charges(limits_of(subject)),
            ("limit", "charge", "unit"),
        ),
        Metric(
            f"disksla_{name}_excess_ratio",
            "The most by which a steady rate is above the limit and still that of the limiter.",
            lambda subject: limits_of(subject).limiter.excess_ratio,
        ),
    )


LAW_OF_DISKS: tuple[Metric[DiskSnapshot], ...] = _law_rows(
    "limit", lambda disk: disk.assignment.limits
)
_LAW_OF_GROUPS: tuple[Metric[GroupSnapshot], ...] = _law_rows(
    "machine_limit", lambda group: group.shared.limits
)
_DISK_ROWS = (*(each for each in DISK_METRICS if _OF_DISKS.fullmatch(each.name)), *LAW_OF_DISKS)
_GROUP_ROWS = (
    *(each for each in MACHINE_METRICS if _OF_MACHINES.fullmatch(each.name)),
    *_LAW_OF_GROUPS,
)


class _Limits(Collector):
    """Yields the families of disks and groups."""

    def __init__(self, disks: Iterable[DiskSnapshot], groups: Iterable[GroupSnapshot]) -> None:
        self._disks, self._groups = disks, groups

    def collect(self) -> Iterator[Family]:
        disks = [({"device": label_value(disk.disk.name)}, disk) for disk in self._disks]
        groups = [({"group": label_value(group.shared.name)}, group) for group in self._groups]
        yield from families_of(_DISK_ROWS, disks)
        yield from families_of(_GROUP_ROWS, groups)


def limits_page(disks: Iterable[DiskSnapshot], groups: Iterable[GroupSnapshot]) -> bytes:
    """Return the page of these disks and groups in the text format of Prometheus."""
    return generate_latest(_Limits(disks, groups))
