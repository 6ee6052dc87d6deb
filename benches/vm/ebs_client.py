"""A client of the helper in the virtual machine: says what readings cost.

It sends a request, and receives readings for a time: ebs_client.py REQUEST SECONDS.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

_SOCKET = "/run/disksla-ebs/ebs.sock"
_UNIT = "disksla-ebs"
_TICKS = os.sysconf("SC_CLK_TCK")


def _cpu_s(process: int) -> float:
    text = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident(process: int) -> str:
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(line.split()[1] for line in lines if line.startswith("VmRSS"))


def main(request: str, seconds: float) -> None:
    """Write how many readings there were, what they took, and the CPU time of the helper."""
    show = ("systemctl", "show", "--property=MainPID", "--value", _UNIT)
    process = int(subprocess.run(show, check=True, capture_output=True, text=True).stdout)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(_SOCKET)
    connection.sendall(f"{request}\n".encode())
    connection.settimeout(2.0)
    begun_s, cpu_s, received = time.monotonic(), _cpu_s(process), b""
    while time.monotonic() - begun_s < seconds:
        received += connection.recv(65536)
    passed_s = time.monotonic() - begun_s
    cpu_s = _cpu_s(process) - cpu_s
    messages = [json.loads(line) for line in received.split(b"\n")[:-1]]
    readings = [each for each in messages if each["type"] == "reading"]
    taken_ms = statistics.median(2e3 * each["within_s"] for each in readings)
    sys.stdout.write(
        f"{len(readings) / passed_s:.1f} readings per second of {taken_ms:.1f} ms (median),"
        f" {1e3 * cpu_s / len(readings):.1f} ms of CPU each, {_resident(process)} kB resident\n"
    )


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
