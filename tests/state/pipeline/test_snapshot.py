"""Snapshots: the health of parts of the daemon beside that of the sampler."""

from disksla.base.operating_system import SourceHealth
from disksla.promise.catalogue import TermsSource
from support.snapshots import disk_view, view


def test_with_health_adds_parts_of_the_daemon() -> None:
    before = view(disk_view())
    after = before.with_health(
        [
            SourceHealth("state", 3, works=False, problem="No space left on device"),
            SourceHealth("systemd", 2, works=None),
            SourceHealth("web", 0, works=True),
        ]
    )
    assert after.disks == before.disks
    assert after.sampler.errors == {**before.sampler.errors, "state": 3, "systemd": 2, "web": 0}
    assert after.sampler.collectors == {**before.sampler.collectors, "state": False, "web": True}
    assert after.sampler.problems == {
        **before.sampler.problems,
        "state": "No space left on device",
    }
    assert "state" not in before.sampler.errors


def test_with_health_replaces_the_health_of_a_source() -> None:
    failed = view().with_health([SourceHealth("state", 1, works=False, problem="full")])
    assert failed.with_health([SourceHealth("state", 1, works=True)]).sampler.collectors["state"]


def test_with_terms_failures_changes_nothing_else() -> None:
    before = view(disk_view())
    failures: dict[tuple[TermsSource, str], int] = {("file", "invalid"): 2, ("api", "denied"): 1}
    after = before.with_terms_failures(failures)
    assert after.terms.failures == failures
    assert after.with_terms_failures({}) == before
