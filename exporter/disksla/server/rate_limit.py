"""Rate limit of requests: a token bucket."""

import msgspec


class TokenBucket(msgspec.Struct, frozen=True):
    """Gains a token every `interval_s`, up to `burst` tokens; each request takes one."""

    interval_s: float
    burst: int
    credits: float
    """Tokens at `at_s`, a time of a monotonic clock."""
    at_s: float

    @classmethod
    def full(cls, interval_s: float, burst: int, now_s: float) -> "TokenBucket":
        """Return a full bucket."""
        return cls(interval_s, burst, burst, now_s)

    def take(self, now_s: float) -> "TokenBucket | None":
        """Return the bucket after taking a token now; None if it has none."""
        left = min(self.burst, self.credits + (now_s - self.at_s) / self.interval_s) - 1
        return TokenBucket(self.interval_s, self.burst, left, now_s) if left >= 0 else None
