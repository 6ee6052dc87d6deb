"""iowait and pressure of the host, and their attribution to disks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.procfs.iowait import HostWait
from disksla.state.pipeline.state import needs_host_wait
from support.simulated_host import Machine, a_disk

times_s = st.floats(0, 1e9)
maybe_s = st.none() | times_s


def test_since_is_zero_where_iowait_decreases() -> None:
    assert HostWait(9.5, 5.5, 4.0).since(HostWait(10.0, 5.0, 4.0)) == HostWait(0.0, 0.5, 0.0)


def test_unknown_seconds_stay_none() -> None:
    assert HostWait(11.0).since(HostWait(10.0)) == HostWait(1.0)
    assert HostWait(11.0, 1.0, 1.0).since(HostWait()) == HostWait()
    assert HostWait(1.0, 2.0, 3.0) + HostWait(1.0) == HostWait(2.0)
    assert HostWait(1.0, 2.0, 3.0).where_known(HostWait(99.0)) == HostWait(1.0)


def test_shared_is_in_proportion_to_waiting() -> None:
    parts = HostWait(1.0, 0.5, None).shared({"vda": 3.0, "vdb": 1.0})
    assert parts == {"vda": HostWait(0.75, 0.375), "vdb": HostWait(0.25, 0.125)}


def test_shared_is_equal_without_waiting() -> None:
    parts = HostWait(1.0).shared({"vda": 0.0, "vdb": 0.0})
    assert parts == {"vda": HostWait(0.5), "vdb": HostWait(0.5)}


@given(
    st.builds(HostWait, maybe_s, maybe_s, maybe_s),
    st.dictionaries(st.text(), st.floats(0, 1e6), min_size=1, max_size=5),
)
def test_shares_add_up_to_the_whole(whole: HostWait, waited_s: dict[str, float]) -> None:
    parts = whole.shared(waited_s)
    assert parts.keys() == waited_s.keys()
    for field in HostWait.__struct_fields__:
        whole_s = getattr(whole, field)
        each_s = [getattr(part, field) for part in parts.values()]
        if whole_s is None:
            assert set(each_s) == {None}
        else:
            assert sum(each_s) == pytest.approx(whole_s, abs=1e-6)


def test_host_wait_is_read_at_first_and_while_throttled() -> None:
    machine = Machine(a_disk(), unreadable=True)
    assert needs_host_wait(machine.state)
    machine = Machine(a_disk())
    assert not needs_host_wait(machine.state)
    machine.does("vda", reads=30, read_ms=60, inflight=1)
    machine.tick()
    assert not needs_host_wait(machine.state)
