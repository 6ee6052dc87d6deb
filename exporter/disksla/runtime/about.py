"""What this program and the machine under it are."""

import platform
import time
from importlib.metadata import version

from disksla.exposition.metrics import About


def read_about() -> About:
    """Give the facts about ourselves, with a configuration accepted just now."""
    return About(
        version=version("disksla-exporter"),
        python_version=platform.python_version(),
        kernel_release=platform.release(),
        reload_successful=True,
        reload_success_timestamp_s=time.time(),
    )
