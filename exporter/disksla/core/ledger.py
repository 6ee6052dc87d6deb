"""Seconds by verdict, and what throttling cost, over the life of one disk under our eyes."""

import msgspec

from disksla.core.hostwait import HostWait, added
from disksla.core.throttle import LIMIT_KINDS
from disksla.core.verdict import VERDICTS, Judgement

_IDLE = VERDICTS.index("idle")


class Ledger(msgspec.Struct, frozen=True, gc=False):
    """Sums of verdicts."""

    seconds: tuple[float, ...] = (0.0,) * len(VERDICTS)
    """In the order of VERDICTS; together, all the time that was judged."""
    throttled_s: tuple[float, ...] = (0.0,) * len(LIMIT_KINDS)
    """In the order of LIMIT_KINDS."""
    wait_s: float = 0.0
    """I/O-seconds that throttling added."""
    host: HostWait = HostWait(0.0, 0.0, 0.0)
    """The part of what the host waited that fell into throttled windows."""

    def plus(self, judgement: Judgement, seconds: float) -> "Ledger":
        """Add one window."""
        index = VERDICTS.index(judgement.verdict)
        by_verdict = _with(self.seconds, index, seconds)
        throttled_s = self.throttled_s
        if judgement.hold is not None:
            limit = LIMIT_KINDS.index(judgement.hold.limit)
            throttled_s = _with(throttled_s, limit, seconds)
        return Ledger(by_verdict, throttled_s, self.wait_s + judgement.wait_s, self.host)

    def plus_idle(self, seconds: float) -> "Ledger":
        """Add time in which the disk slept."""
        return msgspec.structs.replace(self, seconds=_with(self.seconds, _IDLE, seconds))

    def plus_host(self, part: HostWait) -> "Ledger":
        """Add the disk's part of what the host waited in a throttled window."""
        return msgspec.structs.replace(self, host=added(self.host, part))


def _with(amounts: tuple[float, ...], index: int, more: float) -> tuple[float, ...]:
    return (*amounts[:index], amounts[index] + more, *amounts[index + 1 :])
