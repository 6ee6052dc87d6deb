"""The page that `disksla limits --textfile` writes: what disks were sold as, without their I/O.

node_exporter publishes it on hosts without a daemon, and rules (grafana/node) compare it with the
counters of node_exporter. Rows that the page of the daemon has are the same here.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from disksla.base.text import label_value
from disksla.promise.catalogue import Charge, Limits
from disksla.serve.metrics.collector import families_of
from disksla.serve.metrics.disk_metrics import DISK_METRICS
from disksla.serve.metrics.machine_metrics import MACHINE_METRICS
from disksla.serve.metrics.metric import Labelled, Metric, Subject
from disksla.state.pipeline import DiskSnapshot, GroupSnapshot

UNITS = ("read", "write", "read_byte", "written_byte")
"""What a charge is for, in the order of its fields."""
_OF_DISKS = re.compile(r"disksla_(disk_info|mount_info|(burst_)?limit_\w+)")
_OF_MACHINES = re.compile(r"disksla_machine_(info|disk_info|(burst_)?limit_\w+)")


def _charges(limits: Limits) -> Labelled | None:
    """Return the seconds of a limit by limit, number of the charge, and unit; without zeros."""
    return {
        (charge.limit, str(number), unit): cost_s
        for number, charge in enumerate(limits.throttled_charges)
        for unit, cost_s in zip(UNITS, _costs_s(charge), strict=True)
        if cost_s
    } or None


def _costs_s(charge: Charge) -> tuple[float, ...]:
    return msgspec.structs.astuple(charge)[1:]


_CHARGE = (
    "Seconds of a limit that one unit uses at the rates that are enforced, for all laws of cost."
    " unit is read, write, read_byte or written_byte. Multiply by the rates and add up the units:"
    " that is the load, 1 at the limit; of the charges to a limit, the highest load counts."
    " Absent without a limit."
)
_EXCESS = "The most by which a steady rate is above the limit and still that of the limiter."

LIMIT_METRICS: tuple[Metric[DiskSnapshot], ...] = (
    *(each for each in DISK_METRICS if _OF_DISKS.fullmatch(each.name)),
    Metric(
        "disksla_limit_charge_seconds",
        _CHARGE,
        lambda snapshot: _charges(snapshot.assignment.limits),
        ("limit", "charge", "unit"),
    ),
    Metric(
        "disksla_limit_excess_ratio",
        _EXCESS,
        lambda snapshot: snapshot.assignment.limits.limiter.excess_ratio,
    ),
)
MACHINE_LIMIT_METRICS: tuple[Metric[GroupSnapshot], ...] = (
    *(each for each in MACHINE_METRICS if _OF_MACHINES.fullmatch(each.name)),
    Metric(
        "disksla_machine_limit_charge_seconds",
        _CHARGE,
        lambda group: _charges(group.shared.limits),
        ("limit", "charge", "unit"),
    ),
    Metric(
        "disksla_machine_limit_excess_ratio",
        _EXCESS,
        lambda group: group.shared.limits.limiter.excess_ratio,
    ),
)


class _Limits(Collector):
    """Yields the families of disks and groups."""

    def __init__(self, disks: Iterable[DiskSnapshot], groups: Iterable[GroupSnapshot]) -> None:
        self._disks, self._groups = disks, groups

    def collect(self) -> Iterator[Family]:
        yield from _labelled(LIMIT_METRICS, "device", ((d.disk.name, d) for d in self._disks))
        yield from _labelled(
            MACHINE_LIMIT_METRICS, "group", ((group.shared.name, group) for group in self._groups)
        )


def _labelled(
    metrics: Iterable[Metric[Subject]], label: str, subjects: Iterable[tuple[str, Subject]]
) -> Iterator[Family]:
    named = [({label: label_value(name)}, subject) for name, subject in subjects]
    return families_of(metrics, named)


def limits_page(disks: Iterable[DiskSnapshot], groups: Iterable[GroupSnapshot]) -> bytes:
    """Return the page of these disks and groups in the text format of Prometheus."""
    return generate_latest(_Limits(disks, groups))
