"""Recognition of media: simulated ones, and the numbers of two articles."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from disksla.base.histogram import LatencyBin
from disksla.base.units import KIB
from disksla.measure.benchmark.identify import MIN_REQUESTS, Claim, identify
from disksla.measure.benchmark.identify_evidence import Evidence, RequestStats
from disksla.measure.benchmark.identify_rules import TITLES
from disksla.measure.benchmark.sweep_matrix import evidence_of, read_csv
from support.simulated_media import Placeless, Rotating, bins_of, measure, paced, windowed

SWEEPS = Path(__file__).resolve().parent / "sweeps"

ROTATING = {"rotating", "rotating_with_cache"}

seeds = st.integers(0, 2**32)
rotating = st.builds(
    lambda turns, slower, **rest: Rotating(turns[0], turns[1] * slower, **rest),
    st.sampled_from([(4200, 0.024), (5400, 0.02), (7200, 0.016), (10000, 0.009), (15000, 0.007)]),
    st.floats(0.9, 1.3),
    bytes_per_second=st.floats(40e6, 280e6),
    queueing_gain=st.floats(1.0, 3.0),
    hit_share=st.floats(0, 0.6),
    reads_ahead=st.booleans(),
)


def placeless(min_s: float, max_s: float, **rest: Any) -> st.SearchStrategy[Placeless]:
    return st.builds(
        lambda **fields: Placeless(**fields),  # noqa: PLW0108 -- otherwise all fields are drawn
        median_s=st.floats(min_s, max_s),
        depth_gain=st.floats(3, 16),
        **rest,
    )


solid = placeless(
    0.00005,
    0.00019,
    jitter_ratio=st.floats(0.02, 0.3),
    bytes_per_second=st.floats(200e6, 7e9),
    pause_share=st.floats(0, 0.03),
)
remote = placeless(
    0.0004, 0.006, jitter_ratio=st.floats(0.15, 0.5), bytes_per_second=st.floats(50e6, 1e9)
)


@given(rotating, seeds)
def test_rotating_disk_is_recognised(disk: Rotating, seed: int) -> None:
    finding = identify(measure(disk, seed))
    cached = disk.reads_ahead or disk.hit_share > 0.02
    assert finding.medium in ({"rotating_with_cache"} if cached else ROTATING)
    assert not finding.limited


@given(solid, remote, seeds)
def test_ssd_and_disk_behind_a_network_are_recognised(
    near: Placeless, far: Placeless, seed: int
) -> None:
    finding = identify(measure(near, seed))
    assert finding.medium in {"ssd", "nvme"}
    assert not finding.limited
    assert identify(measure(far, seed)).medium == "network"


@given(remote, seeds)
def test_network_with_read_ahead_is_not_rotating(disk: Placeless, seed: int) -> None:
    far = disk._replace(depth_gain=max(4.0, disk.depth_gain))
    ahead = Rotating(7200, 0.016)
    evidence = replace(
        measure(far, seed),
        sequential=measure(ahead, seed).sequential,
        streamed=measure(ahead, seed).streamed,
    )
    assert identify(evidence).medium in {"network", "unknown"}


@given(st.one_of(solid, remote), seeds, st.floats(20, 400))
def test_limiter_hides_the_medium(disk: Placeless, seed: int, iops: float) -> None:
    finding = identify(paced(disk, seed, min(iops, 0.3 / disk.median_s)))
    assert finding.medium == "unknown"
    assert finding.limited


@given(st.floats(0.005, 0.025), st.floats(1.5, 16.0), seeds)
def test_slow_disk_whose_iops_grow_with_depth_is_not_limited(
    median_s: float, depth_gain: float, seed: int
) -> None:
    """Its latency is almost constant, but no limiter allows more to a deep queue."""
    disk = Placeless(
        median_s=median_s, jitter_ratio=0.01, bytes_per_second=1e9, depth_gain=depth_gain
    )
    finding = identify(measure(disk, seed))
    assert (finding.medium, finding.limited) == ("network", False)


@given(st.one_of(solid, remote), seeds, st.integers(10, 60))
def test_windowed_limiter_does_not_hide_the_medium(
    disk: Placeless, seed: int, budget: int
) -> None:
    fits = min(budget, max(4, int(0.03 / disk.median_s)))
    finding = identify(windowed(disk, seed, 10 * fits))
    expected = {"network"} if disk.median_s > 0.0003 else {"ssd", "nvme"}
    assert finding.medium in expected | {"unknown"}
    assert finding.limited or finding.medium == "unknown"


@given(rotating, seeds)
def test_rotating_disk_behind_a_limiter_is_not_an_ssd(disk: Rotating, seed: int) -> None:
    for limited in (paced(disk, seed, 20), windowed(disk, seed, 50)):
        assert identify(limited).medium in ROTATING | {"unknown"}


def requests(
    milliseconds: float, size_bytes: int = 4 * KIB, iops: float | None = None, **known: Any
) -> RequestStats:
    """Return the statistics of requests at queue depth 1."""
    mean_s = milliseconds / 1000
    return RequestStats(request_bytes=size_bytes, mean_s=mean_s, iops=iops or 1 / mean_s, **known)


HDD_RANDOM = requests(6.7, iops=150, requests=450)
HDD_STREAMED = requests(1.7, 256 * KIB, 600, requests=1800)
SSD_RANDOM = requests(0.2, iops=5016, requests=9020)
SSD_STREAMED = requests(2.3, 256 * KIB, 439, requests=1230)
HDD = Evidence(buffered_bytes_per_second=180.53e6)
SSD = Evidence(buffered_bytes_per_second=102.65e6)


@pytest.mark.parametrize(
    ("evidence", "medium"),
    [
        (HDD, "unknown"),
        (SSD, "unknown"),
        (Evidence(random=HDD_RANDOM), "unknown"),
        (Evidence(streamed=HDD_STREAMED), "unknown"),
        (replace(HDD, random=HDD_RANDOM, streamed=HDD_STREAMED), "rotating_with_cache"),
        (Evidence(random=SSD_RANDOM), "ssd"),
        (Evidence(streamed=SSD_STREAMED), "unknown"),
        (replace(SSD, random=SSD_RANDOM, streamed=SSD_STREAMED), "ssd"),
    ],
)
def test_media_of_an_article(evidence: Evidence, medium: str) -> None:
    """Listings of an article: disks of a workstation and of a cloud, by hdparm and ioping."""
    assert identify(evidence).medium == medium


def test_table_of_an_article_is_of_a_rotating_disk() -> None:
    rows = read_csv((SWEEPS / "storageio-hdd.csv").read_text())
    assert len(rows) == 32
    for some in (rows, rows[:16], rows[16:]):
        finding = identify(evidence_of(some))
        assert finding.title == "rotating disk with a cache"
        text = " ".join(finding.observations)
        assert "a cache reads ahead" in text
        assert "one rotation at 7200 rpm" in text


def test_too_few_requests_are_not_conclusive() -> None:
    few = requests(6.7, requests=MIN_REQUESTS - 1)
    assert identify(Evidence(random=few)).medium == "unknown"
    assert "29" in identify(Evidence(random=few)).conclusion


def spread(*milliseconds: float) -> tuple[LatencyBin, ...]:
    return bins_of([each / 1000 for each in milliseconds for _ in range(20)])


ROTATION = spread(4, 6, 8, 10, 12, 14)
TURNING = requests(9, bins=ROTATION)
NEARER = requests(4, bins=spread(2, 3, 4, 5))


def deep(iops: float, *milliseconds: float, mean: float = 9) -> RequestStats:
    """Return the statistics of requests with 16 in flight, of which some took so long."""
    bins = spread(*milliseconds) if milliseconds else ()
    return requests(mean, iops=iops, queue_depth=16, bins=bins)


@pytest.mark.parametrize(
    ("medium", "limited", "sentence", "evidence"),
    [
        ("unknown", True, "Almost constant latency",
         {"random": requests(3.33, bins=spread(3.32, 3.33, 3.34))}),
        ("unknown", False, "No rotating disk takes that long",
         {"random": requests(60, bins=spread(40, 60, 80))}),
        ("network", False, "spread over many disks", {"random": TURNING, "deep": deep(1500)}),
        ("rotating", False, "grows with the distance",
         {"random": TURNING, "near": NEARER, "deep": deep(1500)}),
        ("unknown", True, "Neither position nor queue depth",
         {"random": TURNING, "near": TURNING, "sequential": requests(9), "deep": deep(111)}),
        ("network", False, "behind a network",
         {"random": TURNING, "near": TURNING, "sequential": requests(9), "deep": deep(300)}),
        ("unknown", False, "does not show whether position",
         {"random": requests(9, bins=spread(8, 9, 9, 10)), "sequential": requests(0.1)}),
        ("unknown", False, "does not show whether position",
         {"random": TURNING, "near": TURNING, "sequential": requests(0.1), "deep": deep(444)}),
        ("unknown", False, "does not show whether position", {"random": requests(9)}),
        ("unknown", False, "a cache hides",
         {"random": requests(1, bins=spread(*[0.1] * 20, 5, 8, 11))}),
        ("memory", False, "Blocks that were never written", {"random": requests(0.01)}),
        ("network", True, "a limiter sets this rate",
         {"random": requests(0.6), "deep": deep(1700)}),
        ("network", True, "Some of these wait 83.7 ms",
         {"random": requests(1.5), "deep": deep(2000, *[1.6] * 20, 82, 83, 84, mean=8)}),
        ("network", False, "12 times as many",
         {"random": requests(1.5), "deep": deep(8000, *[1.6] * 20, 5, mean=2)}),
        ("network", False, "9.6 times as many",
         {"random": requests(0.6), "deep": deep(16000, mean=1)}),
        ("ssd", True, "A few reads wait so long",
         {"random": requests(3.3, bins=spread(*[0.1] * 30, 96))}),
        ("nvme", False, "SATA", {"random": requests(0.1), "buffered_bytes_per_second": 3e9}),
        ("ssd", True, "slow for an SSD",
         {"random": requests(0.1), "streamed": requests(2, 256 * KIB, 400)}),
        ("rotating", False, "the distance matters",
         {"random": requests(12, bins=ROTATION), "near": NEARER, "sequential": requests(8.3),
          "written": requests(5)}),
    ],
)  # fmt: skip
def test_conclusions(medium: str, limited: bool, sentence: str, evidence: dict[str, Any]) -> None:
    finding = identify(Evidence(**evidence))
    assert (finding.medium, finding.limited) == (medium, limited)
    assert sentence in " ".join((finding.conclusion, *finding.observations))
    assert finding.title == TITLES[finding.medium]


HITS = Evidence(random=requests(6, bins=spread(0.1, 4, 6, 8, 10, 12)), sequential=requests(0.1))


@pytest.mark.parametrize(
    ("evidence", "claim", "denied"),
    [
        (HITS, Claim("vda", rotational=True, model="QEMU HARDDISK", sold_as="vk.ceph-hdd"), ()),
        (
            HITS,
            Claim("vda", False, "Fast SSD 9", "vk.ceph-ssd"),
            ("model", "catalogue type", "kernel"),
        ),
        (HITS, Claim("nvme0n1"), ("name",)),
        (Evidence(random=SSD_RANDOM), Claim("vda", rotational=True), ("kernel",)),
        (Evidence(random=SSD_RANDOM), Claim("vda", rotational=False), ()),
        (Evidence(random=requests(0.6)), Claim("nvme1n1", rotational=False), ("NVMe",)),
        (Evidence(random=requests(0.6)), Claim("vdb", rotational=True), ()),
        (Evidence(), Claim("nvme0n1", rotational=True), ()),
    ],
)
def test_contradicted_claims_are_named(
    evidence: Evidence, claim: Claim, denied: tuple[str, ...]
) -> None:
    found = identify(evidence, claim).contradictions
    assert len(found) == len(denied)
    assert all(word in sentence for word, sentence in zip(denied, found, strict=True))


bins = st.lists(
    st.builds(LatencyBin, st.floats(0, 100), st.integers(1, 10**9)),
    unique_by=lambda one: one.seconds,
).map(lambda some: tuple(sorted(some, key=lambda one: one.seconds)))
answered = st.builds(
    RequestStats,
    request_bytes=st.integers(512, 2**24),
    iops=st.floats(1e-3, 1e9),
    mean_s=st.floats(1e-9, 1e3),
    queue_depth=st.integers(1, 64),
    requests=st.none() | st.integers(0, 10**9),
    bins=bins,
)
rates = st.none() | st.floats(0, 1e12)
anything = st.builds(
    Evidence,
    buffered_bytes_per_second=rates,
    **{
        piece: st.none() | answered
        for piece in ("random", "near", "sequential", "streamed", "deep", "written")
    },
)


@given(anything, st.builds(Claim, st.text(), st.none() | st.booleans(), st.none() | st.text()))
def test_any_evidence_has_a_conclusion(evidence: Evidence, claim: Claim) -> None:
    finding = identify(evidence, claim)
    assert finding.medium in TITLES
    assert finding.conclusion
    assert evidence.random is not None or finding.medium == "unknown"
