"""HTTP basic authentication against bcrypt hashes.

bcrypt is slow by design. Hashes are verified one after the other by a thread of their own, so
that neither scrapes nor the sampler wait for it. Addresses take turns, and if too many passwords
wait, one of the address with the most is refused: so an address that tries many delays others by
one verification each time. Results are cached. No password is stored: the cache holds digests
under a random key of this process.
"""

import asyncio
import base64
import binascii
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import bcrypt

from disksla.serve.http_server.turns import KnownClients, TooManyError, Turns

MAX_PENDING = 128
"""Passwords being verified or waiting to be."""
MAX_SHARING = 128
"""Requests that wait for the result of another one with the same credentials."""
MAX_IN_PROGRESS = MAX_PENDING + MAX_SHARING
MAX_CACHED = 100
"""Results of each kind, accepted and rejected."""
_BCRYPT_BYTES = 72
"""bcrypt ignores the rest of a password; the Python library raises ValueError for a longer one."""
_SALT_AND_HASH_OF_NO_PASSWORD = b"." * 53


class BasicAuth:
    """Verifies credentials, and caches the results; for use from one event loop."""

    def __init__(
        self,
        verify: Callable[[bytes, bytes], bool] | None = None,
        known: KnownClients | None = None,
    ) -> None:
        """Begin with an empty cache; `verify` is bcrypt's by default."""
        self._verify_hash = verify or _verify_bcrypt
        self._secret = os.urandom(hashlib.blake2b.MAX_KEY_SIZE)
        self._accepted = _RecentDigests()
        self._rejected = _RecentDigests()
        self._turns = Turns("web-password", MAX_PENDING, known=known)
        self._pending: dict[bytes, asyncio.Task[bool]] = {}
        self._sharing = 0

    async def accept(self, users: Mapping[str, bytes], authorization: bytes, client: str) -> bool:
        """Return whether an Authorization header has the password of one of `users`.

        `client` is whose turn it takes. Raise TooManyError if too many passwords wait already.
        """
        credentials = _credentials(authorization)
        if credentials is None:
            return False
        name, _, password = credentials.partition(b":")
        hashes = {user.encode(errors="surrogatepass"): hashed for user, hashed in users.items()}
        hashed = hashes.get(name) or _hash_of_no_password(hashes.values())
        # A name has no colon and hashes are of one length, so this concatenation is unambiguous.
        digest = hashlib.blake2b(hashed + credentials, key=self._secret).digest()
        if digest in self._accepted:
            return name in hashes
        if digest in self._rejected:
            return False
        is_accepted = await self._verify(digest, hashed, password, client) and name in hashes
        (self._accepted if is_accepted else self._rejected).add(digest)
        return is_accepted

    async def _verify(self, digest: bytes, hashed: bytes, password: bytes, client: str) -> bool:
        """Verify a password once for all requests that wait for the same result."""
        if digest not in self._pending:
            verify = partial(self._verify_hash, password, hashed)
            pending = asyncio.ensure_future(self._turns.run(client, verify))
            pending.add_done_callback(lambda _: self._pending.pop(digest))
            self._pending[digest] = pending
            return await asyncio.shield(pending)  # other requests may wait for it as well
        if self._sharing >= MAX_SHARING:
            raise TooManyError
        self._sharing += 1
        try:
            return await asyncio.shield(self._pending[digest])
        finally:
            self._sharing -= 1

    def stop(self) -> None:
        """Verify no more passwords."""
        self._turns.stop()


class _RecentDigests:
    """The digests that were used last."""

    def __init__(self) -> None:
        self._digests: dict[bytes, None] = {}

    def __contains__(self, digest: bytes) -> bool:
        if digest not in self._digests:
            return False
        del self._digests[digest]
        self._digests[digest] = None  # now the most recent
        return True

    def add(self, digest: bytes) -> None:
        self._digests[digest] = None
        if len(self._digests) > MAX_CACHED:
            del self._digests[next(iter(self._digests))]


def _credentials(authorization: bytes) -> bytes | None:
    """Return `name:password` of an Authorization header; None if it has none."""
    scheme, _, encoded = authorization.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        credentials = base64.b64decode(encoded.strip(), validate=True)
    except binascii.Error:
        return None
    return credentials if b":" in credentials else None


def _hash_of_no_password(hashes: Iterable[bytes]) -> bytes:
    """Return a hash that no password has, and that takes as long to verify as any of `hashes`."""
    cost = max(hashed[4:6] for hashed in hashes)
    return b"$2b$" + cost + b"$" + _SALT_AND_HASH_OF_NO_PASSWORD


def _verify_bcrypt(password: bytes, hashed: bytes) -> bool:
    """Return whether `hashed` is a hash of a password."""
    try:
        return bcrypt.checkpw(password[:_BCRYPT_BYTES], hashed)
    except ValueError:  # a NUL in the password, in old versions of bcrypt
        return False
