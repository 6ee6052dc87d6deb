"""Performance events of block requests: opened by a helper, read by the daemon."""

from disksla.events.protocol import MOST_DISKS, Batch, End, EventsRequest, Record, Refusal
from disksla.events.samples import RecordForm, RequestSample, Samples, Taken
from disksla.events.tracepoints import Tracepoint, parse_format
