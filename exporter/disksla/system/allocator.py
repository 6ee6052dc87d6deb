"""The allocator of glibc, set for threads that work one after another.

By default each thread gets an arena of its own, and blocks as large as a page of metrics come to
stay in it once one was freed. The threads of a Python program hold the GIL while they allocate, so
they can share one arena.
"""

import ctypes

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # mallopt(3), malloc.h
_LARGE_BLOCK_BYTES = 128 * 1024
"""glibc's initial value; once set, it does not rise."""


def share_one_arena() -> None:
    """Make all threads share an arena, and return large blocks to the kernel when they are freed.

    Call it before threads are started. Other C libraries have no such setting.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
        mallopt(_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)
