"""Sentences that say who used a disk."""

from functools import reduce

import pytest

from disksla.kernel.consumers.consumer_totals import NO_CONSUMERS, ConsumerTotals
from disksla.kernel.consumers.consumption import Consumption, OwnLimit
from disksla.promise.configuration import Configuration
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State
from disksla.tell.explanation.summary import Summary, SummaryPart
from disksla.tell.explanation.who import explain_who, period_since
from disksla.verdict.throttling.throttle import LimitKind
from support.consumed import with_consumers
from support.simulated_host import CATALOG
from support.simulated_limiter import DEVICE, Closed, Limiter, Scenario, run, summed

A, B, C = "postgresql@15-main.service", "backup.service", "cron.service"
PART = SummaryPart(41.0, 300.0, 1e6, 8.0, 0.01)


def throttled_at(*limits: LimitKind) -> Summary:
    return Summary(300.0, {}, {("base", limit): PART for limit in limits})


def used(
    *consumptions: Consumption, seconds: int = 41, is_throttled: bool = True, begin_s: int = 0,
    totals: ConsumerTotals = NO_CONSUMERS,
) -> ConsumerTotals:  # fmt: skip
    """Return totals of a disk that consumers used in the same way in each second."""
    for second in range(begin_s, begin_s + seconds):
        span_s = (float(second), second + 1.0)
        totals = totals.plus(span_s, consumptions, is_throttled=is_throttled, may_be_named=None)
    return totals


def sentences(totals: ConsumerTotals, *limits: LimitKind) -> list[str]:
    return explain_who(totals, 0.0, totals.watched_until_s, throttled_at(*limits))


BY_GROUP = (
    Consumption("vda", A, bytes=83.0),
    Consumption("vda", B, bytes=12.0),
    Consumption("vda", C, bytes=1.0),
    Consumption("vda", "other", bytes=4.0),
)
BY_BOTH = (
    Consumption("vda", A, "postgres", requests=83.0, bytes=10.0),
    Consumption("vda", A, "sh", requests=2.0, bytes=0.0),
    Consumption("vda", B, "rsync", requests=15.0, bytes=90.0),
)

WHEN = "While it was throttled"


@pytest.mark.parametrize("limits", [("iops",), ("bandwidth",), ("machine_bandwidth",)])
def test_who_used_the_disk_while_it_was_throttled(limits: tuple[LimitKind, ...]) -> None:
    assert sentences(used(*BY_GROUP), *limits) == [
        f"{WHEN}, 83 % of its bytes came from {A}, 12 % from {B}, 5 % from others."
    ]


BY_REQUESTS = f"85 % of its requests came from {A} (postgres), 15 % from {B} (rsync)."
BY_BYTES = f"90 % of its bytes came from {B} (rsync), 10 % from {A} (postgres)."


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("iops", [f"{WHEN}, {BY_REQUESTS}", f"By bytes, another one leads: {BY_BYTES}"]),
        (
            "machine_bandwidth",
            [f"{WHEN}, {BY_BYTES}", f"By requests, another one leads: {BY_REQUESTS}"],
        ),
    ],
)
def test_what_the_limit_counts_comes_first(limit: LimitKind, expected: list[str]) -> None:
    assert sentences(used(*BY_BOTH), limit) == expected


def test_one_sentence_is_enough_where_both_have_the_same_leader() -> None:
    found = (Consumption("vda", A, requests=9.0, bytes=9.0), Consumption("vda", B, requests=1.0))
    [sentence] = sentences(used(*found), "iops")
    assert sentence.endswith(f"90 % of its requests came from {A}, 10 % from {B}.")


def test_a_disk_that_was_not_throttled_was_watched() -> None:
    [sentence] = sentences(used(*BY_GROUP, seconds=120, is_throttled=False))
    assert sentence.startswith("83 % of its bytes came from")


