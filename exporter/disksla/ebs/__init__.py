"""What AWS says of its disks: the statistics page of EBS volumes and instance store.

- `statistics`: the page, 4096 bytes, parsed.
- `reading`: a page with its disk and its time; the messages between the helper and its clients.
- `change`: what lies between two readings of a disk.
- `devices`, `nvme`: find the disks that have a page; read it.
- `pace`: how often it is read.
- `helper`: the process of `disksla ebs-statistics`, which has the privilege to read it.
- `client`: the thread of the daemon that gets readings from the helper.
"""

from disksla.ebs.change import Change, change_between
from disksla.ebs.reading import Failure, Reading, encode
from disksla.ebs.statistics import EBS_LIMITS, Bin, EbsLimit
