"""Versions of disksla, Python and the kernel."""

import os
import sys
import time

from disksla import REVISION, VERSION
from disksla.serve.metrics.self_metrics import BuildInfo


def read_build_info() -> BuildInfo:
    """Return the versions of this process, with a configuration that was loaded just now."""
    return BuildInfo(
        version=VERSION,
        revision=REVISION,
        python_version=".".join(map(str, sys.version_info[:3])),
        kernel_release=os.uname().release,
        reload_successful=True,
        reload_success_timestamp_s=time.time(),
    )
