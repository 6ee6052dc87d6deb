"""Read /proc/diskstats ten times a second and discard it: the lowest possible cost."""

import os
import time

descriptor = os.open("/proc/diskstats", os.O_RDONLY)
due_s = time.monotonic()
while True:
    due_s += 0.1
    time.sleep(max(0.0, due_s - time.monotonic()))
    offset = 0
    while chunk := os.pread(descriptor, 65536, offset):
        offset += len(chunk)
