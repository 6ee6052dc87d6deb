"""Disks of a virtual machine that QEMU throttles: verdicts compared with its trace (`make vm`)."""
