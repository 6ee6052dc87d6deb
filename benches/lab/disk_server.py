"""Throttled disks: a process that answers requests of the kernel when their limiters admit them.

A disk has a process of its own, but all disks that share the limiter of a machine have one. A
request waits for the limiter of its disk, then for that of the machine.

A first line on standard input starts the scenario, and a second one ends it: before and
afterwards, the disks are unlimited. The end of standard input ends the process, so that no disk
outlives the lab.
"""

import ctypes
import gc
import heapq
import mmap
import os
import select
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from lab.fuse import FSYNC, Channel, FuseRequest, Gone
from lab.limiter import Limiter, Request
from lab.medium import Medium
from lab.model import Change, DiskModel, Meter, Service
from lab.scenario import Scenario, read_scenario
from lab.truth import MACHINE_TRUTH, TruthLog, Window, truth_name

Writer = Callable[[Window], None]
_MOST_RECEIVED = 64
_MOST_ANSWERED = 4
"""Requests per step: the arrival times of others are part of the truth, so steps are short."""
_PR_SET_TIMERSLACK = 29


class ThrottledDisk:
    """One disk: requests that wait for its own limiter, requests in service, and the log."""

    def __init__(self, model: DiskModel, channel: Channel, write: Writer) -> None:
        self.channel = channel
        self._model = model
        self._write = write
        self._limiter = Limiter((), 0.0)
        self._medium = Medium(Service())
        self._log: TruthLog | None = None
        self._changes: list[Change] = []
        self._flushes: list[tuple[float, FuseRequest]] = []
        """When the flushes that were received are due."""
        self._begun_s = 0.0

    def begin(self, now_s: float) -> None:
        """Start the scenario."""
        self._begun_s = now_s
        self._log = TruthLog(now_s, self._write)
        self._limiter = self._limiter.move_waiting_to(Limiter(self._model.meters, now_s))
        self._medium.service = self._model.service
        self._changes = sorted(self._model.changes, key=lambda change: change.at)

    def end(self, now_s: float) -> None:
        """End the scenario and its log."""
        self._log = None
        self._changes = []
        self._limiter = self._limiter.move_waiting_to(Limiter((), now_s))
        self._medium.service = Service()

    def log(self, now_s: float, machine: Limiter, number: int) -> None:
        """Log the time since the last step, in which nothing changed; `number` is of this disk."""
        if self._log is not None:
            in_service, stalled_until_s = self._medium.inflight, self._medium.stalled_until_s
            self._log.advance(now_s, self._limiter, in_service, stalled_until_s, machine, number)

    def admit(self, now_s: float) -> list[Request]:
        """Make the changes that are due, receive requests, and return those that are admitted."""
        while self._changes and self._begun_s + self._changes[0].at <= now_s:
            self._change(self._changes.pop(0), now_s)
        self._receive(now_s)
        return self._limiter.admit(now_s)

    def serve(self, request: Request, now_s: float) -> None:
        """Serve a request that all limiters have admitted."""
        self._medium.submit(request, now_s)

    def answer(self, now_s: float) -> list[Request]:
        """Answer the requests that are due, and return them."""
        self._answer_flushes(now_s)
        completed = self._medium.complete(now_s, _MOST_ANSWERED)
        for request in completed:
            self.channel.answer(request)
        if self._log is not None:
            self._log.add_completed(completed)
        return completed

    @property
    def in_service(self) -> int:
        """Requests that all limiters have admitted."""
        return self._medium.inflight

    def due_s(self) -> list[float | None]:
        """Return the times at which something is due next; None where nothing is."""
        times = [self._limiter.next_s(), self._medium.next_s()]
        times += [due_s for due_s, _ in self._flushes[:1]]
        if self._log is not None:
            times.append(self._log.next_s)
        if self._changes:
            times.append(self._begun_s + self._changes[0].at)
        return times

    def _receive(self, now_s: float) -> None:
        for _ in range(_MOST_RECEIVED):
            message = self.channel.receive()
            if message is None:
                break
            if message.request is None:
                self._receive_other(message, now_s)
            else:
                self._limiter.enqueue(message.request)

    def _receive_other(self, message: FuseRequest, now_s: float) -> None:
        """Answer what is neither a read nor a write: a flush later, if it takes time."""
        if message.opcode == FSYNC and self._medium.service.flush:
            heapq.heappush(self._flushes, (now_s + self._medium.flush_s(), message))
        else:
            self.channel.answer_other(message)

    def _answer_flushes(self, now_s: float) -> None:
        while self._flushes and self._flushes[0][0] <= now_s:
            self.channel.answer_other(heapq.heappop(self._flushes)[1])

    def _change(self, change: Change, now_s: float) -> None:
        if change.meters is not None:
            self._limiter = self._limiter.move_waiting_to(Limiter(change.meters, now_s))
        if change.service is not None:
            self._medium.service = change.service
        if change.stall is not None:
            self._medium.stalled_until_s = now_s + change.stall


