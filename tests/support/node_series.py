"""Series of node_exporter as Prometheus has them, of disks that do so much in each interval."""

from collections import defaultdict

from disksla.measure.prometheus.query import Series
from support.report_series import START_S

_COUNTERS = {
    "reads": "node_disk_reads_completed_total",
    "writes": "node_disk_writes_completed_total",
    "read_bytes": "node_disk_read_bytes_total",
    "written_bytes": "node_disk_written_bytes_total",
    "read_s": "node_disk_read_time_seconds_total",
    "write_s": "node_disk_write_time_seconds_total",
    "weighted_s": "node_disk_io_time_weighted_seconds_total",
    "flushes": "node_disk_flush_requests_total",
}


class NodeDisk:
    """One disk of a machine that is scraped at equal steps."""

    def __init__(
        self, device: str, every_s: float = 15.0, instance: str = "db-1:9100", **info: str
    ) -> None:
        self.now_s = float(START_S)
        self._every_s = every_s
        self._labels = {"job": "node", "instance": instance, "device": device}
        self._info = info
        self._counters = dict.fromkeys(_COUNTERS, 0.0)
        self._values: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
        self._scrape()

    def does(self, intervals: int = 1, inflight: float = 4.0, **per_second: float) -> "NodeDisk":
        """Do so much a second; requests are of 4 KiB unless bytes are given."""
        iops = per_second.get("reads", 0.0) + per_second.get("writes", 0.0)
        per_second.setdefault("read_bytes", 4096 * per_second.get("reads", 0.0))
        per_second.setdefault("written_bytes", 4096 * per_second.get("writes", 0.0))
        per_second["weighted_s"] = inflight if iops else 0.0
        for name in ("read", "write"):
            share = per_second.get(f"{name}s", 0.0) / iops if iops else 0.0
            per_second[f"{name}_s"] = inflight * share
        for _ in range(intervals):
            self.now_s += self._every_s
            for name, rate in per_second.items():
                self._counters[name] += rate * self._every_s
            self._scrape()
        return self

    def restarts(self) -> None:
        """Start all counters at zero, as after a reboot."""
        self._counters = dict.fromkeys(_COUNTERS, 0.0)

    def _scrape(self) -> None:
        for name, value in self._counters.items():
            self._values[_COUNTERS[name]].append((self.now_s, repr(value)))
        self._values["node_disk_io_now"].append((self.now_s, "0"))

    @property
    def series(self) -> list[Series]:
        """All series; the info, too, if the disk was made with something to say."""
        found = [
            Series({"__name__": name, **self._labels}, values)
            for name, values in self._values.items()
        ]
        if self._info:
            info = {"__name__": "node_disk_info", **self._labels, **self._info}
            found.append(Series(info, [(START_S, "1")]))
        return found
