"""What a disk was sold as.

In it: `catalogue` (types of disks and machines of all providers as data, and what follows for a
size) and `configuration` (the file of a user, files of terms, which entry matches which disk).
It may use: `kernel` and `base`. Start reading in `catalogue.terms`, then `catalogue.derive`.
"""
