"""Public cases of slow file storages, with the numbers that their users reported.

Those that limits and credits explain: what the storage was promised, when its credits end, and
what would have been enough. Cases 5, 10, 12 and 13 are in tests/state/pipeline/test_mounts.py.
"""

import json
import math
from typing import Any

import pytest

from disksla.base.units import GIB, KIB, MIB, TIB
from disksla.commands.cli import main
from disksla.kernel.disks.disk import nfs_disks
from disksla.kernel.procfs import Mount
from disksla.promise.catalogue import Bucket, Limits, Provision, derive_limits
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.cost_model import load_ratio
from disksla.promise.catalogue.options import client_of, with_options
from disksla.verdict.credits.bounds import Use, advance, exhaustion_s, initial

CATALOG = load_catalog()
GB = 10**9
DAY_S = 86400.0
MINUTE_S = 60.0


def efs(size_bytes: float, rate: float | None = None, **options: str) -> Limits:
    chosen = Provision(bytes_per_second=rate, options={"mode": "bursting", **options})
    return derive_limits(CATALOG["aws.efs"], int(size_bytes), chosen)


def bucket_of(limits: Limits) -> Bucket:
    [bucket] = limits.buckets
    return bucket


def days_until_empty(limits: Limits, mean_mib_per_second: float) -> float:
    """Return after how many days the credits of a new file system end at a mean load."""
    bucket = bucket_of(limits)
    new = initial(bucket, is_new=True)
    return exhaustion_s(new, bucket, mean_mib_per_second * MIB) / DAY_S


def write_mib(limits: Limits) -> float:
    rate = limits.rates.write_bytes_per_second
    assert rate is not None
    return rate / MIB


