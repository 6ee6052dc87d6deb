import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.state.pipeline import Tick
from disksla.verdict.interval import Clocks as TickClocks
from vm.truth import (
    Clocks,
    Count,
    Match,
    Pause,
    Request,
    Trace,
    counts_of_guest,
    counts_of_host,
    matched_clocks,
    matches,
)

PAUSES = (Pause(103.0, 106.0), Pause(108.0, 109.0))


@given(st.floats(100.0, 120.0), st.floats(-50.0, 50.0))
def test_clocks_convert_both_ways(host_s: float, ahead_s: float) -> None:
    clocks = Clocks(ahead_s, PAUSES, 0.0)
    back_s = clocks.to_host(clocks.to_guest(host_s))
    paused = any(pause.begun_s <= host_s <= pause.ended_s for pause in PAUSES)
    if not paused:
        assert back_s == pytest.approx(host_s)
    assert clocks.to_guest(back_s) == pytest.approx(clocks.to_guest(host_s))


@given(st.floats(-1000.0, 1000.0), st.integers(0, 1000))
def test_counts_of_bytes_match_the_clocks(ahead_s: float, phase: int) -> None:
    gaps = [0.001 + 0.005 * ((number * 7 + phase) % 11) / 11 for number in range(2000)]
    times = [100.0 + sum(gaps[:number]) for number in range(len(gaps))]
    host = [Count(at_s, 512 * number) for number, at_s in enumerate(times, start=1)]
    guest = [
        Count(
            100.05 + 0.1 * number - ahead_s,
            512 * sum(at_s <= 100.05 + 0.1 * number for at_s in times),
        )
        for number in range(60)
    ]
    clocks = matched_clocks(matches(host, guest), ())
    assert clocks.ahead_s == pytest.approx(ahead_s, abs=0.003)
    assert clocks.error_s < 0.003


def test_counts_that_differ_do_not_match() -> None:
    host = [Count(100.0 + 0.01 * number, 512 * number) for number in range(1, 40)]
    assert matches(host, [Count(5.0, 700), Count(6.0, 512 * 39)]) == []
    assert matches(host, [Count(5.0, 1024)]) == [Match(5.0, host[1].at_s, host[2].at_s)]


def tick(at_s: float, device: str, sectors: int) -> Tick:
    line = f" 254 0 {device} 1 0 {sectors} 0 1 0 {sectors} 0 0 0 0 0 0 0 0 0 0\n"
    return Tick(TickClocks(at_s, at_s, at_s), f" 8 0 sda 1 0 9 0 1 0 9 0 0 0 0\n{line}")


def test_counts_begin_again_when_a_disk_is_plugged_in() -> None:
    ticks = [
        *(tick(1.0, "vda", 0), tick(1.1, "vda", 8), tick(1.2, "vda", 3)),
        *(tick(1.3, "vdb", 5), tick(1.4, "vda", 6)),
    ]
    assert counts_of_guest(ticks, ["vda"]) == [
        [Count(1.0, 0), Count(1.1, 8192)],
        [Count(1.2, 3072)],
        [Count(1.4, 6144)],
    ]
    requests = [
        Request(arrived_s, completed_s, is_write=False, size_bytes=512)
        for arrived_s, completed_s in ((1.0, 1.3), (1.1, 1.2), (1.2, None), (2.1, 2.2))
    ]
    assert counts_of_host(Trace([0.5, 2.0], requests, []), ()) == [
        [Count(1.2, 512), Count(1.3, 1024)],
        [Count(2.2, 512)],
    ]
