from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.state.pipeline import Tick
from disksla.verdict.interval import Clocks as TickClocks
from lab.truth import WINDOW_S
from vm.limits import Change, QemuLimits
from vm.truth import (
    Admission,
    Clocks,
    Completion,
    Count,
    Match,
    Pause,
    Request,
    Trace,
    Wait,
    by_disk,
    counts_of_guest,
    counts_of_host,
    matched_clocks,
    matches,
    own_lines,
    read_trace,
    truth_of,
    windows_of,
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


LINES = """\
7@100.000000:blk_root_attach child 0xc blk 0xb1 bs 0xd1
7@101.000000:virtio_blk_handle_write vdev 0xe req 0xf1 sector 8 nsectors 8
7@101.000010:virtio_blk_handle_write vdev 0xe req 0xf2 sector 16 nsectors 8
7@101.000020:blk_co_pwritev blk 0xb1 bs 0xd1 offset 4096 bytes 8192 flags 0x0
7@101.000100:blk_co_preadv blk 0xb0 bs 0xd0 offset 0 bytes 512 flags 0x0
7@101.000110:bdrv_co_preadv_part bs 0xd0 offset 0 bytes 512 flags 0x0
7@101.250000:bdrv_co_pwritev_part bs 0xd1 offset 4096 bytes 8192 flags 0x0
7@101.250100:virtio_blk_req_complete vdev 0xe req 0xf1 status 0
7@101.250110:virtio_blk_req_complete vdev 0xe req 0xf2 status 0
qemu-system-x86_64: warning: this is not an event
7@101.300000:virtio_blk_req_complete vdev 0xe req 0xf1 status 0
7@102.000000:virtio_blk_handle_read vdev 0xe req 0xf1 sector 0 nsectors 1
7@102.000020:blk_co_preadv blk 0xb1 bs 0xd1 offset 0 bytes 512 flags 0x0
7@102.000030:bdrv_co_preadv_part bs 0xd1 offset 0 bytes 512 flags 0x0
""".splitlines()


def test_requests_have_their_times() -> None:
    trace = read_trace(own_lines(LINES))
    assert trace.plugged_s == [100.0]
    assert trace.requests == [
        Request(101.0, 101.2501, is_write=True, size_bytes=4096),
        Request(101.00001, 101.25011, is_write=True, size_bytes=4096),
        Request(102.0, None, is_write=False, size_bytes=512),
    ]


def test_limiter_sees_merged_requests_and_admits_some_at_once() -> None:
    trace = read_trace(own_lines(LINES))
    assert trace.admissions == [
        Admission(101.00002, 101.25, is_write=True, size_bytes=8192),
        Admission(102.00002, 102.00003, is_write=False, size_bytes=512),
    ]
    assert [admission.waited for admission in trace.admissions] == [True, False]


def test_other_disks_and_messages_are_left_out() -> None:
    kept = own_lines(LINES)
    assert len(kept) == len(LINES) - 3
    assert not any("0xd0" in line or "warning" in line for line in kept)
    assert own_lines(kept) == kept


def test_lines_are_those_of_one_disk_each() -> None:
    first = [
        "7@1.0:blk_root_attach child 0xc blk 0xb1 bs 0xd1",
        "7@1.1:virtio_blk_handle_read vdev 0xe1 req 0xf sector 0 nsectors 8",
        "7@1.2:blk_co_preadv blk 0xb1 bs 0xd1 offset 0 bytes 4096 flags 0x0",
        "7@1.3:bdrv_co_preadv_part bs 0xd1 offset 0 bytes 4096 flags 0x0",
        "7@1.4:virtio_blk_req_complete vdev 0xe1 req 0xf status 0",
    ]
    second = [line.replace("1 ", "2 ").replace("7@1", "7@2") for line in first]
    later = "7@3.0:virtio_blk_handle_read vdev 0xe1 req 0xf sector 0 nsectors 8"
    lines = [*first, *second, later]
    assert by_disk(lines, 2) == [[*first, later], second]
    assert by_disk(lines, 1) == [lines]
    together = read_trace(lines)
    assert [len(read_trace(own).requests) for own in by_disk(lines, 2)] == [2, 1]
    assert len(together.requests) == 3
    assert len(together.admissions) == 2


SAME = Clocks(0.0, (), 0.0)
spans = st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 2.0))


@given(st.lists(spans, max_size=30), st.lists(st.floats(0.0, 5.0), max_size=30))
def test_windows_are_contiguous_with_all_the_waiting(
    waits: list[tuple[float, float]], completed: list[float]
) -> None:
    given_waits = [Wait(begun_s, begun_s + length_s) for begun_s, length_s in waits]
    completions = [Completion(at_s, is_write=at_s < 2, size_bytes=512) for at_s in completed]
    windows = windows_of(given_waits, completions, 1.0, 4.05)
    begun_s, ended_s = windows[0].start_s, windows[-1].end_s
    assert begun_s == 1.0
    assert ended_s == pytest.approx(4.0)
    assert all(before.end_s == after.start_s for before, after in pairwise(windows))
    within = [
        max(0.0, min(wait.ended_s, ended_s) - max(wait.begun_s, begun_s)) for wait in given_waits
    ]
    assert sum(window.wait_s for window in windows) == pytest.approx(sum(within))
    for window in windows:
        assert 0.0 <= window.throttled_s <= WINDOW_S + 1e-9
        assert window.throttled_s <= window.wait_s + 1e-9
    count = sum(begun_s <= at_s < ended_s for at_s in completed)
    assert sum(window.reads + window.writes for window in windows) == count


def test_window_has_its_requests_limit_and_credits() -> None:
    limits = QemuLimits(iops=10, iops_max=40, iops_max_length=2)
    trace = Trace(
        [0.0],
        [Request(1.01, 1.02, is_write=True, size_bytes=4096)],
        [
            Admission(1.01, 1.0101, is_write=True, size_bytes=4096),
            Admission(1.15, 1.25, is_write=False, size_bytes=4096),
            Admission(1.28, None, is_write=False, size_bytes=4096),
        ],
    )
    first, second, third = truth_of(trace, [Change(0.5, limits)], SAME, 1.0, 1.3001)
    assert (first.writes, first.written_bytes, first.reads) == (1, 4096, 0)
    assert (first.waiting, first.throttled_s, first.limit, first.rate) == (0, 0.0, None, None)
    assert first.credits == {"iops": pytest.approx(79.899)}
    assert (second.waiting, second.limit, second.rate) == (1, "iops", "burst")
    assert second.throttled_s == pytest.approx(0.05)
    assert third.throttled_s == pytest.approx(0.07)
    assert third.credits == {"iops": pytest.approx(79.5)}


def test_limiter_at_its_base_rate() -> None:
    limits = QemuLimits(iops=10, iops_max=20, iops_max_length=1)
    admitted = [Admission(1.0, 1.0, is_write=False, size_bytes=512)] * 22
    waiting = Admission(1.01, 2.0, is_write=False, size_bytes=512)
    trace = Trace([0.0], [], [*admitted, waiting])
    [window] = truth_of(trace, [Change(0.5, limits)], SAME, 1.0, 1.1001)
    assert (window.rate, window.credits) == ("base", {"iops": 0.0})
