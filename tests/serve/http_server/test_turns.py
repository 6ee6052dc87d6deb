"""One worker for a class of requests."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.serve.http_server.turns import UNLIMITED, TimeShare, TooManyError, Turns

PATIENCE_S = 20


class Gate:
    """Work that blocks until the gate is opened, and notes who did it."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.done: list[str] = []

    def work(self, name: str) -> Callable[[], str]:
        def do() -> str:
            assert self.opened.wait(PATIENCE_S)
            self.done.append(name)
            return name

        return do


Test = Callable[[Turns, Gate], Coroutine[Any, Any, None]]


def with_turns(most: int) -> Callable[[Test], Callable[[], None]]:
    """Return a decorator that gives a test turns with room for so many requests."""

    def decorated(test: Test) -> Callable[[], None]:
        async def run() -> None:
            turns, gate = Turns("test", most), Gate()
            try:
                await test(turns, gate)
            finally:
                gate.opened.set()
                turns.stop()

        return lambda: asyncio.run(run())

    return decorated


async def begin(turns: Turns, gate: Gate, *names: str) -> list[asyncio.Task[str]]:
    """Begin work; the first letter is the client."""
    tasks = [asyncio.create_task(turns.run(name[0], gate.work(name))) for name in names]
    await asyncio.sleep(0)
    return tasks


@with_turns(10)
async def test_clients_take_turns(turns: Turns, gate: Gate) -> None:
    tasks = await begin(turns, gate, "a1", "a2", "a3", "a4", "b1", "c1")
    gate.opened.set()
    await asyncio.gather(*tasks)
    assert gate.done == ["a1", "a2", "b1", "c1", "a3", "a4"]


@with_turns(4)
async def test_too_many_of_one_client_are_refused_and_others_are_not(
    turns: Turns, gate: Gate
) -> None:
    tasks = await begin(turns, gate, "a1", "a2", "a3", "a4", "a5", "b1")
    gate.opened.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(each, TooManyError) for each in results] == [
        False,
        False,
        False,
        True,  # for b1
        True,
        False,
    ]
    assert gate.done == ["a1", "a2", "b1", "a3"]


@with_turns(1)
async def test_work_that_raises_ends_its_turn(turns: Turns, gate: Gate) -> None:
    def fail() -> str:
        raise ValueError("broken on purpose")

    gate.opened.set()
    with pytest.raises(ValueError, match="broken on purpose"):
        await turns.run("a", fail)
    assert await turns.run("a", gate.work("a2")) == "a2"


@with_turns(3)
async def test_a_cancelled_request_waits_no_longer(turns: Turns, gate: Gate) -> None:
    first, second, third = await begin(turns, gate, "a1", "a2", "a3")
    second.cancel()
    gate.opened.set()
    assert (await first, await third) == ("a1", "a3")
    assert gate.done == ["a1", "a3"]


@with_turns(2)
async def test_work_that_has_begun_goes_on_when_its_request_is_cancelled(
    turns: Turns, gate: Gate
) -> None:
    first, second = await begin(turns, gate, "a1", "a2")
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    assert not second.done()
    gate.opened.set()
    assert await second == "a2"
    assert gate.done == ["a1", "a2"]


def test_a_worker_that_rested_may_use_ten_seconds_of_its_share_at_once() -> None:
    share = TimeShare(0.25).after(begun_s=100.0, used_s=2.5)
    assert share.rest_s(102.5) == 0.0
    share = share.after(begun_s=102.5, used_s=0.9)
    assert share.rest_s(103.4) == pytest.approx(0.2)
    assert share.rest_s(103.6) == 0.0


def test_a_worker_never_rests_for_long() -> None:
    share = TimeShare(0.25).after(begun_s=100.0, used_s=60.0)
    assert share.rest_s(160.0) == 1.0
    assert share.rest_s(160.5) == pytest.approx(0.5)


def test_a_worker_without_a_limit_never_rests() -> None:
    assert UNLIMITED.after(100.0, 1e9).rest_s(100.0) == 0.0


@given(st.floats(0.25, 1.0), st.lists(st.floats(0.0, 0.3), min_size=1, max_size=100))
def test_the_mean_is_at_most_the_share(part: float, work_s: list[float]) -> None:
    """Of work that is so short that no rest would be longer than a second."""
    share, now_s = TimeShare(part), 0.0
    for used_s in work_s:
        now_s += share.rest_s(now_s)
        share = share.after(now_s, used_s)
        now_s += used_s
    assert sum(work_s) <= part * (now_s + share.rest_s(now_s) + 10.0) + 1e-6
