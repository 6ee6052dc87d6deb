"""Samples who asks for requests, while it is wanted, by events that a helper opened.

One thread calls all methods, which is not that of the sampler of disks: to open, map and close
events takes milliseconds. Between, they stay open, but disabled.
"""

import fcntl
import logging
import mmap
import os
import struct
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from disksla.base.errors import DiskslaError
from disksla.base.operating_system import SourceHealth
from disksla.base.operating_system.log import fields, traceback_of
from disksla.kernel.performance_events import samples
from disksla.kernel.performance_events.opened import OpenedEvents
from disksla.kernel.performance_events.source import EventSource, Numbers

_ENABLE, _DISABLE, _SET_OUTPUT, _SET_PERIOD = 0x2400, 0x2401, 0x2405, 0x40082404
_POSITIONS = struct.Struct("=QQ")
"""Ends of what the kernel wrote and of what was read, in the first page of a buffer."""
_HEAD_AT, _TAIL_AT = 1024, 1032  # struct perf_event_mmap_page
_NUMBER = struct.Struct("=Q")

Result = TypeVar("Result")

log = logging.getLogger("disksla.events")


class _Events:
    """Events that are open, disabled at first, with a buffer for each CPU."""

    def __init__(self, opened: OpenedEvents, pages: int) -> None:
        """Map the buffers. Raise OSError, DiskslaError."""
        if opened.record is None:
            raise DiskslaError("found no form of records; expected that of the kernel")
        self.opened = opened
        self._requests = opened.record.number
        self._form = samples.RecordForm(opened.record.comm)
        self._size = pages * mmap.PAGESIZE
        self._kinds = tuple(zip(*opened.by_cpu.values(), strict=True))
        """Descriptors of all CPUs: of requests, and of what carries their bytes."""
        self._enabled = [False, False]
        self._periods = [1, 1]
        self._before = [0, 0]
        self._buffers: list[mmap.mmap] = []
        try:
            for requests, queued in opened.by_cpu.values():
                self._buffers.append(mmap.mmap(requests, mmap.PAGESIZE + self._size))
                fcntl.ioctl(queued, _SET_OUTPUT, requests)
        except OSError:
            self.unmap()
            raise

    def enable(self, *wanted: bool) -> None:
        """Enable or disable the events of requests, and those of bytes."""
        for kind, is_wanted in enumerate(wanted):
            if is_wanted != self._enabled[kind]:
                self._enabled[kind] = is_wanted
                for event in self._kinds[kind]:
                    fcntl.ioctl(event, _ENABLE if is_wanted else _DISABLE, 0)

    def take(self) -> samples.Taken:
        """Return what is new. Raise OSError, DiskslaError."""
        counted = [
            sum(_NUMBER.unpack(os.read(event, _NUMBER.size))[0] for event in events)
            for events in self._kinds
        ]
        new = tuple(now - before for now, before in zip(counted, self._before, strict=True))
        self._before = counted
        seen: Counter[samples.RequestSample] = Counter()
        for buffer in self._buffers:
            seen.update(self._form.parse(self._read(buffer)))
        periods = self._periods[0], self._periods[1]
        return samples.Taken(seen, self._requests, periods, (new[0], new[1]), len(self._buffers))

    def _read(self, buffer: mmap.mmap) -> bytes:
        """Return what the kernel wrote since the last call, and let it go on there."""
        head, tail = _POSITIONS.unpack_from(buffer, _HEAD_AT)
        if head == tail:
            return b""
        start, end = (mmap.PAGESIZE + each % self._size for each in (tail, head))
        rest = buffer[start:] + buffer[mmap.PAGESIZE : end] if start >= end else buffer[start:end]
        _NUMBER.pack_into(buffer, _TAIL_AT, head)
        return rest

    def adapt(self, counted: tuple[int, int], seconds: float) -> None:
        """Set the periods, so that there are at most MOST_PER_S samples of both kinds."""
        share = samples.MOST_PER_S / max(1, sum(self._enabled))
        for kind, events in enumerate(counted):
            period = samples.period_for(events / seconds, share)
            if period != self._periods[kind]:
                self._periods[kind] = period
                for event in self._kinds[kind]:
                    fcntl.ioctl(event, _SET_PERIOD, _NUMBER.pack(period))

    def unmap(self) -> None:
        """Give up the buffers."""
        for buffer in self._buffers:
            buffer.close()
        self._buffers = []


class RequestSampler:
    """Events that sample requests of disks, on all CPUs."""

    def __init__(self, source: EventSource, *, pages: int | None = None) -> None:
        """Want nothing yet; `pages` of a buffer are a power of two."""
        self.source = source
        self._pages = pages
        self._events: _Events | None = None
        self._errors = 0
        self._problem: str | None = None

    @property
    def health(self) -> SourceHealth | None:
        """How events are opened and read; None if there is no helper, and they need one."""
        found = self.source.health
        if not self._errors:
            return found
        name, errors, works, _ = found or SourceHealth("requests", 0, works=True)
        works = works and self._problem is None
        return SourceHealth(name, errors + self._errors, works, self.why_not)

    @property
    def why_not(self) -> str | None:
        """Why requests are not sampled; None while they are, or may soon be."""
        return self._problem or self.source.why_not

    def watch(self, disks: Numbers, *, with_bytes: bool) -> None:
        """Sample the requests of all these disks from now on, by their numbers.

        `with_bytes` also what they carry, which is 10 to 250 times as often.
        """
        if self.source.want("requests", disks):
            self._give_back()
            self._problem = None
        opened = self.source.take()
        if opened is not None:
            self._give_back()
            try:
                self._events = _Events(
                    opened, self._pages or samples.buffer_pages(len(opened.by_cpu))
                )
            except (OSError, DiskslaError) as error:
                self.fail(error)
                self.source.give_back(opened)
        self._do(lambda events: events.enable(True, with_bytes))  # noqa: FBT003 -- two kinds

    def pause(self) -> None:
        """Sample nothing until the next `watch`; the events stay open."""
        self._do(lambda events: events.enable(False, False))  # noqa: FBT003 -- two kinds

    def take(self) -> samples.Taken | None:
        """Return what was sampled since the last call, and None if no events are open.

        Call it four times a second, or samples are lost.
        """
        return self._do(_Events.take)

    def adapt(self, counted: tuple[int, int], seconds: float) -> None:
        """Set the periods for the next samples by what was counted in so many seconds.

        Call it right after `take`.
        """
        self._do(lambda events: events.adapt(counted, seconds))

    def close(self) -> None:
        """Close all; `watch` has it opened again."""
        self._give_back()
        self.source.stop()

    def _do(self, action: Callable[[_Events], Result]) -> Result | None:
        """Return what an action on the events returns; None without any, or if it fails."""
        if self._events is None:
            return None
        try:
            return action(self._events)
        except (OSError, DiskslaError) as error:
            self.fail(error)
            return None

    def fail(self, error: Exception) -> None:
        """Count a failure, log it once, and sample nothing until the disks or the CPUs change."""
        self._errors += 1
        problem = f"cannot sample requests: {error}"
        if problem != self._problem:
            traceback = traceback_of(error)
            log.warning("requests not sampled", extra=fields(err=error), exc_info=traceback)
        self._problem = problem
        self._give_back()

    def _give_back(self) -> None:
        if self._events is not None:
            self._events.unmap()
            self.source.give_back(self._events.opened)
            self._events = None
