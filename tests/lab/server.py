"""One throttled disk: a process that answers the kernel's requests when the limiter lets it.

Told by its standard input: a line begins what the scenario says (until then the disk is free), and
the end of it ends the process, so that no disk outlives the lab.
"""

import ctypes
import gc
import mmap
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from lab.fuse import Channel, Gone
from lab.limiter import Limiter
from lab.model import Change, DiskModel, Service
from lab.scenario import read_scenario
from lab.service import Server
from lab.truth import Ledger, Window

_MOST_RECEIVED = 64
_MOST_ANSWERED = 4
"""At once: meanwhile others come, and when they came is part of the truth."""
_PR_SET_TIMERSLACK = 29


class ThrottledDisk:
    """The disk at every moment: who is held, who is served, what has happened."""

    def __init__(
        self, model: DiskModel, channel: Channel, write: Callable[[Window], None]
    ) -> None:
        self._model = model
        self._channel = channel
        self._write = write
        self._limiter = Limiter((), 0.0)
        self._server = Server(Service())
        self._ledger: Ledger | None = None
        self._changes: list[Change] = []
        self._begun_s = 0.0

    def begin(self, now_s: float) -> None:
        """Start to do as the scenario says."""
        self._begun_s = now_s
        self._ledger = Ledger(now_s, self._write)
        self._limiter = self._limiter.hand_over(Limiter(self._model.meters, now_s))
        self._server.service = self._model.service
        self._changes = sorted(self._model.changes, key=lambda change: change.at)

    def step(self, now_s: float) -> None:
        """Do what is due."""
        if self._ledger is not None:
            inside, stalled_until_s = self._server.inside, self._server.stalled_until_s
            self._ledger.until(now_s, self._limiter, inside, stalled_until_s)
        while self._changes and self._begun_s + self._changes[0].at <= now_s:
            self._change(self._changes.pop(0), now_s)
        self._receive()
        for request in self._limiter.release(now_s):
            self._server.take(request, now_s)
        finished = self._server.finish(now_s, _MOST_ANSWERED)
        for request in finished:
            self._channel.answer(request)
        if self._ledger is not None:
            self._ledger.completed(finished)

    def next_s(self) -> float | None:
        """Give the time of the next thing that is due; None if there is none."""
        times = [self._limiter.next_s(), self._server.next_s()]
        if self._ledger is not None:
            times.append(self._ledger.next_s)
        if self._changes:
            times.append(self._begun_s + self._changes[0].at)
        return min((due_s for due_s in times if due_s is not None), default=None)

    def _receive(self) -> None:
        for _ in range(_MOST_RECEIVED):
            asked = self._channel.receive()
            if asked is None:
                break
            if asked.request is None:
                self._channel.answer_other(asked)
            else:
                self._limiter.take(asked.request)

    def _change(self, change: Change, now_s: float) -> None:
        if change.meters is not None:
            self._limiter = self._limiter.hand_over(Limiter(change.meters, now_s))
        if change.service is not None:
            self._server.service = change.service
        if change.stall is not None:
            self._server.stalled_until_s = now_s + change.stall


def serve(disk: ThrottledDisk, descriptor: int) -> None:
    """Answer until the file system is unmounted or standard input ends."""
    while True:
        due_s = disk.next_s()
        wait_s = None if due_s is None else max(0.0, due_s - time.monotonic())
        readable, _, _ = select.select([descriptor, sys.stdin], [], [], wait_s)
        now_s = time.monotonic()
        if sys.stdin in readable:
            if not sys.stdin.readline():
                return
            disk.begin(now_s)
        disk.step(now_s)


def main() -> None:
    """Serve disk NUMBER of SCENARIO to DESCRIPTOR, and write the truth to FILE."""
    scenario, number, descriptor, file = sys.argv[1:]
    model = read_scenario(Path(scenario)).disks[int(number)].disk
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
