"""A limit on how often something may be done: tokens that come in time, and one for each deed."""

import msgspec


class TokenBucket(msgspec.Struct, frozen=True):
    """A token comes every `interval_s`, and no more than `burst` are kept."""

    interval_s: float
    burst: int
    credits: float
    """Tokens at `at_s`, which a clock that never goes back tells."""
    at_s: float

    @classmethod
    def full(cls, interval_s: float, burst: int, now_s: float) -> "TokenBucket":
        """Give a bucket from which nothing was taken yet."""
        return cls(interval_s, burst, burst, now_s)

    def taken(self, now_s: float) -> "TokenBucket | None":
        """Give what is left when a token is taken now; None where there is none."""
        left = min(self.burst, self.credits + (now_s - self.at_s) / self.interval_s) - 1
        return TokenBucket(self.interval_s, self.burst, left, now_s) if left >= 0 else None
