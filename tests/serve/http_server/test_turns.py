"""One worker for a class of requests."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from disksla.serve.http_server.turns import TooManyError, Turns

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
