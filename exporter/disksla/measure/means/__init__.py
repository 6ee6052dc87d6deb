"""What people already record of their disks: means of seconds or minutes.

- `mean`: one interval of a disk, as an agent recorded it; the same of several disks together.
- `node_exporter`: intervals from the counters that Prometheus has of node_exporter.
- `sysstat`: intervals from the output of sadf and iostat.
- `limit_use`: for how long a disk ran at which of its limits, and what its burst credits were.
- `means_page`: what of this is said, as a page and for JSON.

Means do not show a limiter, so none of them says that a disk was throttled.
"""

from disksla.measure.means.limit_use import LimitUse, is_at_limit, use_of_limits
from disksla.measure.means.mean import Mean, total_means
