"""The token bucket of all simulated limiters. Time is an argument.

A request is admitted while there are tokens, even if it overdraws them, and what it overdraws is
paid back before the next is admitted: as in QEMU (util/throttle.c), and as the documents of Yandex
Cloud say of windows (https://yandex.cloud/en/docs/compute/concepts/storage-read-write).
"""

ROUNDING_S = 1e-9
"""A bucket with fewer tokens than it gets in this time is empty."""


class TokenBucket:
    """Tokens that are added at a rate, up to a depth."""

    __slots__ = ("depth", "per_second", "tokens")

    def __init__(self, per_second: float, depth: float, tokens: float | None = None) -> None:
        self.per_second = per_second
        self.depth = depth
        self.tokens = depth if tokens is None else tokens

    def fill(self, seconds: float) -> None:
        """Add the tokens of this time."""
        self.tokens = min(self.depth, self.tokens + self.per_second * seconds)

    def wait_s(self) -> float:
        """Return the time until there are tokens; at most zero if there are some."""
        return ROUNDING_S - self.tokens / self.per_second
