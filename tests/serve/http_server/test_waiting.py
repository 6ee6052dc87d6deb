"""What waits, by client."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.serve.http_server.turns import KnownClients, Waiting, client_of


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
