"""Metrics of the sampler and of the daemon itself."""

from collections.abc import Mapping

import msgspec

from disksla.promise.configuration import Profile
from disksla.serve.metrics.metric import Buckets, Metric, keyed
from disksla.state.pipeline import SamplerStats


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
    Metric(
        "disksla_sampler_ticks_total",
        "Ticks of the sampler; at each tick it samples all monitored disks.",
        lambda sampler: sampler.ticks,
        profile="lean",
    ),
    Metric(
        "disksla_sampler_missed_ticks_total",
        "Sampling deadlines that passed without a tick because the tick before was late. Counters"
        " of disks lose nothing; windows become longer.",
        lambda sampler: sampler.missed_ticks,
        profile="lean",
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
        "Gaps: times between two samples that were not assessed, by reason: late (tick), suspend,"
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
    Metric(
        "disksla_errors_total",
        "Errors of a source of data or of a part of the daemon. Those of sampler are ticks that"
        " failed by a bug of disksla.",
        lambda sampler: keyed(sampler.errors),
        ("source",),
        profile="lean",
    ),
)

BUILD_METRICS: tuple[Metric[BuildInfo], ...] = (
    Metric(
        "disksla_build_info",
        "Always 1. Labels have the versions of disksla, of Python and of the kernel. revision is"
        " the commit of the build, with -dirty if files differed from it, or unknown.",
        lambda build_info: {
            (
                build_info.version,
                build_info.revision,
                build_info.python_version,
                build_info.kernel_release,
            ): 1
        },
        ("version", "revision", "python_version", "kernel_release"),
        profile="lean",
    ),
    Metric(
        "disksla_config_last_reload_successful",
        "Whether the last load of the configuration succeeded (1 yes, 0 no); after a failure the"
        " previous configuration stays in effect.",
        lambda build_info: build_info.reload_successful,
        profile="lean",
    ),
    Metric(
        "disksla_config_last_reload_success_timestamp_seconds",
        "Unix time in seconds of the last successful load of the configuration.",
        lambda build_info: build_info.reload_success_timestamp_s,
        profile="lean",
    ),
)
