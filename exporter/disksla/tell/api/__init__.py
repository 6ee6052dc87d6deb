"""What the daemon says as JSON, and the client that asks it.

- `disks_document`: what it says.
- `refusals`: what another answer means.
- `daemon_client`: asks the daemon of this machine.
"""

from disksla.tell.api.disks_document import (
    DISKS_PATH,
    ArrayDocument,
    DiskDocument,
    DisksDocument,
    LiveDiskDocument,
    credits_document,
    disks_document,
)
from disksla.tell.api.disks_query import (
    BAD_REQUEST,
    NOT_FOUND,
    OK,
    REFUSALS,
    TOO_MANY,
    UNAUTHORIZED,
    UNAVAILABLE,
    disks_query,
)