class ThrottledMachine:
    """Disks, the limiter that they share, and its log. Without meters, it admits all requests."""

    def __init__(
        self, disks: Sequence[ThrottledDisk], meters: Sequence[Meter], write: Writer
    ) -> None:
        self.disks = disks
        self._meters = meters
        self._write = write
        self._limiter = Limiter((), 0.0, len(disks))
        self._log: TruthLog | None = None

    def begin(self, now_s: float) -> None:
        """Start the scenario."""
        if self._meters:
            self._log = TruthLog(now_s, self._write)
        self._limit(self._meters, now_s)
        for disk in self.disks:
            disk.begin(now_s)

    def end(self, now_s: float) -> None:
        """End the scenario and its logs."""
        self._log = None
        self._limit((), now_s)
        for disk in self.disks:
            disk.end(now_s)

    def step(self, now_s: float) -> None:
        """Receive, admit and answer the requests that are due."""
        for number, disk in enumerate(self.disks):
            disk.log(now_s, self._limiter, number)
        if self._log is not None:
            in_service = sum(disk.in_service for disk in self.disks)
            self._log.advance(now_s, self._limiter, in_service, 0.0)
        for number, disk in enumerate(self.disks):
            for request in disk.admit(now_s):
                self._limiter.enqueue(request._replace(disk=number))
        for request in self._limiter.admit(now_s):
            self.disks[request.disk].serve(request, now_s)
        for disk in self.disks:
            completed = disk.answer(now_s)
            if self._log is not None:
                self._log.add_completed(completed)

    def next_s(self) -> float | None:
        """Return the time at which `step` is due next; None if nothing is pending."""
        times = [self._limiter.next_s(), *(due_s for disk in self.disks for due_s in disk.due_s())]
        if self._log is not None:
            times.append(self._log.next_s)
        return min((due_s for due_s in times if due_s is not None), default=None)

    def _limit(self, meters: Sequence[Meter], now_s: float) -> None:
        self._limiter = self._limiter.move_waiting_to(Limiter(meters, now_s, len(self.disks)))


def serve(machine: ThrottledMachine) -> None:
    """Answer requests until a file system is unmounted or standard input ends."""
    descriptors = [disk.channel.descriptor for disk in machine.disks]
    while True:
        due_s = machine.next_s()
        wait_s = None if due_s is None else max(0.0, due_s - time.monotonic())
        readable, _, _ = select.select([*descriptors, sys.stdin], [], [], wait_s)
        now_s = time.monotonic()
        if sys.stdin in readable:
            match sys.stdin.readline():
                case "begin\n":
                    machine.begin(now_s)
                case "end\n":
                    machine.end(now_s)
                case _:
                    return
        machine.step(now_s)


def main() -> None:
    """Serve disks of SCENARIO, each NUMBER:DESCRIPTOR, and log the truth to DIRECTORY."""
    path, directory, *served = sys.argv[1:]
    scenario = read_scenario(Path(path))
    # The limiter of a hypervisor does not wait until its guest leaves it a CPU.
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError as error:
        sys.stderr.write(f"lab: cannot set a real-time priority: {error}\n")
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    with ExitStack() as undo:
        machine = _machine(scenario, Path(directory), served, undo)
        gc.freeze()
        try:
            serve(machine)
        except Gone:
            return


def _machine(
    scenario: Scenario, directory: Path, served: Sequence[str], undo: ExitStack
) -> ThrottledMachine:
    def writer(name: str) -> Writer:
        file = undo.enter_context((directory / name).open("wb", buffering=0))
        encoder = msgspec.json.Encoder()

        def write(window: Window) -> None:
            file.write(encoder.encode(window) + b"\n")

        return write

    disks = []
    for text in served:
        number, descriptor = map(int, text.split(":"))
        model = scenario.disks[number].disk
        channel = Channel(descriptor, mmap.mmap(-1, model.size))
        disks.append(ThrottledDisk(model, channel, writer(truth_name(number))))
    if scenario.machine is None or not scenario.machine.meters:
        return ThrottledMachine(disks, (), lambda _: None)
    return ThrottledMachine(disks, scenario.machine.meters, writer(MACHINE_TRUTH))


if __name__ == "__main__":
    main()
