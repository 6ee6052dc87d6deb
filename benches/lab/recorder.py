"""Processes of `disksla record`."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from support.waiting import eventually

_TIMEOUT_S = 20.0


def start_recorder(ticks: Path, config: Path) -> subprocess.Popen[bytes]:
    """Start to record to a file; return when something was recorded.

    It ends by SIGINT, which a process ignores if a shell started its parent with `&`.
    """
    disksla = str(Path(sys.executable).with_name("disksla"))
    command = [disksla, "record", str(ticks), "--for", "2h", "--config.file", str(config)]
    recorder = subprocess.Popen(
        ["env", "--default-signal=INT", *command],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if not eventually(lambda: ticks.exists() and ticks.stat().st_size > 0, _TIMEOUT_S):
        stop_recorder(recorder)
        raise OSError("`disksla record` has recorded no tick")
    return recorder


def stop_recorder(recorder: subprocess.Popen[bytes]) -> None:
    """End a recording, if it has not ended."""
    if recorder.poll() is None:
        recorder.send_signal(signal.SIGINT)
        recorder.wait(_TIMEOUT_S)


def record_span(
    ticks: Path, config: Path, start_s: float, end_s: float, failed: threading.Event
) -> None:
    """Record from one time to another, both from now on, unless the run fails."""
    begun_s = time.monotonic()
    if failed.wait(start_s):
        return
    recorder = start_recorder(ticks, config)
    failed.wait(max(0.0, begun_s + end_s - time.monotonic()))
    stop_recorder(recorder)
