"""Statistics of the sampler itself: ticks, lateness, gaps, and errors by source."""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from disksla.base.histogram import Histogram
from disksla.base.operating_system import SourceHealth
from disksla.verdict.interval import GAP_REASONS

LATENESS_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)

SOURCES = (
    "diskstats", "disks", "inflight", "iowait", "pressure", "data_writes", "close_samples",
    "mountstats", "sampler",
)  # fmt: skip
"""Sources of data: /proc/diskstats; sysfs and the udev database; sysfs `inflight`; /proc/stat;
/proc/pressure/io; performance events; sysfs `stat`; /proc/self/mountstats; and ticks of the
sampler, which fail by a bug only."""
HOST_SOURCES = ("iowait", "pressure")  # sources that are not read at every tick


class SamplerStats(msgspec.Struct, frozen=True):
    """Totals of the sampler since it started."""

    ticks: int = 0
    missed_ticks: int = 0
    lateness_s: Histogram = Histogram.empty(LATENESS_BOUNDS_S)
    gaps: Mapping[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(GAP_REASONS, 0))
    errors: Mapping[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(SOURCES, 0))
    problems: Mapping[str, str] = {}
    """Sources that cannot be read now: `source` or `source:device` -> error message."""
    parts: Mapping[str, bool] = {}  # whether other parts of the daemon work

    def ticked(self, lateness_s: float, missed_ticks: int) -> "SamplerStats":
        """Add one tick: its delay after the deadline, and the deadlines missed before it."""
        return msgspec.structs.replace(
            self,
            ticks=self.ticks + 1,
            missed_ticks=self.missed_ticks + missed_ticks,
            lateness_s=self.lateness_s.observe(lateness_s),
        )

    def with_gap(self, reason: str) -> "SamplerStats":
        """Add one gap."""
        return msgspec.structs.replace(
            self, gaps={**self.gaps, reason: self.gaps.get(reason, 0) + 1}
        )

    def with_problems(
        self, problems: Mapping[str, str], not_read: Collection[str] = ()
    ) -> "SamplerStats":
        """Set the problems of this tick, and count each as an error of its source.

        Problems of sources that were not read at this tick stay as they were.
        """
        if not problems and not self.problems:
            return self
        errors = dict(self.errors)
        for key in problems:
            source = _source_of(key)
            errors[source] = errors.get(source, 0) + 1
        kept = {
            key: message for key, message in self.problems.items() if _source_of(key) in not_read
        }
        return msgspec.structs.replace(self, errors=errors, problems={**kept, **problems})

    @property
    def collectors(self) -> dict[str, bool]:
        """Whether each source could be read at the last attempt, and each part works."""
        failed = {_source_of(key) for key in self.problems}
        return {source: source not in failed for source in SOURCES} | dict(self.parts)

    def with_health(self, sources: Iterable[SourceHealth]) -> "SamplerStats":
        """Add the health of other parts of the daemon."""
        errors, parts, problems = dict(self.errors), dict(self.parts), dict(self.problems)
        for health in sources:
            errors[health.source] = health.errors
            if health.works is not None:
                parts[health.source] = health.works
            if health.problem is not None:
                problems[health.source] = health.problem
        return msgspec.structs.replace(self, errors=errors, parts=parts, problems=problems)


def _source_of(key: str) -> str:
    """Return the source of a key of `problems`."""
    return key.partition(":")[0]
