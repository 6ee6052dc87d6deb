"""Totals of verdicts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.procfs.iowait import HostWait
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.totals import VerdictTotals
from disksla.verdict.interval.interval import idle
from disksla.verdict.throttling.throttle import LIMIT_KINDS, Throttle
from disksla.verdict.throttling.verdict import VERDICTS, WindowVerdict
from support.examples import scaled
from support.simulated_host import Machine, a_disk

verdicts = st.one_of(
    st.sampled_from([WindowVerdict(verdict) for verdict in VERDICTS if verdict != "throttled"]),
    st.builds(
        WindowVerdict,
        verdict=st.just("throttled"),
        throttle=st.builds(Throttle, level=st.just("base"), limit=st.sampled_from(LIMIT_KINDS)),
        wait_s=st.floats(0, 10),
    ),
)


@given(st.lists(st.tuples(verdicts, st.floats(0.01, 0.3))))
def test_each_window_has_one_verdict(windows: list[tuple[WindowVerdict, float]]) -> None:
    of_each = [idle(0.0, seconds) for _, seconds in windows]
    totals = VerdictTotals().plus(of_each, [window_verdict for window_verdict, _ in windows])
    assert sum(totals.seconds) == pytest.approx(sum(seconds for _, seconds in windows))
    throttled_s = totals.seconds[VERDICTS.index("throttled")]
    assert sum(totals.throttled_s) == pytest.approx(throttled_s)
    assert totals.wait_s == pytest.approx(
        sum(window_verdict.wait_s for window_verdict, _ in windows)
    )


def test_idle_time_and_host_wait_are_added() -> None:
    totals = VerdictTotals().plus_idle(3.0).plus_host(HostWait(0.1, 0.2, 0.3))
    totals = totals.plus_host(HostWait(0.1, 0.2, 0.3))
    assert dict(zip(VERDICTS, totals.seconds, strict=True))["idle"] == 3.0
    assert totals.host == HostWait(0.2, 0.4, 0.6)


ticks = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 29, 30, 31, 60, 500]),
        st.integers(0, 4000),
        st.sampled_from([0, 0, 1, 2, 32]),
        st.sampled_from([0.1, 0.1, 0.1, 0.1001, 0.118, 0.25, 5.0]),
        st.sampled_from(["as it is"] * 9 + [None]),
    ),
    max_size=60,
)


@scaled(60)
@given(ticks=ticks, has_terms=st.booleans())
def test_verdicts_sum_to_assessed_time(
    ticks: list[tuple[int, int, int, float, str | None]], has_terms: bool
) -> None:
    entry = DiskEntry(match=DiskMatch(device="vda"), terms=SumTerms(iops=300.0))
    machine = Machine(a_disk(), settings=Settings(disks=(entry,) if has_terms else ()))
    for reads, read_ms, inflight, after_s, text in ticks:
        machine.does(
            "vda", reads=reads, read_sectors=8 * reads, read_ms=read_ms, inflight=inflight
        )
        machine.tick(after_s, text=text)
    state = machine.state
    disk_totals = state.monitored["vda"].totals.with_idle_until(state.assessed, machine.now_s)
    totals = disk_totals.verdict_totals
    undecided_s = sum(window.seconds for window in disk_totals.undecided.windows)
    assert sum(totals.seconds) + undecided_s == pytest.approx(state.assessed.seconds)
    assert undecided_s < 2.5
    assert sum(totals.throttled_s) == pytest.approx(totals.seconds[VERDICTS.index("throttled")])
