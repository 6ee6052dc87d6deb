"""How often events are sampled."""

PERIODS = (1, 3, 7, 13, 29, 61, 127, 251, 509, 1021, 2039, 4093)
"""Odd primes, but the first: each occurrence. Often requests of two kinds alternate, and an even
period would see one of them only (measured)."""
_PAGES, _LEAST_PAGES = 256, 16
"""Of all buffers, but for many CPUs; of one."""
MOST_PER_S = 2000.0
"""Samples of all disks; each takes about 1.3 us."""


def period_for(events_per_s: float, most_per_s: float) -> int:
    """Return the shortest period at which there are at most so many samples per second."""
    fitting = (period for period in PERIODS if events_per_s <= most_per_s * period)
    return next(fitting, PERIODS[-1])


def buffer_pages(cpus: int) -> int:
    """Return the pages of the buffer of each CPU, a power of two.

    16 hold 744 samples, more than come in a third of a second; with few CPUs, there may be more.
    """
    return next((pages for pages in (64, 32) if cpus * pages <= _PAGES), _LEAST_PAGES)
