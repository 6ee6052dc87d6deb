"""How well we sampled: our own ticks, lateness, gaps and errors."""

from collections.abc import Collection, Mapping

import msgspec

from disksla.histogram import Histogram
from disksla.verdict import GAP_REASONS

LATENESS_BOUNDS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)

SOURCES = ("diskstats", "disks", "inflight", "iowait", "pressure")
"""What we read: /proc/diskstats; sysfs and the udev database; sysfs `inflight`; /proc/stat;
/proc/pressure/io."""
HOST_SOURCES = ("iowait", "pressure")
"""Those that are not asked at every tick."""


class SamplerStats(msgspec.Struct, frozen=True):
    """Sums about the sampler itself."""

    ticks: int = 0
    missed_ticks: int = 0
    lateness_s: Histogram = Histogram.empty(LATENESS_BOUNDS_S)
    gaps: Mapping[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(GAP_REASONS, 0))
    errors: Mapping[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(SOURCES, 0))
    problems: Mapping[str, str] = {}
    """What cannot be read now: `source` or `source:device` -> what was seen."""

    def ticked(self, lateness_s: float, missed_ticks: int) -> "SamplerStats":
        """Add one tick that came `lateness_s` after its deadline, others having been missed."""
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
        self, problems: Mapping[str, str], untried: Collection[str] = ()
    ) -> "SamplerStats":
        """Take what cannot be read at this tick, each an error of its source.

        What could not be read of sources that were not tried is as it was.
        """
        if not problems and not self.problems:
            return self
        errors = dict(self.errors)
        for where in problems:
            source = where.partition(":")[0]
            errors[source] = errors.get(source, 0) + 1
        kept = {where: what for where, what in self.problems.items() if where in untried}
        return msgspec.structs.replace(self, errors=errors, problems={**kept, **problems})

    def works(self, source: str) -> bool:
        """Tell whether a source could be read when it was last tried."""
        return not any(where.partition(":")[0] == source for where in self.problems)
