"""A target of NVMe/TCP in user space: each volume is a controller of its own, as on AWS.

The kernel of a virtual machine connects to it (`nvme-tcp`). Requests are throttled by the limits
of their volume and of the machine, and the log page 0xD0 says for how long.
"""

import asyncio
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from itertools import count
from typing import NamedTuple, TypeVar

from lab.limiter import Request
from lab.model import Duration, Meter, Service
from nvme import identify
from nvme.page import EBS, page
from nvme.protocol import (
    HEADER_BYTES,
    Command,
    Header,
    Status,
    Type,
    command_of,
    completion,
    data_to_host,
    header_of,
    ready_for_data,
    start_response,
    transfer_of,
)
from nvme.volumes import Volumes

EBS_MODEL = "Amazon Elastic Block Store"
INSTANCE_STORE_MODEL = "Amazon EC2 NVMe Instance Storage"
STATISTICS = 0xD0


class Io(IntEnum):
    """Commands of a queue for I/O."""

    FLUSH = 0x00
    WRITE = 0x01
    READ = 0x02


class Admin(IntEnum):
    """Commands of the admin queue."""

    GET_LOG_PAGE = 0x02
    IDENTIFY = 0x06
    ABORT = 0x08
    SET_FEATURES = 0x09
    ASYNCHRONOUS_EVENT = 0x0C
    KEEP_ALIVE = 0x18


class Fabrics(IntEnum):
    """Commands of NVMe over Fabrics; all have one code of operation."""

    SET_PROPERTY = 0x00
    CONNECT = 0x01
    GET_PROPERTY = 0x04


class Feature(IntEnum):
    """Features that a host sets."""

    NUMBER_OF_QUEUES = 0x07
    EVENTS = 0x0B


_FABRICS = 0x7F
_CAPABILITIES, _VERSION, _CONFIGURATION, _STATUS = 0x00, 0x08, 0x14, 0x1C
_ONE_QUEUE = 0
_NOT_ABORTED = 1
_TIMEOUT_UNITS = 30
_KERNEL_LOGS = {0x01: 64, 0x02: 512, 0x03: 512}
"""Errors, health and firmware: nothing to say."""
_Result = TypeVar("_Result")
_SERVICE = Service(latency=Duration(0.0005))


class Served(NamedTuple):
    """A volume to serve."""

    serial: str
    size_bytes: int
    model: str = EBS_MODEL
    magic: int | None = EBS
    """Magic number of its page; None if it has no page."""
    version: int = 1

    @property
    def name(self) -> str:
        """Name by which the host connects to it."""
        return f"nqn.2026-11.test.disksla:{self.serial}"


class _Volume:
    """A volume, and what its controller keeps."""

    def __init__(self, number: int, served: Served) -> None:
        self.number = number
        self.served = served
        self.content = memoryview(mmap.mmap(-1, served.size_bytes))
        self.configuration = 0
        self.asked: dict[int, int] = {}
        """How often each log page was asked for."""
        self.writers: set[asyncio.StreamWriter] = set()

    def status(self) -> int:
        """Return the status of the controller: ready if enabled, shut down if asked to."""
        shut_down = 2 << 2 if self.configuration >> 14 & 3 else 0
        return self.configuration & 1 | shut_down


class _Pending(NamedTuple):
    """A command that waits for the limiters."""

    volume: _Volume
    command: Command
    writer: asyncio.StreamWriter


