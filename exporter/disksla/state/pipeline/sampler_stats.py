"""Statistics of the sampler itself: ticks, lateness, gaps, and errors by source."""

from collections.abc import Collection, Mapping

import msgspec

from disksla.base.histogram import Histogram
from disksla.verdict.interval import GAP_REASONS

LATENESS_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)

SOURCES = (
    "diskstats", "disks", "inflight", "iowait", "pressure", "data_writes", "close_samples",
    "mountstats", "sampler",
)  # fmt: skip
"""Sources of data: /proc/diskstats; sysfs and the udev database; sysfs `inflight`; /proc/stat;
/proc/pressure/io; performance events; sysfs `stat`; /proc/self/mountstats; and ticks of the
sampler, which fail by a bug only."""
HOST_SOURCES = ("iowait", "pressure")
"""Sources that are not read at every tick."""


class SamplerStats(msgspec.Struct, frozen=True):
    """Totals of the sampler since it started."""

    ticks: int = 0
    missed_ticks: int = 0
    lateness_s: Histogram = Histogram.empty(LATENESS_BOUNDS_S)
    gaps: Mapping[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(GAP_REASONS, 0))
    errors: Mapping[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(SOURCES, 0))
    problems: Mapping[str, str] = {}
    """Sources that cannot be read now: `source` or `source:device` -> error message."""

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

    def works(self, source: str) -> bool:
        """Return whether a source could be read at the last attempt."""
        return not any(_source_of(key) == source for key in self.problems)


def _source_of(key: str) -> str:
    """Return the source of a key of `problems`."""
    return key.partition(":")[0]
