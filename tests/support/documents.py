"""Documents of disks, as the daemon answers: an example, and strategies for any of them."""

import msgspec
from hypothesis import strategies as st

from disksla.promise.catalogue.limits import Rates
from disksla.state.pipeline.totals import Traffic
from disksla.tell.api.disks_document import (
    ChartsDocument,
    CreditsDocument,
    DisksDocument,
    LiveDiskDocument,
    MachineLimitDocument,
)
from disksla.tell.explanation import SHOWN
from disksla.tell.explanation.condition import CONDITIONS, Condition
from disksla.tell.explanation.who import ConsumerShare
from disksla.verdict.throttling import LIMIT_KINDS, VERDICTS, Verdict

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\n\u202e\u0301\u200d\ud83d"
_COLUMNS = 60
CONDITION_OF: dict[Verdict, Condition] = {
    "idle": "idle",
    "unproven": "ok",
    "met": "ok",
    "throttled": "your_limit",
    "below": "below",
    "stalled": "stalled",
}


def charts(verdict: Verdict | None = "idle") -> ChartsDocument:
    """Return five minutes without a change."""
    return ChartsDocument(
        verdicts=(verdict,) * _COLUMNS,
        iops=(300.0,) * _COLUMNS,
        bytes_per_second=(2.4e6,) * _COLUMNS,
        latency_s=(0.107,) * _COLUMNS,
        queue_depth=(32.0,) * _COLUMNS,
        credits_ratio=(None,) * _COLUMNS,
    )


def disk(
    name: str = "vdb", verdict: Verdict = "throttled", bad_s: float = 60.0
) -> LiveDiskDocument:
    """Return a disk with this verdict all the time."""
    return LiveDiskDocument(
        device=name,
        size_bytes=500 * 1024**3,
        mount_points=("/var/lib/postgresql",),
        claim="",
        terms="vk.high-iops",
        terms_source="configuration",
        said_by=None,
        as_of_timestamp_s=None,
        limits=Rates(300.0, 300.0, 30e6, 30e6),
        machine_limits=(),
        verdict=verdict,
        limit="iops" if verdict == "throttled" else None,
        present=Traffic(200.0, 100.0, 1.6e6, 0.8e6),
        load_ratio=0.98,
        inflight=32,
        latency_s=0.107,
        await_s=0.107,
        queue_depth=32.0,
        credits=(),
        sentences=(f"For 60 of the last 300 s the disk was {verdict}.", "Another sentence."),
        verdict_seconds=dict.fromkeys(VERDICTS, 0.0) | {verdict: bad_s},
        throttled_seconds={},
        slow_s=0.0,
        condition=CONDITION_OF[verdict],
        last_minute=(verdict,) * _COLUMNS,
        charts=charts(verdict),
    )


def used(plain: LiveDiskDocument) -> LiveDiskDocument:
    """Return a disk that three consumers used."""
    consumers = (
        ConsumerShare("postgresql@15-main.service", "postgres", 0.62, 0.1),
        ConsumerShare("shop/checkout-7d9f/app", "", 0.3, 0.8),
        ConsumerShare("kernel", "", None, 0.1),
    )
    return msgspec.structs.replace(plain, consumers=consumers)


def document(*disks: LiveDiskDocument) -> DisksDocument:
    """Return the document of a host."""
    return DisksDocument(host="db-1", version="0.2.0", timestamp_s=1764000000.0, disks=disks)


def with_credits(plain: LiveDiskDocument) -> LiveDiskDocument:
    """Return a disk that has 31.2 % of its credits left."""
    left = CreditsDocument(
        resource="iops",
        ratio=0.3125,
        lower_ratio=0.25,
        upper_ratio=0.5,
        exhaustion_s=750.0,
        refill_s=12000.0,
        lasting_ratio=0.62,
    )
    ratios = tuple(index / _COLUMNS for index in range(_COLUMNS))
    of_charts = msgspec.structs.replace(plain.charts, credits_ratio=ratios)
    return msgspec.structs.replace(plain, credits=(left,), charts=of_charts)


_NUMBERS = st.floats(0, 1e300) | st.floats(0, 2000) | st.sampled_from((0.0, 9.995, 99.95, 999.5))
_OPTIONAL = st.none() | _NUMBERS
_TEXTS = st.text(max_size=40) | st.sampled_from((HOSTILE, "данные", "数据库", "a" * 90, ""))
_VERDICTS = st.sampled_from(VERDICTS)
_TIMES = 10
"""How often a part of a strip or curve is repeated."""
_STRIPS = st.lists(st.none() | st.sampled_from(SHOWN), max_size=6).map(
    lambda part: tuple(part) * _TIMES
)
_CURVES = st.lists(_OPTIONAL, max_size=6).map(lambda part: tuple(part) * _TIMES)
_NAMES = (
    st.sampled_from(("sda", "vdb", "vdc", "nvme0n1", "nvme10n1", "dm-0", "loop7"))
    | st.text(min_size=1, max_size=20)
    | st.just(HOSTILE)
)

disks_documents = st.builds(
    DisksDocument,
    host=_TEXTS,
    version=_TEXTS,
    timestamp_s=_NUMBERS,
    disks=st.lists(
        st.builds(
            LiveDiskDocument,
            device=_NAMES,
            size_bytes=st.integers(0, 2**63),
            mount_points=st.lists(_TEXTS, max_size=2).map(tuple),
            claim=_TEXTS,
            terms=_TEXTS,
            terms_source=st.just("configuration"),
            said_by=st.none() | _TEXTS,
            as_of_timestamp_s=_OPTIONAL,
            limits=st.builds(Rates, _OPTIONAL, _OPTIONAL, _OPTIONAL, _OPTIONAL),
            machine_limits=st.lists(
                st.builds(MachineLimitDocument, limits=_TEXTS, load_ratio=_OPTIONAL), max_size=1
            ).map(tuple),
            consumers=st.lists(
                st.builds(ConsumerShare, _TEXTS, _TEXTS, _OPTIONAL, _OPTIONAL), max_size=3
            ).map(tuple),
            why_no_consumers=st.none() | _TEXTS,
            verdict=st.none() | _VERDICTS,
            limit=st.none() | st.sampled_from(LIMIT_KINDS),
            present=st.builds(Traffic, _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS),
            load_ratio=_OPTIONAL,
            inflight=st.none() | st.integers(0, 2**40),
            latency_s=_OPTIONAL,
            await_s=_OPTIONAL,
            queue_depth=_OPTIONAL,
            credits=st.lists(
                st.builds(
                    CreditsDocument,
                    resource=_TEXTS,
                    ratio=_NUMBERS,
                    lower_ratio=_NUMBERS,
                    upper_ratio=_NUMBERS,
                    exhaustion_s=_OPTIONAL,
                ),
                max_size=2,
            ).map(tuple),
            sentences=st.lists(_TEXTS, max_size=3).map(tuple),
            verdict_seconds=st.fixed_dictionaries(dict.fromkeys(VERDICTS, _NUMBERS)),
            throttled_seconds=st.just({}),
            slow_s=_NUMBERS,
            condition=st.none() | st.sampled_from(CONDITIONS),
            last_minute=_STRIPS,
            charts=st.builds(
                ChartsDocument,
                verdicts=_STRIPS,
                iops=_CURVES,
                bytes_per_second=_CURVES,
                latency_s=_CURVES,
                queue_depth=_CURVES,
                credits_ratio=_CURVES,
            ),
        ),
        max_size=6,
        unique_by=lambda each: each.device,
    ).map(tuple),
)
