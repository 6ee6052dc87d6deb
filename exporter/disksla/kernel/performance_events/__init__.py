"""Performance events of block requests: opened by a helper, read by the daemon."""

from disksla.kernel.performance_events.protocol import MOST_DISKS, EventsRequest
from disksla.kernel.performance_events.samples import Taken
