"""Snapshots: the health of parts of the daemon beside that of the sampler."""

from disksla.base.operating_system import SourceHealth
from disksla.state.pipeline import Snapshot
from support.simulated_host import Machine


def test_health_of_parts_of_the_daemon_is_added() -> None:
    state = Machine().state
    before = Snapshot(state).sampler
    health = (
        SourceHealth("state", 3, works=False, problem="No space left on device"),
        SourceHealth("systemd", 2, works=None),
        SourceHealth("web", 0, works=True),
    )
    after = Snapshot(state, health, {("file", "invalid"): 2})
    assert after.terms.failures == {("file", "invalid"): 2}
    assert after.sampler.errors == {**before.errors, "state": 3, "systemd": 2, "web": 0}
    assert after.sampler.collectors == {**before.collectors, "state": False, "web": True}
    assert after.sampler.problems == {"state": "No space left on device"}
    assert Snapshot(state).sampler == before