def test_jobs_that_share_58_gib(capsys: pytest.CaptureFixture[str]) -> None:
    """Case 1 (terraform-aws-runs-on#37): 12 jobs at once had 2.85 MiB/s together, 0.25 each."""
    arguments = ("aws.efs", "58GiB", "--option", "mode=bursting", "--json")
    assert main(["limits", *arguments]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    rate = printed["limits"]["write_bytes_per_second"]
    assert rate / MIB == pytest.approx(2.85, rel=0.01)
    assert rate / MIB / 12 == pytest.approx(0.25, abs=0.02)
    assert printed["shared_by"] == "all clients of the file system"
    assert bucket_of(efs(58 * GIB)).peak_per_second / rate == pytest.approx(35.3, abs=0.1)
    # The answer was the mode elastic: no law of size, and no credits.
    elastic = efs(58 * GIB, mode="elastic")
    assert (write_mib(elastic), elastic.buckets) == (1024, ())


def test_end_of_credits_is_known_before() -> None:
    """Case 2 (jonmoblog): 10 GB, permitted 105 fell to 1.05 MB/s 4 to 6 weeks after the start."""
    limits = efs(10 * GB)
    bucket = bucket_of(limits)
    assert bucket.peak_per_second / 1e6 == pytest.approx(105, rel=0.01)
    assert write_mib(limits) * MIB / 1e6 == pytest.approx(1.05, rel=0.01)
    assert 28 <= days_until_empty(limits, 1.3) <= 42
    assert 28 <= days_until_empty(limits, 1.1) <= 42
    # A load within what is filled never ends them.
    assert days_until_empty(limits, 0.4) == math.inf


def test_credits_that_last_for_half_a_year() -> None:
    """Case 3 (rawkode): slow after six months, by a load that looks like nothing."""
    assert days_until_empty(efs(10 * GIB), 0.63) == pytest.approx(183, abs=20)


def test_more_data_is_no_answer() -> None:
    """Case 4 (aws-cf-templates#116): at the baseline, it is "almost impossible to add" data."""
    limits = efs(10 * GIB)
    enough = 200 * GIB
    assert write_mib(efs(enough)) == pytest.approx(10, rel=0.03)
    seconds = (enough - 10 * GIB) / (write_mib(limits) * MIB)
    assert seconds / DAY_S == pytest.approx(2.25, abs=0.01)
    bought = efs(10 * GIB, 10.0 * MIB, mode="provisioned")
    assert write_mib(bought) == 10


def test_peaks_far_below_the_burst_rate_drain_credits() -> None:
    """Case 6 (engineering-development-hub#36): a job each minute; 5 MiB/s provisioned ended it."""
    limits = efs(5 * GIB)
    bucket = bucket_of(limits)
    peak, share = 10.0 * MIB, 0.1
    assert peak < 0.11 * bucket.peak_per_second
    level = initial(bucket, is_new=True)
    before = level.estimate_credits
    for _ in range(60):
        level = advance(level, bucket, MINUTE_S * share, Use.exactly(peak * MINUTE_S * share))
        level = advance(level, bucket, MINUTE_S * (1 - share), Use.exactly(0.0))
    drained = (before - level.estimate_credits) / 3600
    assert drained == pytest.approx(peak * share - bucket.fill_per_second, rel=0.01)
    assert before / drained / DAY_S == pytest.approx(34, abs=1)
    bought = efs(5 * GIB, 5.0 * MIB, mode="provisioned")
    assert (write_mib(bought), bought.buckets) == (5, ())


def test_limit_of_one_client_is_below_that_of_the_file_system() -> None:
    """Case 7 (diux-dev/cluster#35): 5.7 TiB, base 286.8, burst 570 MiB/s; rsync had half of it."""
    limits = efs(5.7 * TIB)
    assert write_mib(limits) == pytest.approx(286.8, rel=0.01)
    assert bucket_of(limits).peak_per_second / MIB == pytest.approx(570, rel=0.001)
    row, _ = with_options(CATALOG["aws.efs"], int(5.7 * TIB), {"mode": "bursting"})
    client = client_of(row, int(5.7 * TIB))
    assert client is not None
    assert client.write_bytes_per_second == 500 * MIB  # 250 MB/s in 2018
    assert write_mib(limits) < 500 < bucket_of(limits).peak_per_second / MIB


def test_small_file_system_under_a_prometheus() -> None:
    """Case 8 (external-storage#355): 10 GB; a steady 5 MiB/s ends the credits within a week.

    The other limit was the network of a t2, of which the catalogue of machines has nothing.
    """
    assert days_until_empty(efs(10 * GB), 5.0) == pytest.approx(5.6, abs=0.1)


@pytest.mark.parametrize(
    ("reads", "writes", "load"), [(0, 7000, 1), (35000, 0, 1), (17500, 3500, 1), (0, 3500, 0.5)]
)
def test_iops_are_a_limit_of_their_own(reads: int, writes: int, load: float) -> None:
    """Case 9 (cool-assessment-terraform#230): small requests reach it far below the bandwidth."""
    limits = efs(10 * TIB)
    work = (reads, writes, reads * 4.0 * KIB, writes * 4.0 * KIB)
    assert load_ratio(limits.promise_charges, 1.0, *work) == pytest.approx(load)
    bandwidth = tuple(each for each in limits.promise_charges if each.limit == "bandwidth")
    assert (load_ratio(bandwidth, 1.0, *work) or 0) < 0.3


def test_shares_of_a_standard_account_share_its_limit() -> None:
    """Case 11 (azure-docs#86405): 1000 or 20000 IOPS, and the account throttles, not the share."""
    row = CATALOG["azure.files-payg"]
    assert row.shared_by is not None
    assert "all shares of the storage account" in row.shared_by
    for option, iops in (("off", 1000), ("on", 20000)):
        chosen = Provision(options={"large_shares": option})
        assert derive_limits(row, 5 * TIB, chosen).rates.read_iops == iops


def test_storage_without_published_limits_has_none_to_reach() -> None:
    """Case 14 (kata-containers#5904): the guest of a virtiofs cannot tell disk from cache."""
    limits = derive_limits(CATALOG["yandex.filestore-ssd"], 100 * GIB, Provision())
    assert (limits.budget, limits.promise_charges, limits.buckets) == (None, (), ())
    assert nfs_disks([Mount(0, 50, "/", "/srv", "epd0123", "virtiofs")]) == ()
