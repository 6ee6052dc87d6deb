"""Basic authentication, with real hashes of the lowest cost."""

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

from disksla.serve.http_server.basic_auth import MAX_CACHED, MAX_PENDING, MAX_SHARING, BasicAuth
from disksla.serve.http_server.turns import TooManyError

HASH = bcrypt.hashpw(b"correct horse", bcrypt.gensalt(4))
OTHER_HASH = bcrypt.hashpw(b"battery staple", bcrypt.gensalt(4))
USERS = {"alice": HASH, "b\u00f6b": OTHER_HASH}


def basic(credentials: bytes) -> bytes:
    return b"Basic " + base64.b64encode(credentials)


def accept_each(*credentials: bytes, users: dict[str, bytes] = USERS) -> list[bool]:
    """Return whether one `BasicAuth` accepts each of the credentials, in order."""

    async def run() -> list[bool]:
        auth = BasicAuth()
        try:
            return [await auth.accept(users, basic(each), "client") for each in credentials]
        finally:
            auth.stop()

    return asyncio.run(run())


class CountingVerifier:
    """Calls bcrypt when its gate is open, and records the hashes."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.hashes: list[bytes] = []

    def __call__(self, password: bytes, hashed: bytes) -> bool:
        self.hashes.append(hashed)
        assert self.gate.wait(20)
        return bcrypt.checkpw(password, hashed)


def with_verifier(
    test: Callable[[BasicAuth, CountingVerifier], Coroutine[Any, Any, None]],
) -> Callable[[], None]:
    """Return a test that gets an object without cached results, and its verifier."""

    async def run() -> None:
        verifier = CountingVerifier()
        auth = BasicAuth(verifier)
        try:
            await test(auth, verifier)
        finally:
            verifier.gate.set()
            auth.stop()

    return lambda: asyncio.run(run())


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
def test_only_the_right_password_is_accepted(credentials: bytes, is_right: bool) -> None:
    assert accept_each(credentials, credentials) == [is_right, is_right]


def test_password_counts_up_to_72_bytes() -> None:
    users = {"long": bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4))}
    accepted = accept_each(
        b"long:" + b"x" * 72, b"long:" + b"x" * 100, b"long:" + b"x" * 71, users=users
    )
    assert accepted == [True, True, False]


@pytest.mark.parametrize(
    "header",
    [b"", b"Basic", b"Basic ", b"Basic !!!", b"Basic YQ", b"Bearer YWxpY2U6Y29ycmVjdCBob3JzZQ=="],
)
def test_other_headers_are_rejected_without_bcrypt(header: bytes) -> None:
    async def test(auth: BasicAuth, verifier: CountingVerifier) -> None:
        assert not await auth.accept(USERS, header, "client")
        assert verifier.hashes == []

    with_verifier(test)()


@with_verifier
async def test_scheme_is_case_insensitive(auth: BasicAuth, verifier: CountingVerifier) -> None:
    verifier.gate.set()
    header = basic(b"alice:correct horse").replace(b"Basic", b"bAsIc")
    assert await auth.accept(USERS, header, "client")


@given(st.binary(max_size=200))
def test_random_headers_are_rejected(header: bytes) -> None:
    async def test(auth: BasicAuth, verifier: CountingVerifier) -> None:
        verifier.gate.set()
        assert not await auth.accept(USERS, header, "client")

    with_verifier(test)()


@with_verifier
async def test_unknown_user_costs_as_much_as_the_slowest_hash(
    auth: BasicAuth, verifier: CountingVerifier
) -> None:
    slow = HASH.replace(b"$04$", b"$05$")
    verifier.gate.set()
    users = {"alice": HASH, "slow": slow}
    assert not await auth.accept(users, basic(b"carol:correct horse"), "client")
    (hashed,) = verifier.hashes
    assert len(hashed) == len(HASH)
    assert hashed[:7] == slow[:7]


@with_verifier
async def test_results_are_cached(auth: BasicAuth, verifier: CountingVerifier) -> None:
    verifier.gate.set()
    for _ in range(3):
        assert await auth.accept(USERS, basic(b"alice:correct horse"), "client")
        assert not await auth.accept(USERS, basic(b"alice:wrong"), "client")
        assert not await auth.accept(USERS, basic(b"carol:correct horse"), "client")
    assert len(verifier.hashes) == 3


@with_verifier
async def test_changed_password_applies_at_once(
    auth: BasicAuth, verifier: CountingVerifier
) -> None:
    verifier.gate.set()
    old, new = basic(b"alice:correct horse"), basic(b"alice:battery staple")
    assert await auth.accept({"alice": HASH}, old, "client")
    assert not await auth.accept({"alice": HASH}, new, "client")
    assert not await auth.accept({"alice": OTHER_HASH}, old, "client")
    assert await auth.accept({"alice": OTHER_HASH}, new, "client")
    assert not await auth.accept({"carol": OTHER_HASH}, new, "client")


@with_verifier
async def test_equal_credentials_are_verified_once(
    auth: BasicAuth, verifier: CountingVerifier
) -> None:
    header = basic(b"alice:correct horse")
    clients = [
        asyncio.create_task(auth.accept(USERS, header, f"client{number}")) for number in range(100)
    ]
    await asyncio.sleep(0)
    clients[0].cancel()  # the others still get the result
    verifier.gate.set()
    assert await asyncio.gather(*clients[1:]) == [True] * 99
    assert len(verifier.hashes) == 1


@with_verifier
async def test_flood_from_one_address_takes_no_place_of_another(
    auth: BasicAuth, verifier: CountingVerifier
) -> None:
    flood = [
        asyncio.create_task(auth.accept(USERS, basic(b"alice:%d" % number), "flood"))
        for number in range(1000)
    ]
    await asyncio.sleep(0)
    rightful = asyncio.create_task(auth.accept(USERS, basic(b"alice:correct horse"), "rightful"))
    await asyncio.sleep(0)
    verifier.gate.set()
    results = await asyncio.gather(*flood, return_exceptions=True)
    assert results.count(False) == MAX_PENDING - 1
    assert sum(isinstance(result, TooManyError) for result in results) == 1001 - MAX_PENDING
    assert await rightful


@with_verifier
async def test_flood_from_many_addresses_spares_known_clients(
    auth: BasicAuth, verifier: CountingVerifier
) -> None:
    known = basic(b"alice:correct horse")
    verifier.gate.set()
    assert await auth.accept(USERS, known, "known")
    verifier.gate.clear()
    flood = [
        asyncio.create_task(auth.accept(USERS, basic(b"alice:%d" % number), f"client{number}"))
        for number in range(1000)
    ]
    await asyncio.sleep(0)
    assert await auth.accept(USERS, known, "known")
    verifier.gate.set()
    results = await asyncio.gather(*flood, return_exceptions=True)
    assert results.count(False) == MAX_PENDING
    assert await auth.accept(USERS, basic(b"alice:late"), "client1") is False


@with_verifier
async def test_requests_waiting_for_one_result_are_limited(
    auth: BasicAuth, verifier: CountingVerifier
) -> None:
    flood = [
        asyncio.create_task(auth.accept(USERS, basic(b"alice:same"), f"client{number}"))
        for number in range(1000)
    ]
    await asyncio.sleep(0)
    other = asyncio.create_task(auth.accept(USERS, basic(b"alice:correct horse"), "other"))
    await asyncio.sleep(0)
    verifier.gate.set()
    results = await asyncio.gather(*flood, return_exceptions=True)
    assert results.count(False) == 1 + MAX_SHARING
    assert await other


@with_verifier
async def test_wrong_passwords_do_not_evict_right_ones(
    auth: BasicAuth, verifier: CountingVerifier
) -> None:
    verifier.gate.set()
    right = basic(b"alice:correct horse")
    assert await auth.accept(USERS, right, "client")
    for number in range(MAX_CACHED + 5):
        assert not await auth.accept(USERS, basic(b"alice:%d" % number), "client")
    before = len(verifier.hashes)
    assert await auth.accept(USERS, right, "client")
    assert not await auth.accept(USERS, basic(b"alice:%d" % MAX_CACHED), "client")
    assert len(verifier.hashes) == before
    assert not await auth.accept(USERS, basic(b"alice:0"), "client")
    assert len(verifier.hashes) == before + 1


@with_verifier
async def test_no_password_is_stored(auth: BasicAuth, verifier: CountingVerifier) -> None:
    verifier.gate.set()
    await auth.accept(USERS, basic(b"alice:correct horse"), "client")
    await auth.accept(USERS, basic(b"alice:wrong horse"), "client")
    gc.collect()
    stored = [each for each in reachable(auth) if isinstance(each, bytes | str)]
    assert any(len(each) == 64 for each in stored)  # the digests
    assert not any("horse" in str(each) for each in stored)


def reachable(root: object) -> list[object]:
    """Return everything reachable from an object, except through types and modules."""
    found: dict[int, object] = {}
    waiting = [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in found or isinstance(thing, type | type(gc) | CountingVerifier):
            continue
        found[id(thing)] = thing
        if not callable(thing):
            waiting.extend(gc.get_referents(thing))
    return list(found.values())
