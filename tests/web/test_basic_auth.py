"""Passwords, held against real hashes of the least cost."""

import asyncio
import base64
import gc
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import bcrypt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.web.basic_auth import (
    MOST_CLIENTS,
    MOST_LOOKS,
    MOST_LOOKS_OF_ONE,
    MOST_REMEMBERED,
    BasicAuth,
    TooManyAttemptsError,
)

HASH = bcrypt.hashpw(b"correct horse", bcrypt.gensalt(4))
OTHER_HASH = bcrypt.hashpw(b"battery staple", bcrypt.gensalt(4))
USERS = {"alice": HASH, "b\u00f6b": OTHER_HASH}


def basic(credentials: bytes) -> bytes:
    return b"Basic " + base64.b64encode(credentials)


def asked(*credentials: bytes, users: dict[str, bytes] = USERS) -> list[bool]:
    """Give what one `Passwords` says of each, one after the other."""

    async def ask() -> list[bool]:
        passwords = BasicAuth()
        try:
            return [await passwords.accept(users, basic(each), "peer") for each in credentials]
        finally:
            passwords.stop()

    return asyncio.run(ask())


class CountingLooks:
    """Stands between passwords and bcrypt, and lets nothing pass while it is closed."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.hashes: list[bytes] = []

    def __call__(self, password: bytes, hashed: bytes) -> bool:
        self.hashes.append(hashed)
        assert self.gate.wait(20)
        return bcrypt.checkpw(password, hashed)


def with_looks(ask: Callable[[BasicAuth, CountingLooks], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        looks = CountingLooks()
        passwords = BasicAuth(looks)
        try:
            await ask(passwords, looks)
        finally:
            looks.gate.set()
            passwords.stop()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("credentials", "is_right"),
    [
        (b"alice:correct horse", True),
        ("b\u00f6b:battery staple".encode(), True),
        (b"alice:battery staple", False),
        (b"alice:", False),
        (b"alice:correct horse ", False),
        (b"alice", False),
        (b"Alice:correct horse", False),
        (b"carol:correct horse", False),
        (b":correct horse", False),
        (b"alice:correct\x00horse", False),
        (b"\xff:\xff", False),
    ],
)
def test_who_is_let_in(credentials: bytes, is_right: bool) -> None:
    assert asked(credentials, credentials) == [is_right, is_right]


def test_what_bcrypt_overlooks_makes_no_difference() -> None:
    users = {"long": bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4))}
    said = asked(b"long:" + b"x" * 72, b"long:" + b"x" * 100, b"long:" + b"x" * 71, users=users)
    assert said == [True, True, False]


@pytest.mark.parametrize(
    "header",
    [b"", b"Basic", b"Basic ", b"Basic !!!", b"Basic YQ", b"Bearer YWxpY2U6Y29ycmVjdCBob3JzZQ=="],
)
def test_other_headers_let_nobody_in_and_cost_nothing(header: bytes) -> None:
    async def ask(passwords: BasicAuth, looks: CountingLooks) -> None:
        assert not await passwords.accept(USERS, header, "peer")
        assert looks.hashes == []

    with_looks(ask)


def test_the_scheme_may_be_in_any_letters() -> None:
    async def ask(passwords: BasicAuth, looks: CountingLooks) -> None:
        looks.gate.set()
        header = basic(b"alice:correct horse").replace(b"Basic", b"bAsIc")
        assert await passwords.accept(USERS, header, "peer")

    with_looks(ask)


@given(st.binary(max_size=200))
def test_any_header_is_refused_or_known(header: bytes) -> None:
    async def ask(passwords: BasicAuth, looks: CountingLooks) -> None:
        looks.gate.set()
        assert not await passwords.accept(USERS, header, "peer")

    with_looks(ask)


def test_an_unknown_name_takes_a_look_as_long_as_the_dearest() -> None:
    dear = HASH.replace(b"$04$", b"$05$")

    async def ask(passwords: BasicAuth, looks: CountingLooks) -> None:
        looks.gate.set()
        users = {"alice": HASH, "dear": dear}
        assert not await passwords.accept(users, basic(b"carol:correct horse"), "peer")
        (looked_at,) = looks.hashes
        assert len(looked_at) == len(HASH)
        assert looked_at[:7] == dear[:7]

    with_looks(ask)


def test_what_was_looked_at_is_not_looked_at_again() -> None:
    async def ask(passwords: BasicAuth, looks: CountingLooks) -> None:
        looks.gate.set()
        for _ in range(3):
            assert await passwords.accept(USERS, basic(b"alice:correct horse"), "peer")
            assert not await passwords.accept(USERS, basic(b"alice:wrong"), "peer")
            assert not await passwords.accept(USERS, basic(b"carol:correct horse"), "peer")
        assert len(looks.hashes) == 3

    with_looks(ask)


def test_a_changed_password_counts_at_once() -> None:
    async def ask(passwords: BasicAuth, looks: CountingLooks) -> None:
        looks.gate.set()
        old, new = basic(b"alice:correct horse"), basic(b"alice:battery staple")
        assert await passwords.accept({"alice": HASH}, old, "peer")
        assert not await passwords.accept({"alice": HASH}, new, "peer")
        assert not await passwords.accept({"alice": OTHER_HASH}, old, "peer")
        assert await passwords.accept({"alice": OTHER_HASH}, new, "peer")
        assert not await passwords.accept({"carol": OTHER_HASH}, new, "peer")

    with_looks(ask)


def test_who_asks_the_same_at_once_waits_for_one_look() -> None:
    async def ask(passwords: BasicAuth, looks: CountingLooks) -> None:
        header = basic(b"alice:correct horse")
        clients = [
            asyncio.create_task(passwords.accept(USERS, header, f"peer{number}"))
            for number in range(100)
        ]
        await asyncio.sleep(0)
        clients[0].cancel()  # the others do not lose what it began
        looks.gate.set()
        assert await asyncio.gather(*clients[1:]) == [True] * 99
        assert len(looks.hashes) == 1

    with_looks(ask)


def test_a_flood_from_one_address_takes_a_few_places_only() -> None:
    async def ask(passwords: BasicAuth, looks: CountingLooks) -> None:
        flood = [
            asyncio.create_task(passwords.accept(USERS, basic(b"alice:%d" % number), "flood"))
            for number in range(50)
        ]
        await asyncio.sleep(0)
        rightful = asyncio.create_task(
            passwords.accept(USERS, basic(b"alice:correct horse"), "rightful")
        )
        await asyncio.sleep(0)
        looks.gate.set()
        answers = await asyncio.gather(*flood, return_exceptions=True)
        assert [answer for answer in answers if answer is False] == [False] * MOST_LOOKS_OF_ONE
        assert all(
            answer is False or isinstance(answer, TooManyAttemptsError) for answer in answers
        )
        assert await rightful

    with_looks(ask)


def test_a_flood_from_everywhere_has_an_end_and_disturbs_nobody_who_is_known() -> None:
    async def ask(passwords: BasicAuth, looks: CountingLooks) -> None:
        known = basic(b"alice:correct horse")
        looks.gate.set()
        assert await passwords.accept(USERS, known, "known")
        looks.gate.clear()
        flood = [
            asyncio.create_task(
                passwords.accept(USERS, basic(b"alice:%d" % number), f"peer{number}")
            )
            for number in range(1000)
        ]
        await asyncio.sleep(0)
        assert await passwords.accept(USERS, known, "known")
        looks.gate.set()
        answers = await asyncio.gather(*flood, return_exceptions=True)
        assert answers.count(False) == MOST_LOOKS
        assert await passwords.accept(USERS, basic(b"alice:late"), "peer1") is False

    with_looks(ask)


def test_clients_that_wait_for_one_look_have_an_end() -> None:
    async def ask(passwords: BasicAuth, looks: CountingLooks) -> None:
        flood = [
            asyncio.create_task(passwords.accept(USERS, basic(b"alice:same"), f"peer{number}"))
            for number in range(1000)
        ]
        await asyncio.sleep(0)
        looks.gate.set()
        answers = await asyncio.gather(*flood, return_exceptions=True)
        assert answers.count(False) == MOST_CLIENTS

    with_looks(ask)


def test_what_is_remembered_has_an_end_and_wrong_ones_do_not_push_out_right_ones() -> None:
    async def ask(passwords: BasicAuth, looks: CountingLooks) -> None:
        looks.gate.set()
        right = basic(b"alice:correct horse")
        assert await passwords.accept(USERS, right, "peer")
        for number in range(MOST_REMEMBERED + 5):
            assert not await passwords.accept(USERS, basic(b"alice:%d" % number), "peer")
        before = len(looks.hashes)
        assert await passwords.accept(USERS, right, "peer")
        assert not await passwords.accept(USERS, basic(b"alice:%d" % MOST_REMEMBERED), "peer")
        assert len(looks.hashes) == before
        assert not await passwords.accept(USERS, basic(b"alice:0"), "peer")
        assert len(looks.hashes) == before + 1

    with_looks(ask)


def test_no_password_is_kept() -> None:
    async def ask(passwords: BasicAuth, looks: CountingLooks) -> None:
        looks.gate.set()
        await passwords.accept(USERS, basic(b"alice:correct horse"), "peer")
        await passwords.accept(USERS, basic(b"alice:wrong horse"), "peer")
        gc.collect()
        kept = [each for each in reachable(passwords) if isinstance(each, bytes | str)]
        assert any(len(each) == 64 for each in kept)  # the digests are there
        assert not any("horse" in str(each) for each in kept)

    with_looks(ask)


def reachable(root: object) -> list[object]:
    """Give everything that an object holds, by any way but through types and modules."""
    found: dict[int, object] = {}
    waiting = [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in found or isinstance(thing, type | type(gc) | CountingLooks):
            continue
        found[id(thing)] = thing
        if not callable(thing):
            waiting.extend(gc.get_referents(thing))
    return list(found.values())
