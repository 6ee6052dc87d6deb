"""What the kernel says of disks.

In it: `procfs` (files of /proc and sysfs), `disks` (block devices and what they are stacked on),
`nfs`, `performance_events` (exact counts, samples of requests) and `consumers` (who uses a disk).
It may use: `base`. Start reading in `procfs.diskstats`, then `disks.inventory`.
"""
