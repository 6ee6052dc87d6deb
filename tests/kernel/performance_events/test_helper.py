"""The helper and its clients, each of which may be hostile; descriptors are those of pipes."""

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots
from disksla.base.operating_system.packets import decode_packet, encode
from disksla.base.operating_system.unix_socket import UnixSocket
from disksla.kernel.performance_events import EventsRequest, helper, opened
from disksla.kernel.performance_events.helper import (
    MOST_SETS,
    OpenSets,
    answer,
    passed_connection,
    serve,
)
from disksla.kernel.performance_events.opened import ask
from disksla.kernel.performance_events.opening import EventFiles, Plan, plan
from disksla.kernel.performance_events.protocol import (
    ANSWERS,
    MOST_DISKS,
    Batch,
    End,
    Refusal,
    Tracepoint,
)
from support.log_events import events

REQUEST = EventsRequest("data_writes", ("7:0", "7:1"))


class Pipes(Plan):
    """A plan of which the events are pipes."""

    def open(self) -> Iterator[tuple[int, list[int]]]:
        for cpu in (0, 1):
            yield cpu, [each for _ in self.filters for each in os.pipe()]


def pipes(request: EventsRequest) -> Plan:
    """Return a plan of as many events as a request needs, two for each pipe."""
    return Pipes("0-1", (Tracepoint(1, None),), ("",) * (request.events_of_cpu // 2), 2)


def refuse(_: EventsRequest) -> Plan:
    raise DiskslaError("cannot open performance events: denied")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 -- descriptors, not files


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield a client and the socket of the helper."""
    client, served = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with client, served:
        yield client, served


@contextmanager
def serving(path: Path, prepare: Callable[[EventsRequest], Plan] = pipes) -> Iterator[None]:
    with UnixSocket(path, socket.SOCK_SEQPACKET).listening() as listening:
        thread = threading.Thread(target=serve, args=(listening, prepare))
        thread.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_descriptors_are_handed_over_and_kept_by_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "events.sock"
    before = descriptors()
    with serving(path):
        found = ask(path, REQUEST)
        assert path.stat().st_mode & 0o777 == 0o660
        assert {cpu: len(of) for cpu, of in found.by_cpu.items()} == {0: 2, 1: 2}
        os.write(found.by_cpu[0][1], b"through")
        assert os.read(found.by_cpu[0][0], 10) == b"through"
        assert not any(os.get_inheritable(each) for of in found.by_cpu.values() for each in of)
        found.close()
    assert descriptors() == before
    assert not path.exists()


def test_many_events_come_in_several_packets(tmp_path: Path) -> None:
    request = EventsRequest("data_writes", tuple(f"7:{minor}" for minor in range(250)))
    with serving(tmp_path / "events.sock"):
        found = ask(tmp_path / "events.sock", request)
    assert {cpu: len(of) for cpu, of in found.by_cpu.items()} == {0: 250, 1: 250}
    found.close()


def test_a_refusal_is_passed_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with (
        serving(tmp_path / "events.sock", refuse),
        pytest.raises(DiskslaError, match=r"^cannot open performance events: denied$"),
    ):
        ask(tmp_path / "events.sock", REQUEST)
    assert [event.message for event in events(caplog)] == ["events not opened"]


@pytest.mark.parametrize(
    "packet",
    [
        b"nonsense",
        b"x" * 100_000,
        encode(REQUEST)[:-1],
        encode(EventsRequest("requests", ("sda",))),
    ],
)
def test_client_that_asks_for_anything_else(
    pair: tuple[socket.socket, socket.socket], packet: bytes
) -> None:
    client, served = pair
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 300_000)
    client.send(packet)
    answer(served, partial(plan, files=EventFiles(Roots())), OpenSets())
    assert isinstance(decode_packet(ANSWERS, client.recv(9000)), Refusal)


def test_client_that_passes_descriptors_leaves_none(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    client, served = pair
    reading, writing = os.pipe()
    socket.send_fds(client, [encode(REQUEST)], [reading] * 100)
    before = descriptors()
    answer(served, refuse, OpenSets())
    assert descriptors() == before
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"x")
    os.close(writing)


@pytest.mark.parametrize("behaviour", ["silent", "closed", "does not read"])
def test_client_that_does_not_take_part(
    pair: tuple[socket.socket, socket.socket],
    behaviour: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(helper, "TIMEOUT_S", 0.05)
    client, served = pair
    before = descriptors()
    many = EventsRequest("data_writes", tuple(f"7:{minor}" for minor in range(MOST_DISKS)))
    if behaviour != "silent":
        client.send(encode(many))
    if behaviour == "closed":
        client.shutdown(socket.SHUT_RDWR)
    if behaviour == "does not read":
        served.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    open_sets = OpenSets()
    answer(served, pipes, open_sets)
    client.close()
    open_sets.begin(0, "data_writes").close()  # closes the one before
    assert descriptors() == before - 1
    assert [event.message for event in events(caplog)] == ["client disconnected"]


def test_one_silent_client_does_not_stop_the_helper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helper, "TIMEOUT_S", 0.05)
    path = tmp_path / "events.sock"
    with serving(path), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.connect(str(path))
        ask(path, REQUEST).close()


def test_silent_clients_keep_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The helper of a second user answers, although many connections send nothing."""
    monkeypatch.setattr(helper, "TIMEOUT_S", 600.0)
    path = tmp_path / "events.sock"
    with serving(path), contextlib.ExitStack() as stack:
        for _ in range(120):
            silent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.enter_context(silent).connect(str(path))
        ask(path, REQUEST).close()


def test_a_client_has_one_set_of_each_kind_until_it_closes_it(tmp_path: Path) -> None:
    path = tmp_path / "events.sock"
    with serving(path):
        found = ask(path, REQUEST)
        inherited = os.dup(found.by_cpu[1][0])
        for opened_events in (None, found):
            if opened_events is not None:
                opened_events.close()  # but one event, which another descriptor is of
            with pytest.raises(DiskslaError, match="found data_writes events that user"):
                ask(path, REQUEST)
        ask(path, EventsRequest("requests", REQUEST.devices)).close()
        os.close(inherited)
        ask(path, REQUEST).close()


def test_all_clients_together_have_few_sets() -> None:
    open_sets = OpenSets()
    reading, writing = os.pipe()
    for user in range(MOST_SETS):
        open_sets.begin(user, "requests").add([reading])
    with pytest.raises(DiskslaError, match="found 4 sets of events open; expected less"):
        open_sets.begin(MOST_SETS, "requests")
    os.close(reading)
    open_sets.begin(MOST_SETS, "requests").close()
    os.close(writing)


@pytest.mark.parametrize("devices", [("7:0", "7:0"), ("7:0", "07:0")])
def test_a_disk_counts_once(
    pair: tuple[socket.socket, socket.socket], devices: tuple[str, ...]
) -> None:
    client, served = pair
    client.send(encode(EventsRequest("data_writes", devices)))
    answer(served, partial(plan, files=EventFiles(Roots())), OpenSets())
    assert "each once" in str(decode_packet(ANSWERS, client.recv(9000)))


def helping(path: Path, send: Callable[[socket.socket], object]) -> threading.Thread:
    """Start a helper that sends anything to its client, and then closes the connection."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(path))
    listening.listen()

    def answer_one() -> None:
        with listening:
            connection, _ = listening.accept()
            with connection:
                connection.recv(9000)
                send(connection)

    thread = threading.Thread(target=answer_one)
    thread.start()
    return thread


def batch(connection: socket.socket, cpu: int, said: int, passed: int) -> None:
    with open(os.devnull) as file:  # noqa: PTH123 -- its descriptor
        socket.send_fds(connection, [encode(Batch(cpu, said))], [file.fileno()] * passed)


def complete(connection: socket.socket, online: str) -> None:
    batch(connection, 0, 2, 2)
    batch(connection, 1, 2, 2)
    connection.send(encode(End(online)))


@pytest.mark.parametrize(
    ("send", "message"),
    [
        (lambda _: None, "found b''"),
        (lambda connection: connection.send(b"nonsense"), "of the same version"),
        (lambda connection: connection.send(b"x" * 20_000), "were lost"),
        (lambda connection: batch(connection, 0, 2, 3), "found 3 descriptors; expected 2"),
        (lambda connection: batch(connection, 0, 1, 250), "were lost"),
        (lambda connection: complete(connection, "0-2"), "found events of 2 CPUs; expected 2"),
        (lambda connection: complete(connection, "all"), "expected a list of CPUs"),
        (lambda connection: connection.send(encode(End("0-1"))), "found events of 0 CPUs"),
        (lambda connection: batch(connection, 0, 2, 2), "found b''"),
    ],
)
def test_helper_that_does_something_else_leaves_no_descriptor(
    tmp_path: Path, send: Callable[[socket.socket], None], message: str
) -> None:
    path = tmp_path / "events.sock"
    before = descriptors()
    thread = helping(path, send)
    with pytest.raises(DiskslaError, match=message):
        ask(path, REQUEST)
    thread.join()
    assert descriptors() == before


def test_helper_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "ANSWER_S", 0.05)
    ended = threading.Event()
    thread = helping(tmp_path / "events.sock", lambda _: ended.wait(20.0))
    with pytest.raises(DiskslaError, match="the helper did not answer within"):
        ask(tmp_path / "events.sock", REQUEST)
    ended.set()
    thread.join()


def test_systemd_has_to_pass_a_connection_of_packets() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    with pytest.raises(DiskslaError, match="cannot use the socket from systemd"):
        passed_connection(reading)
    os.close(reading)
    stream, other = socket.socketpair()
    with other, pytest.raises(DiskslaError, match="needs ListenSequentialPacket=, and Accept=yes"):
        passed_connection(stream.detach())
