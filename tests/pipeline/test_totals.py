"""Seconds by verdict."""

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from disksla.config.custom_terms import SumTerms
from disksla.config.settings import DiskEntry, DiskMatch, Settings
from disksla.pipeline.totals import VerdictTotals
from disksla.procfs.iowait import HostWait
from disksla.verdict.throttling import LIMIT_KINDS, Throttle
from disksla.verdict.verdict import VERDICTS, WindowVerdict
from support.simulated_host import Machine, a_disk

judgements = st.one_of(
    st.sampled_from([WindowVerdict(verdict) for verdict in VERDICTS if verdict != "throttled"]),
    st.builds(
        WindowVerdict,
        verdict=st.just("throttled"),
        throttle=st.builds(Throttle, level=st.just("base"), limit=st.sampled_from(LIMIT_KINDS)),
        wait_s=st.floats(0, 10),
    ),
)


@given(st.lists(st.tuples(judgements, st.floats(0.01, 0.3))))
def test_all_that_is_judged_is_in_one_verdict(windows: list[tuple[WindowVerdict, float]]) -> None:
    ledger = VerdictTotals()
    for window_verdict, seconds in windows:
        ledger = ledger.plus(window_verdict, seconds)
    assert sum(ledger.seconds) == pytest.approx(sum(seconds for _, seconds in windows))
    throttled_s = ledger.seconds[VERDICTS.index("throttled")]
    assert sum(ledger.throttled_s) == pytest.approx(throttled_s)
    assert ledger.wait_s == pytest.approx(
        sum(window_verdict.wait_s for window_verdict, _ in windows)
    )


def test_sleep_is_idle_and_the_host_waits_apart() -> None:
    ledger = VerdictTotals().plus_idle(3.0).plus_host(HostWait(0.1, 0.2, 0.3))
    ledger = ledger.plus_host(HostWait(0.1, 0.2, 0.3))
    assert dict(zip(VERDICTS, ledger.seconds, strict=True))["idle"] == 3.0
    assert ledger.host == HostWait(0.2, 0.4, 0.6)


doings = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 29, 30, 31, 60, 500]),
        st.integers(0, 4000),
        st.sampled_from([0, 0, 1, 2, 32]),
        st.sampled_from([0.1, 0.1, 0.1, 0.1001, 0.118, 0.25, 5.0]),
        st.sampled_from(["as it is"] * 9 + [None]),
    ),
    max_size=60,
)


@hypothesis_settings(max_examples=60)
@given(doings=doings, known=st.booleans())
def test_verdicts_add_up_to_the_time_that_was_judged(
    doings: list[tuple[int, int, int, float, str | None]], known: bool
) -> None:
    entry = DiskEntry(match=DiskMatch(device="vda"), terms=SumTerms(iops=300.0))
    machine = Machine(a_disk(), settings=Settings(disks=(entry,) if known else ()))
    for reads, read_ms, inflight, after_s, text in doings:
        machine.does(
            "vda", reads=reads, read_sectors=8 * reads, read_ms=read_ms, inflight=inflight
        )
        machine.tick(after_s, text=text)
    state = machine.state
    watched = state.monitored["vda"]
    settled = watched.totals.settled(state.assessed, machine.now_s)
    assert sum(settled.verdict_totals.seconds) == pytest.approx(state.assessed.seconds)
    assert sum(settled.verdict_totals.throttled_s) == pytest.approx(
        settled.verdict_totals.seconds[VERDICTS.index("throttled")]
    )
