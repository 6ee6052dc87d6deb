"""What the daemon says as JSON, and the client that asks it.

- `disks_document`: what it says, of which disks, and what another answer means.
- `daemon_client`: asks the daemon of this machine.
"""

from disksla.tell.api.disks_document import (
    BAD_REQUEST,
    DISKS_PATH,
    NOT_FOUND,
    OK,
    REFUSALS,
    TOO_MANY,
    UNAUTHORIZED,
    UNAVAILABLE,
    ArrayDocument,
    DiskDocument,
    DisksDocument,
    LiveDiskDocument,
    credits_document,
    disks_document,
    disks_query,
)
