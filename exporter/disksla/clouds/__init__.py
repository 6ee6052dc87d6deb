"""What providers say of the disks of this machine.

In it: `detection` (types and sizes from metadata services and APIs), `ebs_statistics` (what AWS
counts of its volumes) and `http_client` (requests without I/O, and what carries them out).
It may use: `promise`, `kernel` and `base`. Start reading in `detection.providers`.
"""
