"""What `make nfs` compares. Needs no virtual machine."""

import io
import socket
import threading

import pytest

from vm.nfs import unlike_stall
from vm.nfs_guest import seen_in
from vm.nfs_loads import LOADS, Load, Via, unlike_truth, waited_s
from vm.nfs_proxy import Bucket, message

PAGE = """\
12.5
disksla_verdict_seconds_total{device="127.0.0.1:/a@/b",verdict="throttled"} 3.0
disksla_verdict_seconds_total{device="vda",verdict="throttled"} 4.0
disksla_inflight{device="127.0.0.1:/a@/b"} 2.0
disksla_sampler_ticks_total 100.0
"""


def test_what_is_seen_is_of_one_mount() -> None:
    seen = seen_in(PAGE, "127.0.0.1:/a@/b", 7.0)
    assert (seen.uptime_s, seen.host_s, seen.in_flight, seen.ticks) == (12.5, 7.0, 2.0, 100.0)
    assert seen.verdicts == {"throttled": 3.0}
    before = seen._replace(verdicts={"throttled": 1.0})
    assert (seen.since(before, "throttled"), seen.since(before, "stalled")) == (2.0, 0.0)


def test_waits_at_the_same_time_count_once_and_within_the_time_only() -> None:
    waits = [(0.0, 11.0), (12.0, 13.0), (12.5, 14.0), (19.0, 30.0), (40.0, 41.0)]
    assert waited_s(waits, 10.0, 20.0) == pytest.approx(1 + 2 + 1)
    assert waited_s([], 10.0, 20.0) == 0


@pytest.mark.parametrize(
    ("throttled", "truth", "is_exact", "differs"),
    [
        (0.95, 1.0, True, False),
        (0.9, 1.0, True, True),
        (0.2, 0.1, True, True),
        (0.0, 1.0, False, False),
        (0.2, 0.1, False, True),
    ],
)
def test_more_than_eight_points_differ(
    throttled: float, truth: float, is_exact: bool, differs: bool
) -> None:
    load = Load("a", Via("iops", 40), "", is_exact=is_exact)
    assert bool(list(unlike_truth(load, throttled, truth))) == differs


@pytest.mark.parametrize(
    ("stopped_s", "stalled_s", "differs"),
    [(2, 0.0, False), (2, 0.1, True), (5, 4.0, False), (5, 0.0, True), (5, 9.0, True)],
)
def test_a_server_is_stalled_for_as_long_as_it_does_not_answer(
    stopped_s: float, stalled_s: float, differs: bool
) -> None:
    assert bool(list(unlike_stall(stopped_s, stalled_s))) == differs


def test_terms_are_those_of_the_limit() -> None:
    assert Via("requests", 40).terms == {"budget": "sum", "iops": 40}
    assert Via("bps", 40).terms == {"budget": "sum", "bandwidth": "40B/s"}
    assert len({load.name for load in LOADS}) == len(LOADS)


def test_the_proxy_admits_a_tenth_of_a_second_at_once_and_then_its_rate() -> None:
    bucket = Bucket(100.0, io.StringIO())
    assert [bucket.admitted_s(1, 50.0) for _ in range(10)] == [50.0] * 10
    assert bucket.admitted_s(2, 50.0) == pytest.approx(50.02)
    assert bucket.admitted_s(1, 50.0) == pytest.approx(50.03)
    assert bucket.admitted_s(1, 60.0) == 60.0


def test_the_proxy_takes_a_message_with_all_its_fragments() -> None:
    sent = b"\0\0\0\3abc\x80\0\0\2de"
    sender, receiver = socket.socketpair()
    with sender, receiver:
        threading.Thread(target=sender.sendall, args=(sent + b"\x80\0\0\1f",)).start()
        assert message(receiver) == sent
        assert message(receiver) == b"\x80\0\0\1f"
        sender.close()
        with pytest.raises(EOFError):
            message(receiver)
