"""Metrics of the sampler, of the daemon and of its terms, and the line that systemd shows."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from disksla.promise.configuration import Profile
from disksla.serve.metrics.metric import Buckets, Metric, keyed, lean
from disksla.state.pipeline import SamplerStats, Snapshot, TermsSnapshot


class BuildInfo(msgspec.Struct, frozen=True):
    """Versions, and the result of the last reload of the configuration."""

    version: str
    revision: str
    """The commit that was built, or `unknown`."""
    python_version: str
    kernel_release: str
    reload_successful: bool
    """Whether the last load of the configuration succeeded."""
    reload_success_timestamp_s: float
    """Unix time of the last successful load of the configuration."""


_LATENESS: Mapping[Profile, Buckets] = {"default": Buckets((0.001, 0.01, 0.1))}

SAMPLER_METRICS: tuple[Metric[SamplerStats], ...] = (
    lean(
        "disksla_sampler_ticks_total",
        "Ticks of the sampler; at each tick it samples all monitored disks.",
        lambda sampler: sampler.ticks,
    ),
    lean(
        "disksla_sampler_missed_ticks_total",
        "Sampling deadlines that passed without a tick, because the one before was late. Counters"
        " of disks lose nothing; windows become longer.",
        lambda sampler: sampler.missed_ticks,
    ),
    Metric(
        "disksla_sampler_lateness_seconds",
        "Seconds from the deadline of a tick to its start.",
        lambda sampler: sampler.lateness_s,
        buckets=_LATENESS,
        is_histogram=True,
    ),
    Metric(
        "disksla_gaps_total",
        "Times between two samples that were not assessed, by reason. late (tick), suspend,"
        " clock_step, unreadable (/proc/diskstats), or of one disk: malformed (line), reset"
        " (counters), replaced, vanished.",
        lambda sampler: keyed(sampler.gaps),
        ("reason",),
    ),
    Metric(
        "disksla_collector_success",
        "Whether a source of data, or a part of the daemon, worked at the last attempt (1 yes,"
        " 0 no).",
        lambda sampler: keyed(sampler.collectors),
        ("collector",),
    ),
    lean(
        "disksla_errors_total",
        "Errors of a source of data or of a part of the daemon. Those of sampler are ticks that"
        " failed by a bug of disksla.",
        lambda sampler: keyed(sampler.errors),
        ("source",),
    ),
)

BUILD_METRICS: tuple[Metric[BuildInfo], ...] = (
    lean(
        "disksla_build_info",
        "Versions of disksla, of Python and of the kernel, always 1. revision is the commit of the"
        " build, with -dirty if files differed from it, or unknown.",
        lambda build_info: {
            (
                build_info.version,
                build_info.revision,
                build_info.python_version,
                build_info.kernel_release,
            ): 1
        },
        ("version", "revision", "python_version", "kernel_release"),
    ),
    lean(
        "disksla_config_last_reload_successful",
        "Whether the last load of the configuration succeeded (1 yes, 0 no).",
        lambda build_info: build_info.reload_successful,
    ),
    lean(
        "disksla_config_last_reload_success_timestamp_seconds",
        "Unix time in seconds of the last successful load of the configuration.",
        lambda build_info: build_info.reload_success_timestamp_s,
    ),
)


TERMS_METRICS: tuple[Metric[TermsSnapshot], ...] = (
    Metric(
        "disksla_terms_last_refresh_timestamp_seconds",
        "Unix time in seconds at which the terms of a source (file, api, metadata) were true. Of"
        " several files, the oldest.",
        lambda terms: keyed(terms.as_of_timestamp_s),
        ("source",),
    ),
    lean(
        "disksla_terms_expiry_timestamp_seconds",
        "Unix time in seconds until which the terms of a source may be relied on. Of several"
        " files, the first to expire.",
        lambda terms: keyed(terms.expiry_timestamp_s),
        ("source",),
    ),
    Metric(
        "disksla_terms_refresh_failures_total",
        "Failures to read terms, by source (file, api, metadata) and reason. Files that cannot be"
        " read, invalid entries of others (invalid_entry), and questions to the provider.",
        lambda terms: {key: count for key, count in terms.failures.items() if count},
        ("source", "reason"),
    ),
    Metric(
        "disksla_terms_unused_entries",
        "Entries of the configuration and of terms files that apply to no disk, by source and"
        " reason. unmatched (no disk), shadowed (only disks that an earlier entry matches).",
        lambda terms: dict(Counter((each.source, each.reason) for each in terms.unused)),
        ("source", "reason"),
    ),
)


_PROBLEMS = {"throttled": "throttled", "below": "below its promise", "stalled": "stalled"}
"""Verdicts that are shown, and their text; in the order of `VERDICTS`."""


def status_line(snapshot: Snapshot, build_info: BuildInfo) -> str:
    """Return the number of monitored disks, their problems, and the lowest burst credits."""
    disks = snapshot.disks
    parts = [f"{len(disks)} disk{'' if len(disks) == 1 else 's'} monitored"]
    counts = {verdict: sum(disk.verdict == verdict for disk in disks) for verdict in _PROBLEMS}
    parts += [f"{count} {_PROBLEMS[verdict]} now" for verdict, count in counts.items() if count]
    left = [
        (level.estimate_credits / level.capacity_credits, disk.disk.name)
        for disk in disks
        for level in disk.credits
        if level.capacity_credits
    ]
    if left:
        share, device = min(left)
        parts.append(f"lowest burst credits: {share:.0%} on {device}")
    line = ", ".join(parts)
    unreadable = [source for source, works in snapshot.sampler.collectors.items() if not works]
    if unreadable:
        line += f"; cannot read: {', '.join(unreadable)}"
    if not build_info.reload_successful:
        line += "; configuration reload failed, previous configuration in effect"
    return line
