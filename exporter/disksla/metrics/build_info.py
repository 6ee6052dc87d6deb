"""What this program and the machine under it are."""

import platform
import time
from importlib.metadata import version

from disksla.metrics.self_metrics import BuildInfo


def read_build_info() -> BuildInfo:
    """Give the facts about ourselves, with a configuration accepted just now."""
    return BuildInfo(
        version=version("disksla-exporter"),
        python_version=platform.python_version(),
        kernel_release=platform.release(),
        reload_successful=True,
        reload_success_timestamp_s=time.time(),
    )
