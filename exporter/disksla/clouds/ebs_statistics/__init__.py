"""What AWS says of its disks: the statistics page of EBS volumes and instance store.

- `statistics_page`: the page, 4096 bytes, parsed.
- `reading`: a page with its disk and its time, and what lies between two of them; the messages
  between the helper and its clients.
- `nvme`: find the disks that have a page; read it.
- `helper`: the process of `disksla ebs-statistics`, which has the privilege to read it.
- `client`: the thread of the daemon that gets readings from the helper.
"""

from disksla.clouds.ebs_statistics.reading import Failure, Reading, change_between
from disksla.clouds.ebs_statistics.statistics_page import Bin, EbsLimit
