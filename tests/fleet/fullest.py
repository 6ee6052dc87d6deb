"""The disk of which there is most to say: everything that can be published, at once."""

from msgspec.structs import replace

from accounts import a_line, an_account
from disksla.core.limits import NOTHING_PROMISED, Bucket, Burst, Rates
from disksla.core.probeledger import FAILURE_REASONS, ProbeLedger
from disksla.core.probeoutcome import ProbeOutcome
from disksla.core.suite import make_suite
from disksla.core.view import DiskView
from views import BYTE_CREDITS, IOPS_CREDITS, SEPARATE_LIMITS, probed_disk_view

_BUCKETS = (
    Bucket("iops", 8000.0, 300.0, 300.0, 2000.0),
    Bucket("bytes", 64e6, 30e6, 30e6, 60e6),
)


def fullest_disk() -> DiskView:
    """Give a disk with a promise in every respect, credits of two buckets, both kinds of probes
    and an account of the longest suite.
    """
    burst = Burst(Rates(2000.0, 2000.0, 60e6, 60e6), _BUCKETS)
    limits = replace(SEPARATE_LIMITS, burst=burst)
    view = probed_disk_view()
    probes = {kind: _probed(ledger) for kind, ledger in view.probes.items()}
    lines = max(
        (make_suite(name, limits, 0.03).lines for name in ("vk", "yandex", "terms")), key=len
    )
    return replace(
        view,
        assignment=replace(view.assignment, limits=limits),
        credits=(IOPS_CREDITS, BYTE_CREDITS),
        probes=probes,
        verification=an_account(*(a_line(line.test) for line in lines)),
    )


def built_up() -> dict[str, DiskView]:
    """Give that disk with less, and more and more of it, by what was added last."""
    full = fullest_disk()
    probed: dict[str, object] = {
        name: {"read-latency": getattr(full, name)["read-latency"]}
        for name in ("probes", "probe_intervals_s")
    }
    plain = replace(full.assignment.limits, burst=None)
    unprobed: dict[str, object] = {"probes": {}, "probe_intervals_s": {}, "verification": None}
    none = {"credits": (), **unprobed}
    unknown = replace(full.disk, holders=())
    promised = replace(full, assignment=replace(full.assignment, limits=plain), **none)
    bursting = replace(full, **unprobed)
    return {
        "a disk of which nothing is known": replace(
            promised,
            disk=unknown,
            assignment=replace(full.assignment, limits=NOTHING_PROMISED),
            load=None,
            ceiling=None,
        ),
        "that was held once": replace(
            promised,
            disk=unknown,
            assignment=replace(full.assignment, limits=NOTHING_PROMISED),
            load=None,
        ),
        "with terms that promise rates and a latency": replace(promised, disk=unknown),
        "with one holder (LVM, dm-crypt, md)": promised,
        "with credits of two buckets": bursting,
        "with probes of reads": replace(bursting, **probed),
        "and of writes": replace(full, verification=None),
        "after `disksla verify` with VK's suite": full,
    }


def _probed(ledger: ProbeLedger) -> ProbeLedger:
    outcome = ProbeOutcome(
        device="vdb", kind="read-latency", timestamp_s=1.7e9, achieved_iops=20.0, target_iops=20.0
    )
    assert set(ledger.failures) == set(FAILURE_REASONS)
    return ledger.plus(outcome)
