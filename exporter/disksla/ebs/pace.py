"""How often the page of a disk is read."""

import msgspec

from disksla.ebs.reading import Failure, Reading

NORMAL_S = 1.0
WATCHED_S = 0.1
SLOWEST_WATCHED_S = 0.02
"""A disk that takes longer to answer is not read more often: AWS says that it may queue requests
that come more than once a second."""
NOT_AGAIN_S = 60.0
LONGEST_S = 60.0


class Pace(msgspec.Struct, frozen=True):
    """What decides when a disk is read next."""

    failures: int = 0
    """In a row."""
    not_watched_until_s: float = 0.0
    """Monotonic time until which it is read at the normal pace."""

    def after(self, message: Reading | Failure) -> "Pace":
        """Return the pace after a reading or a failure."""
        if isinstance(message, Failure):
            return Pace(self.failures + 1, self.not_watched_until_s)
        if 2 * message.within_s > SLOWEST_WATCHED_S:
            return Pace(0, message.monotonic_s + NOT_AGAIN_S)
        return Pace(0, self.not_watched_until_s)

    def period_s(self, now_s: float, *, is_watched: bool) -> float:
        """Return the time from one reading to the next; it doubles with each failure in a row."""
        if self.failures:
            return min(NORMAL_S * 2.0 ** min(self.failures - 1, 10), LONGEST_S)
        return WATCHED_S if is_watched and now_s >= self.not_watched_until_s else NORMAL_S
