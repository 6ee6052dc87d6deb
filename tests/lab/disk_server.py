"""One throttled disk: a process that answers requests of the kernel when its limiter admits them.

A first line on standard input starts the scenario, and a second one ends it: before and
afterwards, the disk is unlimited. The end of standard input ends the process, so that no disk
outlives the lab.
"""

import ctypes
import gc
import mmap
import os
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from lab.fuse import Channel, Gone
from lab.limiter import Limiter
from lab.medium import Medium
from lab.model import Change, DiskModel, Service
from lab.scenario import read_scenario
from lab.truth import TruthLog, Window

_MOST_RECEIVED = 64
_MOST_ANSWERED = 4
"""Requests per step: the arrival times of others are part of the truth, so steps are short."""
_PR_SET_TIMERSLACK = 29


class ThrottledDisk:
    """The state of the disk: requests that wait, requests in service, and the log."""

    def __init__(
        self, model: DiskModel, channel: Channel, write: Callable[[Window], None]
    ) -> None:
        self._model = model
        self._channel = channel
        self._write = write
        self._limiter = Limiter((), 0.0)
        self._medium = Medium(Service())
        self._log: TruthLog | None = None
        self._changes: list[Change] = []
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

    def step(self, now_s: float) -> None:
        """Receive, admit and answer the requests that are due."""
        if self._log is not None:
            in_service, stalled_until_s = self._medium.inflight, self._medium.stalled_until_s
            self._log.advance(now_s, self._limiter, in_service, stalled_until_s)
        while self._changes and self._begun_s + self._changes[0].at <= now_s:
            self._change(self._changes.pop(0), now_s)
        self._receive()
        for request in self._limiter.admit(now_s):
            self._medium.submit(request, now_s)
        completed = self._medium.complete(now_s, _MOST_ANSWERED)
        for request in completed:
            self._channel.answer(request)
        if self._log is not None:
            self._log.add_completed(completed)

    def next_s(self) -> float | None:
        """Return the time at which `step` is due next; None if nothing is pending."""
        times = [self._limiter.next_s(), self._medium.next_s()]
        if self._log is not None:
            times.append(self._log.next_s)
        if self._changes:
            times.append(self._begun_s + self._changes[0].at)
        return min((due_s for due_s in times if due_s is not None), default=None)

    def _receive(self) -> None:
        for _ in range(_MOST_RECEIVED):
            message = self._channel.receive()
            if message is None:
                break
            if message.request is None:
                self._channel.answer_other(message)
            else:
                self._limiter.enqueue(message.request)

    def _change(self, change: Change, now_s: float) -> None:
        if change.meters is not None:
            self._limiter = self._limiter.move_waiting_to(Limiter(change.meters, now_s))
        if change.service is not None:
            self._medium.service = change.service
        if change.stall is not None:
            self._medium.stalled_until_s = now_s + change.stall


def serve(disk: ThrottledDisk, descriptor: int) -> None:
    """Answer requests until the file system is unmounted or standard input ends."""
    while True:
        due_s = disk.next_s()
        wait_s = None if due_s is None else max(0.0, due_s - time.monotonic())
        readable, _, _ = select.select([descriptor, sys.stdin], [], [], wait_s)
        now_s = time.monotonic()
        if sys.stdin in readable:
            match sys.stdin.readline():
                case "begin\n":
                    disk.begin(now_s)
                case "end\n":
                    disk.end(now_s)
                case _:
                    return
        disk.step(now_s)


def main() -> None:
    """Serve disk NUMBER of SCENARIO on DESCRIPTOR, and log the truth to FILE."""
    scenario, number, descriptor, file = sys.argv[1:]
    model = read_scenario(Path(scenario)).disks[int(number)].disk
    # The limiter of a hypervisor does not wait until its guest leaves it a CPU.
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError as error:
        sys.stderr.write(f"lab: cannot set a real-time priority: {error}\n")
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    memory = mmap.mmap(-1, model.size)
    gc.freeze()
    with Path(file).open("wb", buffering=0) as truth:
        encoder = msgspec.json.Encoder()

        def write(window: Window) -> None:
            truth.write(encoder.encode(window) + b"\n")

        disk = ThrottledDisk(model, Channel(int(descriptor), memory), write)
        try:
            serve(disk, int(descriptor))
        except Gone:
            return


if __name__ == "__main__":
    main()
