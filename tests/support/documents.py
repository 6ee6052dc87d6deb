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
)
from disksla.tell.explanation import SHOWN
from disksla.tell.explanation.condition import Condition
from disksla.tell.explanation.who import ConsumerShare
from disksla.verdict.throttling import VERDICTS, Verdict
from support.any_records import Kinds, records

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
_TEXTS = st.text(max_size=40) | st.sampled_from((HOSTILE, "данные", "数据库", "a" * 90, ""))
_KINDS: Kinds = {float: _NUMBERS, str: _TEXTS}
_TIMES = 10
"""How often a part of a strip or curve is repeated."""
_STRIPS = st.lists(st.none() | st.sampled_from(SHOWN), max_size=6).map(
    lambda part: tuple(part) * _TIMES
)
_CURVES = st.lists(st.none() | _NUMBERS, max_size=6).map(lambda part: tuple(part) * _TIMES)
_NAMES = (
    st.sampled_from(("sda", "vdb", "vdc", "nvme0n1", "nvme10n1", "dm-0", "loop7"))
    | st.text(min_size=1, max_size=20)
    | st.just(HOSTILE)
)
_of_charts = ("iops", "bytes_per_second", "latency_s", "queue_depth", "credits_ratio")
_disks = records(
    LiveDiskDocument,
    _KINDS,
    device=_NAMES,
    verdict_seconds=st.fixed_dictionaries(dict.fromkeys(VERDICTS, _NUMBERS)),
    last_minute=_STRIPS,
    charts=records(ChartsDocument, _KINDS, verdicts=_STRIPS, **dict.fromkeys(_of_charts, _CURVES)),
)
disks_documents = records(
    DisksDocument,
    _KINDS,
    disks=st.lists(_disks, max_size=6, unique_by=lambda each: each.device).map(tuple),
)
