"""A hundred scrapers at once."""

from collections.abc import Callable

import pytest

from faults.scrapers import Account, Flood, flood
from support.daemon_process import Daemon
from support.fake_host import FakeMachine

StartDaemon = Callable[..., Daemon]

ROUNDS = 5
MOST_GROWN_BYTES = 16 * 2**20
"""Answers that wait to be taken, and no more: each scraper has one."""


def test_what_was_missed_is_a_share_of_what_was_due() -> None:
    seen = Flood({200: 1}, 1.0, 0.1, Account(100, 5, 10, 1.0), Account(199, 6, 30, 2.0))
    assert seen.missed_share == 0.01
    assert seen.grown_bytes == 20


@pytest.mark.parametrize(
    ("most", "statuses"), [("40", {200, 503}), ("0", {200})], ids=["limited", "unlimited"]
)
def test_a_hundred_scrapers_are_all_answered_and_do_not_stop_the_sampler(
    most: str, statuses: set[int], start_daemon: StartDaemon, machine: FakeMachine
) -> None:
    """What it misses on a machine that is busy with other tests is not held against it."""
    daemon = start_daemon("--web.max-requests", most, *machine.options)
    seen = flood(daemon.address, ROUNDS, pause_s=0.2)
    assert sum(seen.answers.values()) == 100 * ROUNDS
    assert {200} <= seen.answers.keys() <= statuses
    assert seen.after.ticks > seen.before.ticks
    assert seen.grown_bytes < MOST_GROWN_BYTES
    assert daemon.get("/-/healthy")[0] == 200
    assert daemon.end() == 0
