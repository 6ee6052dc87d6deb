"""An example of `disksla report`: a day of a disk with each kind of trouble."""

from collections.abc import Sequence

from disksla.measure.prometheus import Selection, find_disks
from disksla.measure.prometheus import Server as Address
from disksla.measure.prometheus.period import Period
from disksla.measure.prometheus.query import Series
from disksla.measure.prometheus.step import CounterName
from disksla.measure.report import Report, ReportCriteria, disk_report, read_history, report_of
from disksla.promise.catalogue.catalog import load_catalog
from support.exchanges import answered
from support.report_series import INFO, START_S, DiskSeries, Server, gauge

CATALOG = load_catalog()
ADDRESS = Address("http://prometheus:9090")
ALL = Selection()
DAY = Period(START_S, START_S + 86_400)


def reads(disk: DiskSeries, per_second: float, depth: float) -> None:
    """Count a minute of reads of 4 KiB before the next scrape."""
    disk.counts(CounterName.READS, 60 * per_second)
    disk.counts(CounterName.READ_BYTES, 60 * per_second * 4096)
    disk.counts(CounterName.READ_SECONDS, 60 * depth)
    disk.counts(CounterName.LOAD_SUM, 600 * per_second / 1000)
    disk.counts(CounterName.LOAD_COUNT, 600)


def a_day(info: dict[str, str] = INFO) -> DiskSeries:
    """Return a day of a disk with each kind of trouble."""
    disk = DiskSeries(info)
    disk.gauges["disksla_limit_latency_seconds"] = 0.003
    disk.gauges["disksla_verification_timestamp_seconds"] = START_S - 3600.0
    for name in ("READS", "READ_BYTES", "READ_SECONDS", "LOAD_SUM", "LOAD_COUNT"):
        disk.counts(CounterName[name], 0.0)
    disk.counts(CounterName.IOWAIT_SECONDS, 0.0)
    disk.counts(CounterName.WAIT_SECONDS, 0.0)
    disk.scrape()
    disk.does(120)
    for _ in range(30):
        reads(disk, 600.0, 32.0)
        disk.does(below=50.0, met=5.0)
    disk.does(60, unproven=30.0)
    for _ in range(20):
        reads(disk, 1000.0, 32.0)
        disk.counts(CounterName.THROTTLED_SECONDS, 30.0, "iops")
        disk.counts(CounterName.THROTTLED_SECONDS, 10.0, "machine_iops")
        disk.counts(CounterName.IOWAIT_SECONDS, 12.0)
        disk.counts(CounterName.WAIT_SECONDS, 1200.0)
        disk.does(throttled=40.0)
    disk.does(60)
    disk.now_s += 1800
    disk.restart()
    disk.does(3)
    disk.gauges["disksla_limit_read_iops"] = 2000.0
    disk.does(60)
    disk.does(stalled=30.0)
    disk.does(1000)
    disk.now_s = START_S + 86_400
    disk.does(3, below=60.0)  # after the period
    return disk


def extra() -> list[Series]:
    """Return the evidence beside the verdicts."""
    times = [START_S + 600.0 * index for index in range(144)]
    return [
        gauge("disksla_mount_info", [(START_S + 60.0, 1.0)], mountpoint="/var/lib/postgresql"),
        gauge("disksla_burst_credits", [(t, 7.0) for t in times], resource="iops"),
        gauge("disksla_burst_credits_lower_bound", [(t, 5.0) for t in times], resource="iops"),
        gauge("disksla_burst_credits_upper_bound", [(t, 9.0) for t in times], resource="iops"),
        gauge("disksla_burst_credits_capacity", [(t, 1000.0) for t in times], resource="iops"),
        gauge("disksla_probe_read_latency_seconds_count", [(t, t / 60) for t in times]),
        gauge("disksla_probe_read_latency_seconds_sum", [(t, t / 60 * 0.004) for t in times]),
        gauge("disksla_verification_passed", [(t, 0.0) for t in times[::6]], test="randread-4k"),
        gauge("disksla_verification_ratio", [(t, 0.61) for t in times[::6]], test="randread-4k"),
        gauge(
            "disksla_terms_last_refresh_timestamp_seconds",
            [(t, t - 1200.0) for t in times],
            source="api",
        ),
        gauge("disksla_gaps_total", [(t, t // 3600) for t in times], reason="late"),
    ]


def reported(
    series: Sequence[Series],
    period: Period = DAY,
    selection: Selection = ALL,
    objective_share: float | None = None,
) -> Report:
    """Return the report of what a server has."""
    server = Server(series)
    basis = ReportCriteria(period, CATALOG, objective_share)
    found, _ = answered(find_disks(ADDRESS, selection, period), server)
    disks = []
    for name, mount_points in found:
        history, _ = answered(read_history(ADDRESS, name, mount_points, period), server)
        disks.append(disk_report(history, basis))
    return report_of(disks, period, selection.patterns, "0.0.0")
