"""The helper with its clients: a real Unix socket, disks whose answers the test sets."""

import errno
import os
import socket
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.operating_system.packets import LONGEST_BYTES, connect, decode_packet, encode
from disksla.clouds.ebs_statistics.client import EbsClient
from disksla.clouds.ebs_statistics.helper import (
    LONGEST_S,
    MOST_CLIENTS,
    NORMAL_S,
    NOT_AGAIN_S,
    WATCHED_S,
    Pace,
)
from disksla.clouds.ebs_statistics.reading import MESSAGES, Alive, Failure, Reading, Watch
from disksla.clouds.ebs_statistics.statistics_page import parse
from support.ebs_disks import Disks, helping
from support.ebs_pages import Page
from support.log_events import Event, events
from support.waiting import eventually

Captured = pytest.LogCaptureFixture
WITHIN_S = 20
PAGE = Page(total_read_ops=5).written()


def connected(path: Path) -> socket.socket:
    return connect(path, WITHIN_S)


def listening_at(path: Path) -> socket.socket:
    """Return the socket of a helper that the test is."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(path))
    listening.listen()
    return listening


def received(client: socket.socket, messages: int) -> list[Reading | Failure]:
    return [next_of(client) for _ in range(messages)]


def next_of(client: socket.socket) -> Reading | Failure:
    """Return the next message about a disk."""
    message = decode_packet(MESSAGES, client.recv(LONGEST_BYTES))
    while isinstance(message, Alive):
        message = decode_packet(MESSAGES, client.recv(LONGEST_BYTES))
    return message


def of_ebs(caplog: Captured, message: str) -> list[Event]:
    return [event for event in events(caplog) if event.message == message]


@pytest.fixture
def disks(tmp_path: Path) -> Disks:
    return Disks(tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ebs.sock"


def test_every_client_gets_every_disk(disks: Disks, path: Path) -> None:
    disks.add("nvme1", PAGE, serial="vol1")
    disks.add("nvme2", PAGE, serial="vol2")
    with helping(disks, path), connected(path) as first, connected(path) as second:
        for client in (first, second):
            found = received(client, 4)
            assert {message.device for message in found} == {"nvme1n1", "nvme2n1"}
            assert all(isinstance(message, Reading) for message in found)


def test_nothing_is_read_without_a_client(disks: Disks, path: Path) -> None:
    disks.add("nvme1", PAGE)
    with helping(disks, path) as helper:
        with connected(path) as client:
            received(client, 1)
        assert eventually(lambda: not helper.clients, WITHIN_S)
        count = len(disks.commands)
        assert count <= 2
        with connected(path) as client:
            received(client, 1)
        assert len(disks.commands) > count


def test_a_watched_disk_is_read_ten_times_a_second(disks: Disks, path: Path) -> None:
    disks.add("nvme1", PAGE)
    with helping(disks, path), connected(path) as client:
        client.send(encode(Watch(("nvme1n1",))))
        times_s = of_readings(received(client, 13)[2:])
        assert len(times_s) == 11
        assert times_s[-1] - times_s[0] < 9  # once a second, it is 10
        client.send(encode(Watch(())))


def of_readings(messages: list[Reading | Failure]) -> list[float]:
    return [message.monotonic_s for message in messages if isinstance(message, Reading)]


def is_read(message: Reading | Failure) -> bool:
    return isinstance(message, Reading)


def test_a_problem_is_passed_on_and_logged_once(
    disks: Disks, path: Path, caplog: Captured
) -> None:
    caplog.set_level("INFO")
    answers = [OSError(errno.EACCES, "Permission denied")] * 2 + [PAGE] * 100
    disks.add("nvme1", lambda: answers.pop(0))
    with helping(disks, path), connected(path) as client:
        first, second, third = received(client, 3)
        assert isinstance(first, Failure)
        assert isinstance(second, Failure)
        assert first.reason == second.reason == "permission"
        assert isinstance(third, Reading)
        assert eventually(
            lambda: len(of_ebs(caplog, "statistics page readable again")) == 1, WITHIN_S
        )
    [event] = of_ebs(caplog, "statistics page not read")
    assert (event.level, event.fields["device"]) == ("warning", "nvme1n1")
    assert event.fields["reason"] == "permission"


def test_a_disk_that_is_removed_and_one_that_is_added(disks: Disks, path: Path) -> None:
    disks.add("nvme1", PAGE, serial="vol1")
    with helping(disks, path), connected(path) as client:
        assert is_read(next_of(client))
        disks.remove("nvme1")
        last = next_of(client)
        while not isinstance(last, Failure):
            last = next_of(client)
        assert last.reason == "removed"
        disks.add("nvme2", PAGE, serial="vol2")
        found = next_of(client)
        assert isinstance(found, Reading)
        assert (found.device, found.serial) == ("nvme2n1", "vol2")


def test_a_disk_that_does_not_answer_delays_no_other(disks: Disks, path: Path) -> None:
    never = threading.Event()

    def blocked() -> bytes:
        never.wait(WITHIN_S)
        return PAGE

    disks.add("nvme1", blocked)
    disks.add("nvme2", PAGE)
    with helping(disks, path), connected(path) as client:
        assert {message.device for message in received(client, 3)} == {"nvme2n1"}
        never.set()


def test_a_client_that_does_not_read_is_disconnected(
    disks: Disks, path: Path, caplog: Captured
) -> None:
    disks.add("nvme1", PAGE)
    with helping(disks, path) as helper, connected(path) as slow, connected(path) as client:
        received(client, 1)
        message = Failure("nvme9n1", "status", "x" * 1000)
        for _ in range(5000):
            helper._send(message)  # noqa: SLF001 -- what a thread of a disk does, only faster
            next_of(client)
        assert eventually(lambda: len(helper.clients) == 1, WITHIN_S)
        assert of_ebs(caplog, "client is too slow")
        while slow.recv(1 << 20):
            pass  # it was closed
        received_before = len(disks.commands)
        assert eventually(lambda: len(disks.commands) > received_before, WITHIN_S)


@pytest.mark.parametrize("junk", [b"hello", b"x" * 40_000])
def test_a_client_that_sends_junk_is_disconnected(
    disks: Disks, path: Path, caplog: Captured, junk: bytes
) -> None:
    with helping(disks, path), connected(path) as client:
        client.send(junk)
        while client.recv(LONGEST_BYTES):
            pass
        assert eventually(lambda: bool(of_ebs(caplog, "client disconnected")), WITHIN_S)


def test_more_clients_than_are_served(disks: Disks, path: Path, caplog: Captured) -> None:
    with helping(disks, path) as helper:
        clients = [connected(path) for _ in range(MOST_CLIENTS + 1)]
        assert clients[-1].recv(1) == b""
        assert of_ebs(caplog, "client refused")
        for client in clients:
            client.close()
        assert eventually(lambda: not helper.clients, WITHIN_S)


def test_the_client_of_the_daemon_posts_and_asks(
    disks: Disks, path: Path, caplog: Captured
) -> None:
    caplog.set_level("INFO")
    disks.add("nvme1", PAGE)
    posted: list[Reading | Failure] = []
    watched: list[frozenset[str]] = [frozenset()]
    client = EbsClient(path, posted.append, lambda: watched[0], retry_s=0.05)
    assert works(client) is None
    client.start()
    assert not eventually(lambda: works(client) is not None, 0.3)
    with helping(disks, path):
        assert eventually(lambda: len(posted) >= 2, WITHIN_S)
        assert works(client)
        watched[0] = frozenset({"nvme1n1"})
        count = len(posted)
        assert eventually(lambda: is_fast(posted[count:]), WITHIN_S)
    assert eventually(lambda: works(client) is None, WITHIN_S)
    with helping(disks, path):
        count = len(posted)
        assert eventually(lambda: len(posted) > count, WITHIN_S)
    client.stop()
    # A socket that does not listen yet refuses, which is logged too.
    logged = {"connected to the helper", "the helper has ended"}
    assert [event.message for event in events(caplog) if event.message in logged][:2] == [
        "connected to the helper",
        "the helper has ended",
    ]


def works(client: EbsClient) -> bool | None:
    return None if client.health is None else client.health.works


def is_fast(messages: list[Reading | Failure]) -> bool:
    times_s = of_readings(messages)
    return any(later - earlier < 0.5 for earlier, later in pairwise(times_s))


def test_a_helper_without_disks_says_that_it_works(disks: Disks, path: Path) -> None:
    client = EbsClient(path, lambda _: None, retry_s=0.05)
    client.start()
    with helping(disks, path):
        assert eventually(lambda: works(client) is True, WITHIN_S)
    client.stop()


def test_a_silent_helper_does_not_work(path: Path, caplog: Captured) -> None:
    caplog.set_level("INFO")
    with listening_at(path) as listening:
        client = EbsClient(path, lambda _: None, retry_s=0.05, silent_s=0.2)
        client.start()
        seen = []
        for _ in range(3):  # it connects again, and again hears nothing
            connection, _ = listening.accept()
            with connection:
                seen.append(works(client))
                assert connection.recv(1) == b""
        assert eventually(lambda: works(client) is False, WITHIN_S)
        client.stop()
    assert True not in seen
    health = client.health
    assert health is not None
    assert health.errors >= 2
    assert health.problem == f"{path}: the helper sends nothing"
    assert [event.message for event in events(caplog)] == ["no readings from the helper"]


def test_another_socket_of_a_reloaded_configuration(tmp_path: Path, disks: Disks) -> None:
    disks.add("nvme1", PAGE)
    posted: list[Reading | Failure] = []
    client = EbsClient(tmp_path / "none.sock", posted.append, retry_s=0.05)
    client.start()
    with helping(disks, tmp_path / "ebs.sock"):
        client.path = tmp_path / "ebs.sock"
        assert eventually(lambda: bool(posted), WITHIN_S)
        client.path = tmp_path / "none.sock"
        assert eventually(lambda: client.health is None, WITHIN_S)
    client.stop()


def test_a_helper_of_another_version_is_a_problem(path: Path, caplog: Captured) -> None:
    posted: list[Reading | Failure] = []
    with listening_at(path) as listening:
        client = EbsClient(path, posted.append, retry_s=0.05)
        client.start()
        for _ in range(3):
            connection, _ = listening.accept()
            connection.send(b'{"type":"greeting"}')
            connection.close()
        assert eventually(
            lambda: client.health is not None and client.health.errors >= 3, WITHIN_S
        )
        client.stop()
    assert client.health is not None
    assert client.health.problem is not None
    assert "expected a message of the same version" in client.health.problem
    assert posted == []
    assert len(of_ebs(caplog, "no readings from the helper")) <= 3


def test_a_socket_that_nothing_listens_on_is_a_problem(path: Path, caplog: Captured) -> None:
    listening_at(path).close()
    client = EbsClient(path, lambda _: None, retry_s=0.01)
    client.start()
    assert eventually(lambda: client.health is not None and client.health.errors >= 3, WITHIN_S)
    client.stop()
    assert client.health is not None
    assert client.health.works is False
    [event] = of_ebs(caplog, "no readings from the helper")
    assert event.fields["err"] == f"cannot connect to {path}: {os.strerror(errno.ECONNREFUSED)}"


STATISTICS = parse(Page().written())
FAILURE = Failure("nvme1n1", "status")


def taking(seconds: float, at_s: float = 100.0) -> Reading:
    return Reading("nvme1n1", "vol1", at_s, STATISTICS, seconds / 2)


def test_once_a_second_or_at_every_tick_while_watched() -> None:
    pace = Pace().after(taking(0.0001))
    assert pace.period_s(100.0, is_watched=False) == NORMAL_S
    assert pace.period_s(100.0, is_watched=True) == WATCHED_S


def test_a_disk_that_answers_slowly_is_not_read_more_often_for_a_minute() -> None:
    pace = Pace().after(taking(0.5))
    assert pace.period_s(100.5, is_watched=True) == NORMAL_S
    pace = pace.after(taking(0.001, at_s=101.0))
    assert pace.period_s(101.0, is_watched=True) == NORMAL_S
    assert pace.period_s(100.0 + NOT_AGAIN_S, is_watched=True) == WATCHED_S


@given(st.integers(1, 2000), st.booleans())
def test_failures_in_a_row_are_further_and_further_apart(failures: int, is_watched: bool) -> None:
    pace = Pace()
    periods_s = []
    for _ in range(failures):
        pace = pace.after(FAILURE)
        periods_s.append(pace.period_s(0.0, is_watched=is_watched))
    assert periods_s == sorted(periods_s)
    assert periods_s[0] == NORMAL_S
    assert periods_s[-1] <= LONGEST_S
    assert failures < 7 or periods_s[-1] == LONGEST_S
    assert pace.after(taking(0.001)) == Pace()
