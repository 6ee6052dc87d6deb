"""Volumes of EBS as an NVMe/TCP target: throttled, and with the page of statistics."""
