"""A worker for one class of requests, which clients use in turns."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from disksla.base.errors import DiskslaError
from disksla.serve.http_server.pace import UNLIMITED, TimeShare
from disksla.serve.http_server.waiting import KnownClients, Waiting

Result = TypeVar("Result")

_REQUEST_S = 0.002
"""What a request takes besides the time of the worker: to be received, parsed and sent."""


class TooManyError(DiskslaError):
    """Too many requests of this class wait already."""


class Turns:
    """One worker; clients take turns; for use from one event loop.

    If `most` requests wait or are answered, the newest of the client with the most is refused; of
    equal ones, the client that was served before is not.
    """

    def __init__(
        self,
        name: str,
        most: int,
        time_share: TimeShare = UNLIMITED,
        known: KnownClients | None = None,
    ) -> None:
        """Prepare a worker, which rests when it has used its share of the time."""
        self._most = most
        self._time_share = time_share
        self._worker = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._waiting: Waiting[asyncio.Future[None]] = Waiting(known)
        self._is_busy = False

    async def run(self, client: str, work: Callable[[], Result]) -> Result:
        """Return the result of some work of a client, when it is its turn.

        Raise TooManyError if the request is refused. Work that has begun goes on if this is
        cancelled, and only then the turn is over.
        """
        await self._turn(client)
        return await asyncio.shield(asyncio.ensure_future(self._work(work)))

    def stop(self) -> None:
        """Begin no more work."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def _turn(self, client: str) -> None:
        """Return when it is the turn of a client."""
        if not self._is_busy:
            self._is_busy = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.add(client, turn)
        if len(self._waiting) >= self._most:
            refused = self._waiting.take_newest_of_most()
            if not refused.done():  # else its request has just ended
                refused.set_exception(TooManyError())
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its turn came at this moment
                self._next()
            raise
        finally:
            self._waiting.discard(client, turn)

    async def _work(self, work: Callable[[], Result]) -> Result:
        try:
            await asyncio.sleep(self._time_share.rest_s(time.monotonic()))
            return await asyncio.get_running_loop().run_in_executor(
                self._worker, self._measured, work
            )
        finally:
            self._next()

    def _measured(self, work: Callable[[], Result]) -> Result:
        """Do some work, and count its time; in the worker."""
        begun_s = time.monotonic()
        try:
            return work()
        finally:
            used_s = time.monotonic() - begun_s + _REQUEST_S
            self._time_share = self._time_share.after(begun_s, used_s)

    def _next(self) -> None:
        """End a turn, and begin the next."""
        while self._waiting:
            turn = self._waiting.take()
            if not turn.done():
                turn.set_result(None)
                return
        self._is_busy = False
