"""What `make nfs` compares. Needs no virtual machine."""

import io
import socket
import threading

import pytest

from vm.nfs_loads import waited_s
from vm.nfs_proxy import Bucket, message


def test_waits_at_the_same_time_count_once_and_within_the_time_only() -> None:
    waits = [(0.0, 11.0), (12.0, 13.0), (12.5, 14.0), (19.0, 30.0), (40.0, 41.0)]
    assert waited_s(waits, 10.0, 20.0) == pytest.approx(1 + 2 + 1)
    assert waited_s([], 10.0, 20.0) == 0


def test_the_proxy_admits_a_tenth_of_a_second_at_once_and_then_its_rate() -> None:
    bucket = Bucket(100.0, io.StringIO())
    assert [bucket.admitted_s(1, 50.0) for _ in range(10)] == [50.0] * 10
    assert bucket.admitted_s(2, 50.0) == pytest.approx(50.0)
    assert bucket.admitted_s(1, 50.0) == pytest.approx(50.02)
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
