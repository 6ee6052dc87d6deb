"""What the numbers of a disk mean. All of it is pure.

In it: `interval` (the difference of two samples, or a gap), `throttling` (the signs of a limiter,
and the verdict on each window) and `credits` (bounds of the burst credits).
It may use: `promise`, `kernel` and `base`. Start reading in `throttling`, whose caption has the
law.
"""
