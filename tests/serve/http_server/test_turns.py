"""One worker for a class of requests, and what waits for it, by client."""

import asyncio
import math
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.serve.http_server.turns import (
    UNLIMITED,
    KnownClients,
    TimeShare,
    TooManyError,
    Turns,
    Waiting,
    client_of,
)

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


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("/run/x", "/run/x"),
    ],
)
def test_an_ipv6_address_is_counted_by_its_network(peer: str, client: str) -> None:
    assert client_of(peer) == client


def waiting(*items: str) -> Waiting[str]:
    """Return things that came in this order; the first letter is the client."""
    found: Waiting[str] = Waiting()
    for item in items:
        found.add(item[0], item)
    return found


def all_taken(found: Waiting[str]) -> list[str]:
    return [found.take() for _ in range(len(found))]


def test_who_was_served_before_comes_first_and_keeps_nobody_out() -> None:
    known = KnownClients()
    for at_s, client in enumerate("pqr"):
        known.served(client, float(at_s))
    found: Waiting[str] = Waiting(known)
    for item in ("a1", "b1", "c1", "q1", "p1", "p2", "p3"):
        found.add(item[0], item)
    assert found.take_newest_of_most() == "c1", "one that was not served before"
    assert all_taken(found) == ["p1", "a1", "p2", "b1", "p3", "q1"]


def test_clients_are_known_for_an_hour_and_the_first_thousand_of_them() -> None:
    known = KnownClients()
    for number in range(2000):
        known.served(str(number), 0.0)
    assert [known.since_s(each) for each in ("0", "999", "1000")] == [0.0, 0.0, math.inf]
    known.served("0", 3000.0)
    known.served("0", 6000.0)
    known.served("new", 6000.0)
    assert [known.since_s(each) for each in ("0", "999", "new")] == [0.0, math.inf, 6000.0]
    known.served("0", 9600.0)
    assert known.since_s("0") == 9600.0


def test_the_client_with_the_most_loses() -> None:
    found = waiting("b1", "a1", "a2", "a3", "c1")
    assert found.take_oldest_of_most() == "a1"
    assert found.take_newest_of_most() == "a3"
    assert all_taken(found) == ["b1", "a2", "c1"]


def test_of_equal_clients_the_oldest_or_the_newest_loses() -> None:
    assert waiting("a1", "b1", "c1").take_oldest_of_most() == "a1"
    assert waiting("a1", "b1", "c1").take_newest_of_most() == "c1"


def test_what_is_gone_is_not_taken() -> None:
    found = waiting("a1", "a2", "b1")
    for client, item in (("a", "a1"), ("b", "b1"), ("b", "b1"), ("c", "c1")):
        found.discard(client, item)
    assert all_taken(found) == ["a2"]


@given(st.lists(st.sampled_from("abcd"), max_size=40))
def test_no_client_waits_for_two_of_another(clients: list[str]) -> None:
    found: Waiting[tuple[str, int]] = Waiting()
    for number, client in enumerate(clients):
        found.add(client, (client, number))
    taken = [found.take() for _ in range(len(found))]
    assert sorted(taken, key=lambda each: each[1]) == list(
        zip(clients, range(len(clients)), strict=True)
    )
    for index, (client, _) in enumerate(taken):
        later = {other for other, _ in taken[index + 1 :]}
        following = [other for other, _ in taken[index + 1 :]]
        if client in following:
            between = following[: following.index(client)]
            assert set(between) | {client} >= later