class _Loop:
    """Connections and requests, in the thread of the event loop."""

    def __init__(self, served: Sequence[Served]) -> None:
        self.by_name = {each.name: _Volume(number, each) for number, each in enumerate(served)}
        self.volumes = Volumes(len(served), _SERVICE)
        self._pending: dict[int, _Pending] = {}
        self._uniques = count()
        self._timer: asyncio.TimerHandle | None = None

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection until one side ends it: an admin queue, or one for I/O."""
        connection = _Connection(self, reader, writer)
        try:
            await connection.serve()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            connection.close()
            with suppress(ConnectionError):
                writer.close()

    def submit(self, pending: _Pending, offset: int, size_bytes: int) -> None:
        """Queue a read or write."""
        unique = next(self._uniques)
        self._pending[unique] = pending
        is_write = pending.command.opcode == Io.WRITE
        request = Request(unique, is_write, offset, size_bytes, pending.volume.number)
        self.volumes.submit(request, time.monotonic())
        self.step()

    def step(self) -> None:
        """Answer the requests that completed, and return when others may."""
        for request in self.volumes.complete(time.monotonic()):
            volume, command, writer = self._pending.pop(request.unique)
            if writer.is_closing():
                continue
            if not request.is_write:
                data = volume.content[request.offset : request.offset + request.size_bytes]
                writer.write(data_to_host(command.identifier, data))
            writer.write(completion(command.identifier))
        if self._timer is not None:
            self._timer.cancel()
        due_s = self.volumes.next_s()
        loop = asyncio.get_running_loop()
        self._timer = None if due_s is None else loop.call_at(due_s, self.step)


class _Connection:
    """One queue of one controller."""

    def __init__(
        self, loop: _Loop, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._loop = loop
        self._reader = reader
        self._writer = writer
        self._volume: _Volume | None = None
        self._is_admin = False
        self._writes: dict[int, tuple[Command, bytearray]] = {}
        """Writes whose data have not all come."""

    async def serve(self) -> None:
        """Answer messages; raise IncompleteReadError when the host has closed the connection."""
        header, _ = await self._receive()
        if header.kind != Type.START_REQUEST:
            raise ConnectionError(f"found a message of type {header.kind} at the start")
        self._writer.write(start_response())
        while True:
            header, body = await self._receive()
            match header.kind:
                case Type.COMMAND:
                    self._answer(command_of(body))
                case Type.DATA_FROM_HOST:
                    self._take_data(*transfer_of(body))
                case _:
                    raise ConnectionError(f"found a message of type {header.kind}")
            await self._writer.drain()

    def close(self) -> None:
        """Forget the connection."""
        if self._volume is not None:
            self._volume.writers.discard(self._writer)

    async def _receive(self) -> tuple[Header, bytes]:
        header = header_of(await self._reader.readexactly(HEADER_BYTES))
        return header, await self._reader.readexactly(header.size_bytes - HEADER_BYTES)

    def _complete(self, command: Command, status: Status, result: int = 0) -> None:
        self._writer.write(completion(command.identifier, status, result))

    def _send(self, command: Command, data: bytes) -> None:
        self._writer.write(data_to_host(command.identifier, data[: command.data_bytes]))
        self._complete(command, Status.SUCCESS)

    def _answer(self, command: Command) -> None:
        if command.opcode == _FABRICS:
            self._answer_fabrics(command)
        elif self._volume is None:
            self._complete(command, Status.INVALID_OPCODE)
        elif self._is_admin:
            self._answer_admin(command, self._volume)
        else:
            self._answer_io(command, self._volume)

    def _answer_fabrics(self, command: Command) -> None:
        status, result = Status.SUCCESS, 0
        match command.fabrics_type:
            case Fabrics.CONNECT:
                status, result = self._connect(command)
            case Fabrics.GET_PROPERTY if self._volume is not None:
                result = self._property(command.number(44), self._volume)
            case Fabrics.SET_PROPERTY if self._volume is not None:
                if command.number(44) == _CONFIGURATION:
                    self._volume.configuration = command.number(48)
            case _:
                status = Status.INVALID_FIELD
        self._complete(command, status, result)

    def _connect(self, command: Command) -> tuple[Status, int]:
        """Return the status, and the number of the controller."""
        name = command.data[256:512].rstrip(b"\0").decode(errors="replace")
        self._volume = self._loop.by_name.get(name)
        if self._volume is None:
            return Status.INVALID_FIELD, 0
        self._is_admin = command.number(42, "H") == 0
        if self._is_admin:
            self._volume.configuration = 0
        self._volume.writers.add(self._writer)
        return Status.SUCCESS, self._volume.number + 1

    def _property(self, offset: int, volume: _Volume) -> int:
        capabilities = identify.QUEUE_DEPTH - 1 | 1 << 16 | _TIMEOUT_UNITS << 24 | 1 << 37
        return {
            _CAPABILITIES: capabilities,
            _VERSION: identify.VERSION,
            _CONFIGURATION: volume.configuration,
            _STATUS: volume.status(),
        }.get(offset, 0)

    def _answer_admin(self, command: Command, volume: _Volume) -> None:
        match command.opcode:
            case Admin.IDENTIFY:
                self._identify(command, volume)
            case Admin.GET_LOG_PAGE:
                self._log_page(command, volume)
            case Admin.SET_FEATURES:
                self._set_feature(command)
            case Admin.KEEP_ALIVE:
                self._complete(command, Status.SUCCESS)
            case Admin.ABORT:
                self._complete(command, Status.SUCCESS, _NOT_ABORTED)
            case Admin.ASYNCHRONOUS_EVENT:
                pass  # is answered when something happens, and nothing does
            case _:
                self._complete(command, Status.INVALID_OPCODE)

    def _identify(self, command: Command, volume: _Volume) -> None:
        served = volume.served
        match command.number(40, "B"):
            case 0 if command.namespace == 1:
                self._send(command, identify.namespace(served.size_bytes))
            case 1:
                number = volume.number + 1
                device = f"/dev/sd{chr(ord('f') + volume.number)}"
                text = (served.serial, served.model, served.name)
                self._send(command, identify.controller(*text, number, device))
            case 2:
                self._send(command, identify.namespaces(command.namespace))
            case 3:  # no identifiers, as EBS
                self._send(command, bytes(identify.IDENTIFY_BYTES))
            case _:
                self._complete(command, Status.INVALID_FIELD)

    def _log_page(self, command: Command, volume: _Volume) -> None:
        kind, begin = command.number(40, "B"), command.number(48, "Q")
        size_bytes = 4 * (1 + (command.number(42, "H") | command.number(44, "H") << 16))
        volume.asked[kind] = volume.asked.get(kind, 0) + 1
        data: bytes | None = None
        if kind in _KERNEL_LOGS:
            data = bytes(_KERNEL_LOGS[kind])
        elif kind == STATISTICS:
            data = self._statistics(volume)
        if data is None:
            self._complete(command, Status.INVALID_LOG_PAGE)
        else:
            self._send(command, data[begin : begin + size_bytes])

    def _statistics(self, volume: _Volume) -> bytes | None:
        """Return the page of statistics; None if there is none."""
        served, volumes = volume.served, self._loop.volumes
        if served.magic is None:
            return None
        usage = volumes.usage(volume.number, time.monotonic())
        queue_length = volumes.queue_length(volume.number)
        return page(usage, queue_length, magic=served.magic, version=served.version)

    def _set_feature(self, command: Command) -> None:
        match command.number(40, "B"):
            case Feature.NUMBER_OF_QUEUES:
                self._complete(command, Status.SUCCESS, _ONE_QUEUE)
            case Feature.EVENTS:
                self._complete(command, Status.SUCCESS)
            case _:
                self._complete(command, Status.INVALID_FIELD)

    def _answer_io(self, command: Command, volume: _Volume) -> None:
        if command.opcode == Io.FLUSH:
            self._complete(command, Status.SUCCESS)
        elif command.opcode not in {Io.READ, Io.WRITE}:
            self._complete(command, Status.INVALID_OPCODE)
        else:
            offset, size_bytes = _extent(command)
            if offset + size_bytes > volume.served.size_bytes:
                self._complete(command, Status.INVALID_FIELD)
            elif command.opcode == Io.READ:
                self._submit(command, volume)
            elif command.data:
                self._write(command, command.data)
            else:
                self._writes[command.identifier] = command, bytearray()
                self._writer.write(ready_for_data(command.identifier, size_bytes))

    def _take_data(self, identifier: int, offset: int, data: bytes) -> None:
        command, collected = self._writes[identifier]
        if offset != len(collected):
            raise ConnectionError(f"found data at {offset}; expected them at {len(collected)}")
        collected += data
        if len(collected) == _extent(command)[1]:
            del self._writes[identifier]
            self._write(command, collected)

    def _write(self, command: Command, data: bytes | bytearray) -> None:
        assert self._volume is not None
        offset, size_bytes = _extent(command)
        self._volume.content[offset : offset + size_bytes] = data
        self._submit(command, self._volume)

    def _submit(self, command: Command, volume: _Volume) -> None:
        # The data of a request would keep it from being released until it completes.
        kept = command._replace(data=b"")
        self._loop.submit(_Pending(volume, kept, self._writer), *_extent(command))


def _extent(command: Command) -> tuple[int, int]:
    """Return the offset and the size of a read or write, in bytes."""
    sectors = command.number(48, "H") + 1
    return command.number(40, "Q") * identify.SECTOR_BYTES, sectors * identify.SECTOR_BYTES


class Target:
    """A target that runs: its address, and what can be done to its volumes from another thread."""

    def __init__(
        self, served: Sequence[Served], loop: asyncio.AbstractEventLoop, state: _Loop, port: int
    ) -> None:
        self.port = port
        self._loop = loop
        self._state = state
        self._by_serial = {each.serial: state.by_name[each.name] for each in served}

    def limit(self, serial: str, *meters: Meter) -> None:
        """Change the limits of a volume."""
        number = self._by_serial[serial].number
        self._do(lambda: self._state.volumes.limit(number, meters, time.monotonic()))

    def limit_machine(self, *meters: Meter) -> None:
        """Change the limits that all volumes share."""
        self._do(lambda: self._state.volumes.limit_machine(meters, time.monotonic()))

    def exceeded_s(self, serial: str) -> dict[str, float]:
        """Return the time for which requests of a volume have waited, by limit."""
        volumes, number = self._state.volumes, self._by_serial[serial].number
        return self._do(lambda: dict(volumes.usage(number, time.monotonic()).exceeded_s))

    def clear(self, serial: str) -> None:
        """Count from 0."""
        number = self._by_serial[serial].number
        self._do(lambda: self._state.volumes.clear(number, time.monotonic()))

    def asked(self, serial: str, kind: int = STATISTICS) -> int:
        """Return how often a log page was asked for."""
        return self._do(lambda: self._by_serial[serial].asked.get(kind, 0))

    def drop(self, serial: str) -> None:
        """Close all connections of a volume; the host connects again."""

        def close() -> None:
            for writer in self._by_serial[serial].writers:
                writer.close()

        self._do(close)

    def _do(self, function: Callable[[], _Result]) -> _Result:
        async def call() -> _Result:
            result = function()
            self._state.step()
            return result

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()


@contextmanager
def serving(served: Sequence[Served]) -> Iterator[Target]:
    """Serve volumes on a free port of the loopback address until the end of the block."""
    loop = asyncio.new_event_loop()
    state = _Loop(served)
    thread = threading.Thread(target=_run, args=(loop,), name="target")
    thread.start()
    try:
        started = asyncio.start_server(state.connect, "127.0.0.1", 0)
        server = asyncio.run_coroutine_threadsafe(started, loop).result()
        yield Target(served, loop, state, server.sockets[0].getsockname()[1])
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    # The limiter of a hypervisor does not wait until its guest leaves it a CPU.
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    loop.run_forever()


async def _end(server: asyncio.Server) -> None:
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
