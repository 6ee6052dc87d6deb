"""Credits, probes, verifications, gaps of the daemon, and what providers publish."""

import pytest

from disksla.measure.prometheus.query import Series
from disksla.measure.report.compliance_wording import consumers_text, uptime_text
from disksla.measure.report.document import Allowance, ConsumerEvidence, VerificationTest
from disksla.measure.report.evidence import (
    _PUBLISHED,
    allowance,
    consumers_of,
    credits_of,
    probe_steps,
    probes_around,
    sampling_gaps,
    uptime,
    verifications,
)
from disksla.promise.catalogue.catalog import load_catalog
from support.report_series import gauge

TIMES = (0.0, 300.0, 600.0, 900.0)


def bounds(resource: str, estimate: tuple[float, ...], upper: tuple[float, ...]) -> list[object]:
    values = {
        "": estimate,
        "_lower_bound": tuple(value / 2 for value in estimate),
        "_upper_bound": upper,
        "_capacity": (1000.0,) * 4,
    }
    return [
        gauge(f"disksla_burst_credits{name}", zip(TIMES, each, strict=True), resource=resource)
        for name, each in values.items()
    ]


def test_credits_are_those_at_their_lowest() -> None:
    series = bounds("iops", (1000, 4, 4, 500), (1000, 8, 9, 600))
    [credits_] = credits_of(series)  # type: ignore[arg-type]
    assert credits_.resource == "iops"
    assert (credits_.lowest_credits, credits_.lowest_timestamp_s) == (4, 300)
    assert (credits_.lowest_lower_bound_credits, credits_.lowest_upper_bound_credits) == (2, 8)
    assert (credits_.last_credits, credits_.capacity_credits) == (500, 1000)
    assert credits_.empty_s == 600
    assert credits_of([gauge("disksla_burst_credits", [(0, 1)], resource="iops")]) == ()


def probes(kind: str, counts: list[float], mean_s: float) -> list[object]:
    times = [600.0 * index for index in range(len(counts))]
    return [
        gauge(f"disksla_probe_{kind}_latency_seconds_count", zip(times, counts, strict=True)),
        gauge(
            f"disksla_probe_{kind}_latency_seconds_sum",
            [(at_s, count * mean_s) for at_s, count in zip(times, counts, strict=True)],
        ),
    ]


def test_probes_before_during_and_after() -> None:
    steps = probe_steps(probes("read", [50, 60, 70, 10, 20, 30], 0.002))  # type: ignore[arg-type]
    [found] = probes_around(steps, 900.0, 1800.0)
    assert found.kind == "read-latency"
    windows = (found.before, found.during, found.after)
    assert [each and each.requests for each in windows] == [10, 20, 20], "with a reset in between"
    assert [each and each.mean_s for each in windows] == pytest.approx([0.002] * 3)


def test_no_probes_are_no_evidence() -> None:
    steps = probe_steps(probes("write", [50, 50], 0.002))  # type: ignore[arg-type]
    assert probes_around(steps, 0.0, 600.0) == ()
    assert probe_steps([]) == {}


def test_each_verification_once() -> None:
    series = [
        gauge("disksla_verification_timestamp_seconds", [(0, 7), (300, 7), (600, 555)]),
        gauge("disksla_verification_ratio", [(0, 1.1), (300, 1.1), (600, 0.7)], test="a"),
        gauge("disksla_verification_required_ratio", [(0, 1), (300, 1), (600, 1)], test="a"),
        gauge("disksla_verification_passed", [(0, 1), (300, 1), (600, 0)], test="a"),
        gauge("disksla_verification_ratio", [(600, 0.9)], test="b"),
    ]
    first, second = verifications(series)
    assert first.timestamp_s == 7
    assert first.tests[0] == VerificationTest("a", 1.1, 1.0, passed=True)
    assert second.tests == (
        VerificationTest("a", 0.7, 1.0, passed=False),
        VerificationTest("b", 0.9, None, None),
    )


def test_gaps_of_the_daemon_are_counted_across_restarts() -> None:
    series = [
        gauge("disksla_gaps_total", [(0, 5), (300, 7), (600, 1)], reason="late"),
        gauge("disksla_gaps_total", [(0, 5), (300, 5)], reason="reset"),
    ]
    assert sampling_gaps(series) == {"late": 3}


def of_consumer(unit: str, consumer: str, *values: float, program: str = "") -> Series:
    labels = {"__name__": f"disksla_consumer_{unit}_total", "consumer": consumer}
    points = [(300.0 * step, repr(value)) for step, value in enumerate(values)]
    return Series(labels | {"program": program}, points)


def test_who_used_a_disk() -> None:
    """By requests and by bytes; the programs of a consumer together, and over a restart."""
    series = [
        of_consumer("requests", "a.service", 100.0, 130.0, 10.0, program="postgres"),
        of_consumer("requests", "a.service", 0.0, 20.0, program="sh"),
        of_consumer("requests", "b.service", 0.0, 40.0),
        of_consumer("bytes", "b.service", 0.0, 90.0),
        of_consumer("bytes", "kernel", 0.0, 10.0),
    ]
    found = consumers_of(series)
    assert found == (
        ConsumerEvidence("b.service", 0.4, 0.9),
        ConsumerEvidence("a.service", 0.6, None),
        ConsumerEvidence("kernel", None, 0.1),
    )
    assert consumers_text(found) == (
        "while throttled or busy: by requests 60 % a.service, 40 % b.service; by bytes"
        " 90 % b.service, 10 % kernel"
    )
    assert consumers_of([]) == ()
    assert len(consumers_of([of_consumer("bytes", f"{n}", 0.0, 1.0) for n in range(9)])) == 5


MONTH_S = 30 * 86_400


def test_allowance_is_a_share_of_the_whole_period() -> None:
    most_s = 7.2 * 3600
    for seconds, is_exceeded in ((most_s, False), (most_s + 1, True)):
        found = allowance(0.99, seconds, MONTH_S)
        assert found == Allowance(0.99, most_s, seconds, is_exceeded)
    assert allowance(None, 1.0, MONTH_S) is None


@pytest.mark.parametrize(
    ("provider", "down_ratio", "credit", "words"),
    [
        ("aws", 0.0, 0.0, "uptime 100 % (objective 99.9 %); no service credit."),
        ("aws", 0.00099, 0.0, "uptime 99.901 % (objective 99.9 %); no service credit."),
        ("aws", 0.002, 0.1, "uptime 99.8 % (objective 99.9 %); service credit 10%."),
        ("aws", 0.02, 0.3, "service credit 30%."),
        ("aws", 0.06, 1.0, "service credit 100%."),
        ("gcp", 0.002, None, "(objective 99.9 %); its service credits are not known here."),
        ("azure", 0.002, None, ""),  # it does not count disks that hang
    ],
)
def test_service_credits(
    provider: str, down_ratio: float, credit: float | None, words: str
) -> None:
    found = uptime(provider, MONTH_S * down_ratio, MONTH_S)
    assert found is not None
    assert found.credit_ratio == credit
    assert found.uptime_ratio == (pytest.approx(1 - down_ratio) if words else None)
    [_, *arithmetic] = uptime_text(found)
    assert [text.endswith(words) for text in arithmetic] == [True] * bool(words)
    assert uptime("unknown", 60.0, MONTH_S) is None


def test_agreements_are_of_providers_of_the_catalogue() -> None:
    assert {row.provider for row in load_catalog().rows} >= _PUBLISHED.keys()