def test_a_disk_that_was_throttled_for_too_short_to_be_said() -> None:
    """Whoever used it is named, but not for a time of which the other sentences say nothing."""
    totals = used(*BY_GROUP, seconds=2)
    totals = used(Consumption("vda", B, bytes=1e6), begin_s=2, is_throttled=False, totals=totals)
    assert sentences(totals) == [f"100 % of its bytes came from {B}."]


def test_a_program_without_a_unit_is_named_once() -> None:
    found = Consumption("vda", "program postgres", "postgres", requests=1.0)
    assert sentences(used(found), "iops") == [
        f"{WHEN}, 100 % of its requests came from program postgres."
    ]


def test_what_was_used_otherwise_does_not_count_where_it_was_throttled() -> None:
    totals = used(Consumption("vda", B, bytes=1e6), seconds=20, is_throttled=False)
    totals = used(Consumption("vda", A, bytes=1.0), begin_s=20, totals=totals)
    assert f"{WHEN}, 100 % of its bytes came from {A}." in sentences(totals, "iops")


def test_kernel_and_what_is_not_attributed_are_said() -> None:
    found = (
        Consumption("vda", "kernel", bytes=60.0),
        Consumption("vda", A, bytes=20.0),
        Consumption("vda", "unattributed", bytes=20.0),
    )
    assert sentences(used(*found), "iops") == [
        (
            f"{WHEN}, 60 % of its bytes came from the kernel (such as a journal),"
            f" 20 % from {A}; 20 % are not attributed."
        )
    ]


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert sentences(NO_CONSUMERS, "iops") == []
    assert sentences(used(seconds=41), "iops") == []
    nobody = used(Consumption("vda", "unattributed", bytes=1.0))
    assert sentences(nobody, "iops") == [
        (f"{WHEN}, none of its bytes came from a known consumer; 100 % are not attributed.")
    ]


def test_who_began_is_said() -> None:
    totals = used(Consumption("vda", A, bytes=1.0), seconds=60)
    totals = used(
        Consumption("vda", A, bytes=1.0), Consumption("vda", B, bytes=9.0),
        begin_s=60, totals=totals,
    )  # fmt: skip
    assert sentences(totals, "iops")[1] == f"{B} used none of it until 42 s ago."
    assert len(sentences(used(*BY_GROUP, seconds=100), "iops")) == 1


def test_what_is_older_than_the_period_is_left_out() -> None:
    totals = used(Consumption("vda", A, bytes=1.0))
    assert explain_who(totals, 50.0, 400.0, throttled_at("iops")) == []
    assert period_since(totals, 50.0, throttled_at("iops")).shares == []


@pytest.mark.parametrize(
    ("own", "rate"),
    [
        (OwnLimit("vda", A, "writes", 50.0), "50 writes per second"),
        (OwnLimit("vda", A, "bytes read", 1048576.0), "1 MiB/s read"),
    ],
)
def test_a_group_at_its_own_limit(own: OwnLimit, rate: str) -> None:
    totals = NO_CONSUMERS.with_own_limit(own, 100.0)
    end = f"held at its own limit of {rate} (io.max); the disk is not the reason."
    assert explain_who(totals, 0.0, 101.0, throttled_at()) == [f"{A} is {end}"]
    assert explain_who(totals, 0.0, 150.0, throttled_at()) == [f"{A} was {end}"]
    assert explain_who(totals, 120.0, 150.0, throttled_at()) == []


def test_ticks_of_a_throttled_disk_say_who() -> None:
    """From ticks to a sentence, as the daemon and a recording have it."""
    scenario = Scenario(
        loads=(Closed(depth=8),), limiter=Limiter(buckets=summed(iops=300)), seconds=12.0
    )
    ticks = with_consumers(run(scenario).ticks, DEVICE, {A: (250.0, None), B: (50.0, None)})
    state = reduce(advance, ticks, State(Configuration(scenario.settings(), CATALOG)))
    [disk] = Snapshot(state).disks
    [sentence] = explain_who(disk.consumers, 0.0, 2000.0, throttled_at("iops"))
    assert sentence.endswith(f"{WHEN}, 83 % of its requests came from {A}, 17 % from {B}.")
