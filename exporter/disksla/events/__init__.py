"""Performance events of block requests: opened by a helper, read by the daemon."""

from disksla.events.protocol import MOST_DISKS, EventsRequest
from disksla.events.samples import Taken
