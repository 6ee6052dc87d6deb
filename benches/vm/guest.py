"""Commands and files in the virtual machine, through qemu-guest-agent."""

import base64
import json
import shlex
import socket
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from support.waiting import eventually

_TIMEOUT_S = 60.0
"""Of one answer; software emulation is slow."""


class Event(NamedTuple):
    """A message that no command asked for."""

    name: str
    at_s: float
    """Wall-clock time of the host."""
    data: dict[str, Any]


class Channel:
    """One connection, by one thread."""

    def __init__(self, path: Path) -> None:
        if not eventually(path.is_socket, _TIMEOUT_S):
            raise OSError(f"{path}: QEMU has not created the socket")
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._file = self._socket.makefile("rwb", buffering=0)
        self._events: list[Event] = []

    def __enter__(self) -> Self:
        """Return the connection."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    def execute(self, command: str, arguments: dict[str, object] | None = None) -> Any:
        """Return the answer to a command; raise OSError if it failed."""
        message = {"execute": command, "arguments": arguments or {}}
        self._file.write(json.dumps(message).encode() + b"\n")
        while True:
            answer = self._receive(_TIMEOUT_S)
            if "error" in answer:
                raise OSError(f"{command} failed: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]

    def wait_for(self, name: str, within_s: float, **data: object) -> Event:
        """Return the next event of this name with these data; earlier events are dropped."""
        deadline = time.monotonic() + within_s
        while True:
            while self._events:
                event = self._events.pop(0)
                if event.name == name and data.items() <= event.data.items():
                    return event
            self._receive(max(0.001, deadline - time.monotonic()))

    def _receive(self, within_s: float) -> dict[str, Any]:
        self._socket.settimeout(within_s)
        line = self._file.readline()
        if not line:
            raise OSError("QEMU has closed the connection")
        message: dict[str, Any] = json.loads(line)
        if "event" in message:
            stamp = message["timestamp"]
            at_s = stamp["seconds"] + stamp["microseconds"] / 1e6
            self._events.append(Event(message["event"], at_s, message.get("data", {})))
        return message


_POLL_S = 0.2
_FETCH_BYTES = 4 * 2**20


class Command:
    """A command that runs in the virtual machine."""

    def __init__(self, agent: Channel, script: str, stdin: bytes = b"") -> None:
        arguments = {
            "path": "/bin/sh",
            "arg": ["-euc", script],
            "capture-output": True,
            "input-data": base64.b64encode(stdin).decode(),
        }
        self._agent = agent
        self._script = script
        self._id = agent.execute("guest-exec", arguments)["pid"]
        self._status: dict[str, object] = {"exited": False}

    def has_ended(self) -> bool:
        """Return whether the command has ended."""
        if not self._status["exited"]:
            self._status = self._agent.execute("guest-exec-status", {"pid": self._id})
        return bool(self._status["exited"])

    def output(self, *, check: bool = True) -> bytes:
        """Wait for the end; return standard output. Raise OSError if the command failed."""
        while not self.has_ended():
            time.sleep(_POLL_S)
        output, errors = (
            base64.b64decode(str(self._status.get(name, ""))) for name in ("out-data", "err-data")
        )
        if check and self._status.get("exitcode") != 0:
            message = (errors + output).decode(errors="replace")
            raise OSError(f"{self._script}: failed in the virtual machine: {message}")
        return output


class Guest:
    """The virtual machine from inside, as root."""

    def __init__(self, agent: Channel) -> None:
        self._agent = agent

    def start(self, script: str, stdin: bytes = b"") -> Command:
        """Start a script of the shell."""
        return Command(self._agent, script, stdin)

    def run(self, script: str, stdin: bytes = b"") -> str:
        """Run a script of the shell; return its output. Raise OSError if it fails."""
        return self.start(script, stdin).output().decode().strip()

    def write(self, path: str, text: str) -> None:
        """Write a file."""
        self.run(f"cat >{shlex.quote(path)}", text.encode())

    def tail(self, path: str, offset: int) -> bytes:
        """Return what a file has from an offset on, at most 4 MiB."""
        script = f"tail -c +{offset + 1} {shlex.quote(path)} | head -c {_FETCH_BYTES}"
        return self.start(script).output()

    def uptime_s(self) -> float:
        """Return the time since boot: CLOCK_MONOTONIC, as it is never suspended."""
        return float(self.run("cut -d' ' -f1 /proc/uptime"))

    def device(self, serial: str, within_s: float = 30.0) -> str:
        """Wait for a disk, and return its kernel name."""
        link = f"/dev/disk/by-id/virtio-{serial}"
        wait = f"timeout {within_s} sh -c 'until test -b {link}; do sleep 0.1; done'"
        return self.run(f"{wait}; basename $(readlink -f {link})")


_METRICS = "http://localhost:10056/metrics"


class Scrape(msgspec.Struct, frozen=True):
    """Metrics of a disk or the machine, and the times of the guest that they were read between."""

    begun_s: float
    ended_s: float
    metrics: str


class DiskMetrics(msgspec.Struct, frozen=True):
    """What the daemon said of one disk, or of all under the limits of the machine."""

    limits: dict[str, float]
    """Throttled seconds by limit."""
    limit_iops: float | None
    """Limit by the terms."""
    ceiling_iops: float | None
    ceiling_bytes_per_second: float | None
    credits: dict[str, tuple[float, float]]
    """Bounds, by resource."""

    @property
    def throttled_s(self) -> float:
        """Throttled seconds in all, at any limit."""
        return sum(self.limits.values())


def of_device(device: str) -> str:
    """Return what the metrics of a disk contain."""
    return f'device="{device}"'


MACHINE_PREFIX = "disksla_machine_"
OF_MACHINE = f"^{MACHINE_PREFIX}"
"""What the metrics of the machine contain."""


def scrape(guest: Guest, pattern: str) -> Scrape:
    """Read the metrics that contain a pattern; raise OSError if the daemon does not answer."""
    uptime = "cut -d' ' -f1 /proc/uptime"
    curl = f"curl --silent --show-error --fail --max-time 30 {_METRICS}"
    output = guest.run(f"{uptime}; {curl} | grep '{pattern}' | grep -v _bucket; {uptime}")
    first, *lines, last = output.splitlines()
    metrics = "".join(f"{line}\n" for line in lines if not line.startswith("#"))
    return Scrape(float(first), float(last), metrics)


def disk_metrics(page: str, prefix: str = "disksla_") -> DiskMetrics:
    """Return the metrics with a prefix from a page that has only one disk or machine."""
    values: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            labels = sample.labels
            values[sample.name][labels.get("limit") or labels.get("resource") or ""] = sample.value
    lower = values[f"{prefix}burst_credits_lower_bound"]
    upper = values[f"{prefix}burst_credits_upper_bound"]
    return DiskMetrics(
        values[f"{prefix}throttled_seconds_total"],
        values["disksla_limit_read_iops"].get(""),
        values["disksla_observed_ceiling_iops"].get(""),
        values["disksla_observed_ceiling_bytes_per_second"].get(""),
        {resource: (lower[resource], upper[resource]) for resource in lower},
    )
