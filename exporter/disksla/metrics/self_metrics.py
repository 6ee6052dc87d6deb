"""Metrics of the sampler and of the daemon itself."""

import msgspec

from disksla.metrics.metric import Metric, keyed
from disksla.pipeline import SamplerSnapshot


class BuildInfo(msgspec.Struct, frozen=True):
    """What the daemon knows of itself beside its sampling."""

    version: str
    python_version: str
    kernel_release: str
    reload_successful: bool
    """Whether the configuration was accepted when it was last read."""
    reload_success_timestamp_s: float
    """Unix time at which a configuration was last accepted."""


SAMPLER_METRICS: tuple[Metric[SamplerSnapshot], ...] = (
    Metric(
        "disksla_sampler_ticks_total",
        "counter",
        "Times that all disks were sampled.",
        lambda sampler: sampler.ticks,
    ),
    Metric(
        "disksla_sampler_missed_ticks_total",
        "counter",
        "Sampling deadlines that passed without a sample because the one before came too late."
        " The counters of the disks lose nothing; windows grow longer.",
        lambda sampler: sampler.missed_ticks,
    ),
    Metric(
        "disksla_sampler_lateness_seconds",
        "histogram",
        "Seconds between the deadline of a sample and the moment it was taken.",
        lambda sampler: sampler.lateness_s,
    ),
    Metric(
        "disksla_gaps_total",
        "counter",
        "Breaks between two samples, of one disk or of all, across which no window was assessed,"
        " by reason.",
        lambda sampler: keyed(sampler.gaps),
        ("reason",),
    ),
    Metric(
        "disksla_collector_success",
        "gauge",
        "Whether a source of data could be read when it was last tried (1 yes, 0 no).",
        lambda sampler: keyed(sampler.collectors),
        ("collector",),
    ),
    Metric(
        "disksla_errors_total",
        "counter",
        "Errors met while reading a source of data.",
        lambda sampler: keyed(sampler.errors),
        ("source",),
    ),
)

BUILD_METRICS: tuple[Metric[BuildInfo], ...] = (
    Metric(
        "disksla_build_info",
        "gauge",
        "Always 1: versions of disksla, of the Python that runs it and of the kernel below.",
        lambda build_info: {
            (
                build_info.version,
                build_info.python_version,
                build_info.kernel_release,
            ): 1
        },
        ("version", "python_version", "kernel_release"),
    ),
    Metric(
        "disksla_config_last_reload_successful",
        "gauge",
        "Whether the configuration was accepted when it was last read (1 yes, 0 no);"
        " if not, the one before stays in force.",
        lambda build_info: build_info.reload_successful,
    ),
    Metric(
        "disksla_config_last_reload_success_timestamp_seconds",
        "gauge",
        "Unix time in seconds at which a configuration was last accepted.",
        lambda build_info: build_info.reload_success_timestamp_s,
    ),
)
