"""The thread that has events opened, and closes them; descriptors are those of pipes."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.kernel.performance_events import EventsRequest
from disksla.kernel.performance_events.opened import NoHelperError, OpenedEvents
from disksla.kernel.performance_events.source import EventSource
from support.opened_events import PATIENCE_S
from support.waiting import eventually

FIRST, SECOND = {"loop0": (7, 0)}, {"loop1": (7, 1)}
Opener = Callable[[EventsRequest, str], OpenedEvents]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 -- descriptors, not files


def pipes(request: EventsRequest, _: str) -> OpenedEvents:
    """Return descriptors as if they were those of the CPU whose number is that of the disk."""
    return OpenedEvents({request.numbers[0][1]: os.pipe()}, None)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[Opener], EventSource]]:
    made: list[EventSource] = []

    def source(opener: Opener) -> EventSource:
        made.append(EventSource(opener, "events", tmp_path, between_s=0.0, retry_s=0.01))
        return made[-1]

    yield source
    for each in made:
        each.stop()


Make = Callable[[Opener], EventSource]


def taken(source: EventSource) -> OpenedEvents:
    found: list[OpenedEvents] = []

    def take() -> bool:
        opened = source.take()
        found.extend([] if opened is None else [opened])
        return bool(found)

    assert eventually(take, PATIENCE_S), source.why_not
    return found[0]


def test_events_are_opened_taken_and_closed(make: Make) -> None:
    before = descriptors()
    source = make(pipes)
    source.want("data_writes", FIRST)
    opened = taken(source)
    assert opened.by_cpu.keys() == {0}
    assert source.health == ("events", 0, True, None)
    assert not source.has_new
    source.give_back(opened)
    assert eventually(lambda: descriptors() == before, PATIENCE_S)


def test_events_that_are_not_wanted_any_more_are_closed(make: Make) -> None:
    before = descriptors()
    source = make(pipes)
    source.want("data_writes", FIRST)
    assert eventually(lambda: source.has_new, PATIENCE_S)
    source.want("data_writes", SECOND)
    opened = taken(source)
    assert opened.by_cpu.keys() == {1}
    source.give_back(opened)
    assert eventually(lambda: descriptors() == before, PATIENCE_S)


def test_same_wish_opens_nothing_and_a_renewal_does(make: Make) -> None:
    calls: list[str] = []

    def opener(request: EventsRequest, online: str) -> OpenedEvents:
        calls.append(online)
        return pipes(request, online)

    source = make(opener)
    for again, is_new in ((False, True), (False, False), (True, True), (False, False)):
        assert source.want("data_writes", FIRST, again=again) == is_new
        if is_new:
            taken(source).close()
    assert len(calls) == 2


def test_failure_is_tried_again(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    failures = [
        OSError("refused"),
        DiskslaError("denied"),
        ZeroDivisionError("a bug"),
        NoHelperError("none"),
    ]

    def opener(request: EventsRequest, online: str) -> OpenedEvents:
        if failures:
            raise failures.pop(0)
        return pipes(request, online)

    source = make(opener)
    source.want("data_writes", FIRST)
    taken(source).close()
    assert source.health == ("events", 3, True, None)
    with_traceback = [record.exc_info is not None for record in caplog.records]
    assert with_traceback == [False, False, True]


def test_events_that_cannot_be_closed_do_not_end_the_thread(make: Make) -> None:
    source = make(pipes)
    source.want("data_writes", FIRST)
    opened = taken(source)
    opened.close()
    source.give_back(opened)
    source.want("data_writes", SECOND)
    taken(source).close()
    assert source.health == ("events", 1, True, None)


def test_nothing_is_left_open_after_the_end(make: Make) -> None:
    before = descriptors()
    source = make(pipes)
    source.want("data_writes", FIRST)
    assert eventually(lambda: source.has_new, PATIENCE_S)
    source.stop()
    assert descriptors() == before
    source.want("data_writes", SECOND)
    taken(source).close()


def test_end_does_not_wait_for_a_helper_that_hangs(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disksla.kernel.performance_events.source.STOP_TIMEOUT_S", 0.05)
    ended, called = threading.Event(), threading.Event()

    def opener(_: EventsRequest, __: str) -> OpenedEvents:
        called.set()
        ended.wait(PATIENCE_S)
        raise DiskslaError("late")

    source = make(opener)
    source.want("data_writes", FIRST)
    assert called.wait(PATIENCE_S)
    source.stop()
    ended.set()
