"""Whether clients know the passwords of those they say they are.

To hold a password against its hash is slow on purpose. So that neither scrapes nor the sampler
wait for it, a thread of its own does it, one after the other; what came out is remembered, and
when too many wait, the next is told to come back. Of a password nothing is kept but a digest
under a key that this process made up, which says nothing without the key.
"""

import asyncio
import base64
import binascii
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from disksla.errors import DiskslaError

MOST_LOOKS = 16
"""Passwords that wait to be looked at."""
MOST_LOOKS_OF_ONE = 4
"""Of one address, so that one client cannot take all places."""
MOST_CLIENTS = 128
"""Clients that wait; those that sent the same wait for one look."""
MOST_REMEMBERED = 100
_USED_BY_BCRYPT_BYTES = 72
"""bcrypt has always overlooked the rest; the Python library refuses it."""
_NOBODYS_SALT_AND_HASH = b"." * 53


class TooManyAttemptsError(DiskslaError):
    """Too many passwords wait to be looked at."""


class BasicAuth:
    """Remembers who was right; to be asked by one event loop only."""

    def __init__(self, look: Callable[[bytes, bytes], bool] | None = None) -> None:
        """Begin without having looked at any; `look` is bcrypt's unless told."""
        self._look_at = look or _is_password
        self._secret = os.urandom(hashlib.blake2b.MAX_KEY_SIZE)
        self._right = _Remembered()
        self._wrong = _Remembered()
        self._looker = ThreadPoolExecutor(1, thread_name_prefix="web-password")
        self._looks: dict[bytes, asyncio.Future[bool]] = {}
        self._peers: Counter[str] = Counter()
        self._clients = 0

    async def accept(self, users: Mapping[str, bytes], authorization: bytes, peer: str) -> bool:
        """Tell whether a header names one of `users` and the right password.

        Raises Crowded where that would have to wait too long.
        """
        credentials = _credentials(authorization)
        if credentials is None:
            return False
        name, _, password = credentials.partition(b":")
        known = {user.encode(errors="surrogatepass"): hashed for user, hashed in users.items()}
        hashed = known.get(name) or _nobodys_hash(known.values())
        # A name holds no colon and a hash has its length, so no two of these read the same.
        digest = hashlib.blake2b(hashed + credentials, key=self._secret).digest()
        if self._right.has(digest):
            return name in known
        if self._wrong.has(digest):
            return False
        is_right = await self._look(digest, hashed, password, peer) and name in known
        (self._right if is_right else self._wrong).add(digest)
        return is_right

    async def _look(self, digest: bytes, hashed: bytes, password: bytes, peer: str) -> bool:
        """Hold a password against a hash; who asks the same at the same time gets that answer."""
        if self._clients >= MOST_CLIENTS:
            raise TooManyAttemptsError
        look = self._looks.get(digest) or self._begun_look(digest, hashed, password, peer)
        self._clients += 1
        try:
            return await asyncio.shield(look)  # whoever else waits for it goes on waiting
        finally:
            self._clients -= 1

    def _begun_look(
        self, digest: bytes, hashed: bytes, password: bytes, peer: str
    ) -> asyncio.Future[bool]:
        of_one = self._peers[peer]
        if len(self._looks) >= MOST_LOOKS or of_one >= MOST_LOOKS_OF_ONE:
            raise TooManyAttemptsError
        loop = asyncio.get_running_loop()
        look = loop.run_in_executor(self._looker, self._look_at, password, hashed)
        self._looks[digest] = look
        self._peers[peer] = of_one + 1
        look.add_done_callback(lambda _: self._end_look(digest, peer))
        return look

    def _end_look(self, digest: bytes, peer: str) -> None:
        del self._looks[digest]
        self._peers -= Counter([peer])  # which also forgets a peer that has none left

    def stop(self) -> None:
        """Look at no more of them."""
        self._looker.shutdown(wait=False, cancel_futures=True)


class _Remembered:
    """The digests that were asked for last."""

    def __init__(self) -> None:
        self._digests: dict[bytes, None] = {}

    def has(self, digest: bytes) -> bool:
        if digest not in self._digests:
            return False
        del self._digests[digest]
        self._digests[digest] = None  # now the youngest
        return True

    def add(self, digest: bytes) -> None:
        self._digests[digest] = None
        if len(self._digests) > MOST_REMEMBERED:
            del self._digests[next(iter(self._digests))]


def _credentials(authorization: bytes) -> bytes | None:
    """Give `name:password` of a header; None where there is none in it."""
    scheme, _, encoded = authorization.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        credentials = base64.b64decode(encoded.strip(), validate=True)
    except binascii.Error:
        return None
    return credentials if b":" in credentials else None


def _nobodys_hash(hashes: Iterable[bytes]) -> bytes:
    """Give a hash that no password has and that takes as long to look at as any of `hashes`."""
    cost = max(hashed[4:6] for hashed in hashes)
    return b"$2b$" + cost + b"$" + _NOBODYS_SALT_AND_HASH


def _is_password(password: bytes, hashed: bytes) -> bool:
    """Hold a password against a hash, for as long as its cost says."""
    import bcrypt  # noqa: PLC0415 -- 0.5 MiB that only those carry who use passwords

    try:
        return bcrypt.checkpw(password[:_USED_BY_BCRYPT_BYTES], hashed)
    except ValueError:  # a NUL within the password, to older versions
        return False
