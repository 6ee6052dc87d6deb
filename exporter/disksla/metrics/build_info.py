"""Versions of disksla, Python and the kernel."""

import platform
import time
from importlib.metadata import version

from disksla.metrics.self_metrics import BuildInfo


def read_build_info() -> BuildInfo:
    """Return the versions of this process, with a configuration that was loaded just now."""
    return BuildInfo(
        version=version("disksla-exporter"),
        python_version=platform.python_version(),
        kernel_release=platform.release(),
        reload_successful=True,
        reload_success_timestamp_s=time.time(),
    )
