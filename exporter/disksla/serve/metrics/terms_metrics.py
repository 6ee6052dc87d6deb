"""Metrics of terms files: how old they are, what failed, and which entries apply to no disk."""

from collections import Counter

from disksla.serve.metrics.metric import Metric, keyed
from disksla.state.pipeline import TermsSnapshot

TERMS_METRICS: tuple[Metric[TermsSnapshot], ...] = (
    Metric(
        "disksla_terms_last_refresh_timestamp_seconds",
        "Unix time in seconds at which the terms of a source (file, api, metadata) were true; of"
        " several files, the oldest.",
        lambda terms: keyed(terms.as_of_timestamp_s),
        ("source",),
    ),
    Metric(
        "disksla_terms_expiry_timestamp_seconds",
        "Unix time in seconds until which the terms of a source may be relied on; of several"
        " files, the first to expire. Absent if none says it.",
        lambda terms: keyed(terms.expiry_timestamp_s),
        ("source",),
        profile="lean",
    ),
    Metric(
        "disksla_terms_refresh_failures_total",
        "Terms files that could not be read, invalid entries of others (reason invalid_entry),"
        " and questions to the provider that failed, by source (file, api, metadata) and reason.",
        lambda terms: {key: count for key, count in terms.failures.items() if count},
        ("source", "reason"),
    ),
    Metric(
        "disksla_terms_unused_entries",
        "Entries of the configuration and of terms files that apply to no disk, by source and"
        " reason: unmatched (no disk), shadowed (only disks that an earlier entry matches).",
        lambda terms: dict(Counter((each.source, each.reason) for each in terms.unused)),
        ("source", "reason"),
    ),
)
